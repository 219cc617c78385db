// The convolutional half of the paper's network as one block, for one core:
//
//     conv 3x3 (1 -> 32), relu, conv 3x3 (32 -> 64), max-pool 2x2, relu, dropout
//
// A plain C interface for ctypes; no Python and no torch. Three things make it fast:
//
//   * Forward, the second convolution is Winograd's F(4x4, 3x3): a quarter of the products.
//   * Nothing between image and output leaves the core's own cache: one image at a time goes all
//     the way through.
//   * Backward, a pool window hands its gradient to one of its four places, and only if relu and
//     dropout let it through. Those few places are kept as bits, and only they are worked on.
//
// Layout. "Plane" means the first convolution's output (or its gradient) for one group of eight
// channels: [26][26][8], small enough for the first-level cache. Outputs are position-major:
// [12][12][64] for each image. Weights come and gradients go in torch's order.
//
// The caller makes sure that nothing can overflow (fused_in_range), so no NaN or infinity arises.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#ifndef FUSED_SOURCE
#define FUSED_SOURCE "unknown"
#endif

namespace {

constexpr int kLanes = 8;        // floats in a vector register
constexpr int kImage = 28;       // side of an image
constexpr int kHidden = 26;      // side after the first convolution
constexpr int kPooled = 12;      // side after the second and the pool
constexpr int kTaps = 9;         // of a 3x3 kernel
constexpr int kChannels1 = 32;   // out of the first convolution
constexpr int kChannels2 = 64;   // out of the second
constexpr int kGroups = kChannels1 / kLanes;
constexpr int kWindows = kPooled * kPooled;
constexpr int kFeatures = kWindows * kChannels2;
constexpr int kPlane = kHidden * kHidden * kLanes;
constexpr int kPixels = kImage * kImage;

// Winograd: tiles of 4x4 outputs from 6x6 inputs, in 36 "frequencies".
constexpr int kTile = 4;
constexpr int kPatch = 6;
constexpr int kFrequencies = kPatch * kPatch;
constexpr int kTilesAcross = 6;
constexpr int kTileRows = 2;                            // rows of tiles worked on together
constexpr int kTiles = kTileRows * kTilesAcross;        // tiles worked on together
constexpr int kBlock = 16;                              // output channels worked on together
constexpr int kBlocks = kChannels2 / kBlock;
constexpr int kRowsOfA = 6;                             // of the register-blocked product

using Floats = float __attribute__((vector_size(32)));
using FloatsAnywhere = float __attribute__((vector_size(32), aligned(4), may_alias));
using Ints = std::int32_t __attribute__((vector_size(32)));
using Bytes = std::uint8_t __attribute__((vector_size(8)));

inline Floats load(const float* from) { return *reinterpret_cast<const FloatsAnywhere*>(from); }
inline void store(float* to, Floats value) { *reinterpret_cast<FloatsAnywhere*>(to) = value; }
inline Floats all(float v) { return Floats{v, v, v, v, v, v, v, v}; }
inline Floats larger(Floats a, Floats b) { return a > b ? a : b; }

// One bit per lane in which the comparison held.
inline unsigned bits(Ints held) {
#if defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_ps(reinterpret_cast<__m256>(held)));
#else
  unsigned result = 0;
  for (int lane = 0; lane < kLanes; ++lane) result |= (held[lane] ? 1u : 0u) << lane;
  return result;
#endif
}

// Which place of each pool window passes its gradient on: for each of the four places, in reading
// order, one bit per channel. A channel without a bit in any of the four passes nothing on.
struct Winners {
  std::uint64_t place[4];
};

struct Dropout {
  const std::uint8_t* bytes;  // one per feature, or null for no dropout
  int below;                  // a feature is dropped where its byte is below this
  float scale;                // what the others are multiplied by
};

// One gradient on its way back: where its 3x3 patch begins in a plane, and how much it is.
struct Arrival {
  std::int32_t corner;
  float gradient;
};

struct Workspace {
  alignas(64) float hidden[kGroups * kPlane];
  alignas(64) float hidden_gradient[kPlane];
  alignas(64) float columns[kPatch * kHidden * kLanes];
  alignas(64) float inputs[kFrequencies * kTiles * kChannels1];
  alignas(64) float products[kFrequencies * kTiles * kBlock];
  alignas(64) float kernels[kBlocks * kFrequencies * kChannels1 * kBlock];
  alignas(64) float weights1[kGroups * kTaps * kLanes];
  alignas(64) float weights2[kGroups * kChannels2 * kTaps * kLanes];
  alignas(64) float gradient1[kGroups * kTaps * kLanes];
  alignas(64) float gradient2[kGroups * kChannels2 * kTaps * kLanes];
  alignas(64) float gradient_bias1[kChannels1];
  alignas(64) float gradient_bias2[kChannels2];
  Arrival arrivals[kChannels2][kWindows];
  int arrived[kChannels2];
};

// Kept by the thread from call to call: making the pages anew would cost as much as an image.
Workspace* workspace() {
  static thread_local std::unique_ptr<Workspace> kept;
  if (!kept) kept.reset(new (std::nothrow) Workspace);
  return kept.get();
}

// ---------------------------------------------------------------------------------------------
// First convolution

// From [channel][tap], torch's order, to [group][tap][lane].
void arrange_weights1(const float* weights, float* to) {
  for (int channel = 0; channel < kChannels1; ++channel)
    for (int tap = 0; tap < kTaps; ++tap)
      to[(channel / kLanes * kTaps + tap) * kLanes + channel % kLanes] =
          weights[channel * kTaps + tap];
}

// One group of eight channels of relu(conv(image)); two pixels at a time share what they read.
void convolve1(const float* image, const float* weights, const float* bias, float* plane) {
  Floats kernel[kTaps];
  for (int tap = 0; tap < kTaps; ++tap) kernel[tap] = load(weights + tap * kLanes);
  const Floats start = load(bias), zero = all(0.0f);
  for (int y = 0; y < kHidden; ++y)
    for (int x = 0; x < kHidden; x += 2) {
      Floats left = start, right = start;
      for (int ky = 0; ky < 3; ++ky) {
        const float* row = image + (y + ky) * kImage + x;
        const Floats p0 = all(row[0]), p1 = all(row[1]), p2 = all(row[2]), p3 = all(row[3]);
        const Floats* k = kernel + ky * 3;
        left += k[0] * p0;
        right += k[0] * p1;
        left += k[1] * p1;
        right += k[1] * p2;
        left += k[2] * p2;
        right += k[2] * p3;
      }
      float* to = plane + (y * kHidden + x) * kLanes;
      store(to, larger(left, zero));
      store(to + kLanes, larger(right, zero));
    }
}

void convolve1_all(const float* image, const float* bias, Workspace& work) {
  for (int group = 0; group < kGroups; ++group)
    convolve1(image, work.weights1 + group * kTaps * kLanes, bias + group * kLanes,
              work.hidden + group * kPlane);
}

// ---------------------------------------------------------------------------------------------
// Second convolution, forward: Winograd F(4x4, 3x3), interpolation at 0, 1, -1, 2, -2, infinity

// G g G' for every kernel, to [block][frequency][input channel][output channel of the block].
void arrange_kernels(const float* weights, float* to) {
  constexpr float G[kPatch][3] = {{1 / 4.f, 0, 0},
                                  {-1 / 6.f, -1 / 6.f, -1 / 6.f},
                                  {-1 / 6.f, 1 / 6.f, -1 / 6.f},
                                  {1 / 24.f, 1 / 12.f, 1 / 6.f},
                                  {1 / 24.f, -1 / 12.f, 1 / 6.f},
                                  {0, 0, 1}};
  for (int out = 0; out < kChannels2; ++out)
    for (int in = 0; in < kChannels1; ++in) {
      const float* g = weights + (out * kChannels1 + in) * kTaps;
      for (int a = 0; a < kPatch; ++a) {
        float row[3];
        for (int c = 0; c < 3; ++c) row[c] = G[a][0] * g[c] + G[a][1] * g[3 + c] + G[a][2] * g[6 + c];
        for (int b = 0; b < kPatch; ++b) {
          const int frequency = a * kPatch + b;
          to[((out / kBlock * kFrequencies + frequency) * kChannels1 + in) * kBlock + out % kBlock] =
              row[0] * G[b][0] + row[1] * G[b][1] + row[2] * G[b][2];
        }
      }
    }
}

// B' d: six values in, six frequencies out.
inline void to_frequencies(const Floats (&d)[kPatch], Floats (&out)[kPatch]) {
  const Floats even = d[4] - 4.0f * d[2], odd = d[3] - 4.0f * d[1];
  const Floats near = d[4] - d[2], far = 2.0f * (d[3] - d[1]);
  out[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
  out[1] = even + odd;
  out[2] = even - odd;
  out[3] = near + far;
  out[4] = near - far;
  out[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
}

// A' m: six frequencies in, four outputs out.
inline void from_frequencies(const Floats (&m)[kPatch], Floats (&out)[kTile]) {
  const Floats sum1 = m[1] + m[2], difference1 = m[1] - m[2];
  const Floats sum2 = m[3] + m[4], difference2 = m[3] - m[4];
  out[0] = m[0] + sum1 + sum2;
  out[1] = difference1 + 2.0f * difference2;
  out[2] = sum1 + 4.0f * sum2;
  out[3] = difference1 + 8.0f * difference2 + m[5];
}

// One row of tiles of one plane to frequencies. Down the columns first, since neighbouring tiles
// share two of their six columns; then along the rows.
void transform_inputs(const float* plane, int tile_row, float* columns, float* to) {
  const float* top = plane + tile_row * kTile * kHidden * kLanes;
  for (int x = 0; x < kHidden; ++x) {
    Floats d[kPatch], f[kPatch];
    for (int a = 0; a < kPatch; ++a) d[a] = load(top + (a * kHidden + x) * kLanes);
    to_frequencies(d, f);
    for (int a = 0; a < kPatch; ++a) store(columns + (a * kHidden + x) * kLanes, f[a]);
  }
  for (int tile = 0; tile < kTilesAcross; ++tile)
    for (int a = 0; a < kPatch; ++a) {
      Floats d[kPatch], f[kPatch];
      for (int b = 0; b < kPatch; ++b)
        d[b] = load(columns + (a * kHidden + tile * kTile + b) * kLanes);
      to_frequencies(d, f);
      for (int b = 0; b < kPatch; ++b)
        store(to + ((a * kPatch + b) * kTiles + tile) * kChannels1, f[b]);
    }
}

// C = A B for six tiles: A is [6][32], B is [32][16], C is [6][16]; twelve registers hold C.
inline void multiply(const float* a, const float* b, float* c) {
  Floats sum[kRowsOfA][2];
  for (int row = 0; row < kRowsOfA; ++row) sum[row][0] = sum[row][1] = all(0.0f);
  for (int k = 0; k < kChannels1; ++k) {
    const Floats b0 = load(b + k * kBlock), b1 = load(b + k * kBlock + kLanes);
#pragma GCC unroll 6
    for (int row = 0; row < kRowsOfA; ++row) {
      const Floats value = all(a[row * kChannels1 + k]);
      sum[row][0] += value * b0;
      sum[row][1] += value * b1;
    }
  }
#pragma GCC unroll 6
  for (int row = 0; row < kRowsOfA; ++row) {
    store(c + row * kBlock, sum[row][0]);
    store(c + row * kBlock + kLanes, sum[row][1]);
  }
}

// Max-pool one window for eight channels, add the bias, relu, dropout; note who won. The first of
// equal values wins, and relu passes nothing at zero, both as in torch.
template <bool kTraining>
inline void pool(Floats v0, Floats v1, Floats v2, Floats v3, Floats bias, const Dropout& dropout,
                 std::ptrdiff_t feature, float* out, Winners* winners) {
  const Floats top = larger(v0, v1), bottom = larger(v2, v3);
  Floats value = larger(larger(top, bottom) + bias, all(0.0f));
  if (kTraining) {
    Ints live = value > all(0.0f);
    if (dropout.bytes) {
      Bytes drawn;
      std::memcpy(&drawn, dropout.bytes + feature, sizeof drawn);
      const Ints kept = __builtin_convertvector(drawn, Ints) >= dropout.below;
      value *= kept ? all(dropout.scale) : all(0.0f);
      live &= kept;
    }
    const unsigned lives = bits(live), low = bits(bottom > top);
    const unsigned right0 = bits(v1 > v0), right1 = bits(v3 > v2);
    const int window = feature / kChannels2, byte = feature % kChannels2 / kLanes;
    auto* to = reinterpret_cast<std::uint8_t*>(winners[window].place) + byte;
    to[0] = static_cast<std::uint8_t>(lives & ~low & ~right0);
    to[8] = static_cast<std::uint8_t>(lives & ~low & right0);
    to[16] = static_cast<std::uint8_t>(lives & low & ~right1);
    to[24] = static_cast<std::uint8_t>(lives & low & right1);
  }
  store(out + feature, value);
}

// One tile of eight channels from frequencies to outputs, which are pooled at once.
template <bool kTraining>
inline void finish_tile(const float* products, Floats bias, const Dropout& dropout,
                        std::ptrdiff_t feature, float* out, Winners* winners) {
  Floats half[kTile][kPatch];
  for (int b = 0; b < kPatch; ++b) {
    Floats m[kPatch], column[kTile];
    for (int a = 0; a < kPatch; ++a) m[a] = load(products + (a * kPatch + b) * kTiles * kBlock);
    from_frequencies(m, column);
    for (int a = 0; a < kTile; ++a) half[a][b] = column[a];
  }
  for (int pair = 0; pair < 2; ++pair) {
    Floats upper[kTile], lower[kTile];
    from_frequencies(half[2 * pair], upper);
    from_frequencies(half[2 * pair + 1], lower);
    for (int x = 0; x < 2; ++x)
      pool<kTraining>(upper[2 * x], upper[2 * x + 1], lower[2 * x], lower[2 * x + 1], bias, dropout,
                      feature + (pair * kPooled + x) * kChannels2, out, winners);
  }
}

template <bool kTraining>
void convolve2(Workspace& work, const float* bias, const Dropout& dropout, float* out,
               Winners* winners) {
  for (int first = 0; first < kTilesAcross; first += kTileRows) {
    for (int row = 0; row < kTileRows; ++row)
      for (int group = 0; group < kGroups; ++group)
        transform_inputs(work.hidden + group * kPlane, first + row, work.columns,
                         work.inputs + row * kTilesAcross * kChannels1 + group * kLanes);
    for (int block = 0; block < kBlocks; ++block) {
      for (int f = 0; f < kFrequencies; ++f)
        for (int tile = 0; tile < kTiles; tile += kRowsOfA)
          multiply(work.inputs + (f * kTiles + tile) * kChannels1,
                   work.kernels + (block * kFrequencies + f) * kChannels1 * kBlock,
                   work.products + (f * kTiles + tile) * kBlock);
      for (int tile = 0; tile < kTiles; ++tile)
        for (int channel = 0; channel < kBlock; channel += kLanes) {
          const int y = (first + tile / kTilesAcross) * 2, x = tile % kTilesAcross * 2;
          const int at = block * kBlock + channel;
          finish_tile<kTraining>(work.products + tile * kBlock + channel, load(bias + at), dropout,
                                 (y * kPooled + x) * kChannels2 + at, out, winners);
        }
    }
  }
}

// ---------------------------------------------------------------------------------------------
// Backward

// From [out][in][tap], torch's order, to [group][out][tap][lane].
void arrange_weights2(const float* weights, float* to) {
  for (int out = 0; out < kChannels2; ++out)
    for (int in = 0; in < kChannels1; ++in)
      for (int tap = 0; tap < kTaps; ++tap)
        to[((in / kLanes * kChannels2 + out) * kTaps + tap) * kLanes + in % kLanes] =
            weights[(out * kChannels1 + in) * kTaps + tap];
}

// Where each output channel's gradients arrive, listed channel by channel.
void list_arrivals(const Winners* winners, const float* gradient, Workspace& work) {
  std::memset(work.arrived, 0, sizeof work.arrived);
  for (int window = 0; window < kWindows; ++window) {
    const float* from = gradient + window * kChannels2;
    const int y = window / kPooled * 2, x = window % kPooled * 2;
    for (int place = 0; place < 4; ++place) {
      const int corner = ((y + place / 2) * kHidden + x + place % 2) * kLanes;
      for (std::uint64_t left = winners[window].place[place]; left; left &= left - 1) {
        const int channel = __builtin_ctzll(left);
        work.arrivals[channel][work.arrived[channel]++] = {corner, from[channel]};
      }
    }
  }
}

// Add one image's part to the gradient of the second bias.
void add_bias2(Workspace& work) {
  for (int channel = 0; channel < kChannels2; ++channel) {
    float sum = 0;
    for (int i = 0; i < work.arrived[channel]; ++i) sum += work.arrivals[channel][i].gradient;
    work.gradient_bias2[channel] += sum;
  }
}

// Add one image's part to the gradient of the second weights, for one group of input channels:
// nine registers hold a 3x3 kernel while all of an output channel's gradients go by.
void add_weights2(const Workspace& work, const float* plane, float* gradient) {
  for (int channel = 0; channel < kChannels2; ++channel) {
    Floats sum[kTaps];
    for (int tap = 0; tap < kTaps; ++tap) sum[tap] = all(0.0f);
    const Arrival* arrival = work.arrivals[channel];
    for (const Arrival* end = arrival + work.arrived[channel]; arrival != end; ++arrival) {
      const Floats value = all(arrival->gradient);
      const float* patch = plane + arrival->corner;
#pragma GCC unroll 9
      for (int tap = 0; tap < kTaps; ++tap)
        sum[tap] += value * load(patch + (tap / 3 * kHidden + tap % 3) * kLanes);
    }
    float* to = gradient + channel * kTaps * kLanes;
    for (int tap = 0; tap < kTaps; ++tap)
      store(to + tap * kLanes, load(to + tap * kLanes) + sum[tap]);
  }
}

// Add to a 4x4 patch of the plane's gradient what one place of a pool window passes on.
template <int kDown, int kRight>
inline void spread_place(std::uint64_t channels, const float* gradient, const float* weights,
                         Floats (&patch)[4][4]) {
  for (; channels; channels &= channels - 1) {
    const int channel = __builtin_ctzll(channels);
    const Floats value = all(gradient[channel]);
    const float* kernel = weights + channel * kTaps * kLanes;
#pragma GCC unroll 9
    for (int tap = 0; tap < kTaps; ++tap)
      patch[kDown + tap / 3][kRight + tap % 3] += value * load(kernel + tap * kLanes);
  }
}

// The gradient of one plane, from the gradients of all pool windows.
void spread(const Winners* winners, const float* gradient, const float* weights, float* plane) {
  std::memset(plane, 0, kPlane * sizeof(float));
  for (int window = 0; window < kWindows; ++window) {
    const float* from = gradient + window * kChannels2;
    const std::uint64_t* place = winners[window].place;
    float* corner = plane + (window / kPooled * 2 * kHidden + window % kPooled * 2) * kLanes;
    Floats patch[4][4];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i)
      patch[i / 4][i % 4] = load(corner + (i / 4 * kHidden + i % 4) * kLanes);
    spread_place<0, 0>(place[0], from, weights, patch);
    spread_place<0, 1>(place[1], from, weights, patch);
    spread_place<1, 0>(place[2], from, weights, patch);
    spread_place<1, 1>(place[3], from, weights, patch);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i)
      store(corner + (i / 4 * kHidden + i % 4) * kLanes, patch[i / 4][i % 4]);
  }
}

// Add one image's part to the gradients of the first weights and bias, for one group.
void add_weights1(const float* image, const float* plane, const float* plane_gradient,
                  float* gradient, float* bias_gradient) {
  Floats sum[kTaps], bias = all(0.0f);
  const Floats zero = all(0.0f);
  for (int tap = 0; tap < kTaps; ++tap) sum[tap] = zero;
  for (int y = 0; y < kHidden; ++y)
    for (int x = 0; x < kHidden; x += 2) {
      const int at = (y * kHidden + x) * kLanes;
      const Floats left = load(plane + at) > zero ? load(plane_gradient + at) : zero;
      const Floats right =
          load(plane + at + kLanes) > zero ? load(plane_gradient + at + kLanes) : zero;
      bias += left + right;
#pragma GCC unroll 3
      for (int ky = 0; ky < 3; ++ky) {
        const float* row = image + (y + ky) * kImage + x;
        const Floats p0 = all(row[0]), p1 = all(row[1]), p2 = all(row[2]), p3 = all(row[3]);
        sum[ky * 3] += left * p0;
        sum[ky * 3 + 1] += left * p1;
        sum[ky * 3 + 2] += left * p2;
        sum[ky * 3] += right * p1;
        sum[ky * 3 + 1] += right * p2;
        sum[ky * 3 + 2] += right * p3;
      }
    }
  for (int tap = 0; tap < kTaps; ++tap)
    store(gradient + tap * kLanes, load(gradient + tap * kLanes) + sum[tap]);
  store(bias_gradient, load(bias_gradient) + bias);
}

void backward_image(const float* image, const float* bias1, const Winners* winners,
                    const float* gradient, Workspace& work) {
  // Computing these again is quicker than fetching them from main memory.
  convolve1_all(image, bias1, work);
  list_arrivals(winners, gradient, work);
  add_bias2(work);
  constexpr int kOfGroup = kChannels2 * kTaps * kLanes;
  for (int group = 0; group < kGroups; ++group) {
    const float* plane = work.hidden + group * kPlane;
    add_weights2(work, plane, work.gradient2 + group * kOfGroup);
    spread(winners, gradient, work.weights2 + group * kOfGroup, work.hidden_gradient);
    add_weights1(image, plane, work.hidden_gradient, work.gradient1 + group * kTaps * kLanes,
                 work.gradient_bias1 + group * kLanes);
  }
}

void clear_gradients(Workspace& work) {
  std::memset(work.gradient1, 0, sizeof work.gradient1);
  std::memset(work.gradient2, 0, sizeof work.gradient2);
  std::memset(work.gradient_bias1, 0, sizeof work.gradient_bias1);
  std::memset(work.gradient_bias2, 0, sizeof work.gradient_bias2);
}

// To torch's order. Dropout's scale is the same for all that passed, so it is applied here, once.
void write_gradients(const Workspace& work, float scale, float* weights1, float* bias1,
                     float* weights2, float* bias2) {
  for (int channel = 0; channel < kChannels1; ++channel) {
    bias1[channel] = scale * work.gradient_bias1[channel];
    for (int tap = 0; tap < kTaps; ++tap)
      weights1[channel * kTaps + tap] =
          scale * work.gradient1[(channel / kLanes * kTaps + tap) * kLanes + channel % kLanes];
  }
  for (int out = 0; out < kChannels2; ++out) {
    bias2[out] = scale * work.gradient_bias2[out];
    for (int in = 0; in < kChannels1; ++in)
      for (int tap = 0; tap < kTaps; ++tap)
        weights2[(out * kChannels1 + in) * kTaps + tap] =
            scale *
            work.gradient2[((in / kLanes * kChannels2 + out) * kTaps + tap) * kLanes + in % kLanes];
  }
}

float largest(const float* values, std::ptrdiff_t count) {
  float result = 0;
  // Written so that a NaN, which compares as neither, becomes the result and stays it.
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const float size = values[i] < 0 ? -values[i] : values[i];
    if (!(size <= result)) result = size;
    if (result != result) return result;
  }
  return result;
}

}  // namespace

extern "C" {

// What this was compiled from, so that a library left over from other source is not used.
const char* fused_source() { return FUSED_SOURCE; }

// Whether this processor can run what this was compiled to.
int fused_runs_here() {
#if defined(__AVX2__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return 1;
#endif
}

// Whether no step of the forward pass can overflow. Winograd's transforms multiply sizes by at most
// 10^2 and 19^2 and the product sums 32 terms, which together is less than 2e6.
int fused_in_range(std::ptrdiff_t images, const float* image, const float* weights1,
                   const float* bias1, const float* weights2, const float* bias2) {
  const double hidden = kTaps * double(largest(image, images * kPixels)) *
                            largest(weights1, kChannels1 * kTaps) +
                        largest(bias1, kChannels1);
  const double out = 2e6 * hidden * largest(weights2, kChannels2 * kChannels1 * kTaps) +
                     largest(bias2, kChannels2);
  return hidden < 1e30 && out < 1e37;
}

// Features [images][12][12][64] of images [images][28][28]. With winners, for training: dropout is
// applied (a byte per feature; null for none) and what backward needs is noted, [images][144][4]
// words. Without, for evaluation. Gives 0, or 1 when memory ran out.
int fused_forward(std::ptrdiff_t images, const float* image, const float* weights1,
                  const float* bias1, const float* weights2, const float* bias2,
                  const std::uint8_t* bytes, int drop_below, float scale, float* features,
                  std::uint64_t* winners) {
  Workspace* work = workspace();
  if (!work) return 1;
  arrange_weights1(weights1, work->weights1);
  arrange_kernels(weights2, work->kernels);
  for (std::ptrdiff_t i = 0; i < images; ++i) {
    convolve1_all(image + i * kPixels, bias1, *work);
    float* out = features + i * kFeatures;
    const Dropout dropout{bytes ? bytes + i * kFeatures : nullptr, drop_below, scale};
    if (winners)
      convolve2<true>(*work, bias2, dropout, out,
                      reinterpret_cast<Winners*>(winners) + i * kWindows);
    else
      convolve2<false>(*work, bias2, dropout, out, nullptr);
  }
  return 0;
}

// Gradients of the weights and biases, from the gradient of the features. Gives 0, or 1 when memory
// ran out.
int fused_backward(std::ptrdiff_t images, const float* image, const float* weights1,
                   const float* bias1, const float* weights2, const std::uint64_t* winners,
                   const float* gradient, float scale, float* gradient_weights1,
                   float* gradient_bias1, float* gradient_weights2, float* gradient_bias2) {
  Workspace* work = workspace();
  if (!work) return 1;
  arrange_weights1(weights1, work->weights1);
  arrange_weights2(weights2, work->weights2);
  clear_gradients(*work);
  for (std::ptrdiff_t i = 0; i < images; ++i)
    backward_image(image + i * kPixels, bias1,
                   reinterpret_cast<const Winners*>(winners) + i * kWindows,
                   gradient + i * kFeatures, *work);
  write_gradients(*work, scale, gradient_weights1, gradient_bias1, gradient_weights2,
                  gradient_bias2);
  return 0;
}

}  // extern "C"
