// The convolutions, forward: the first directly, the second by Winograd's F(4x4, 3x3).

#pragma once

#include "common.hpp"

namespace {

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
  for (int y = 0; y < kInner; ++y)
    for (int x = 0; x < kInner; x += 2) {
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
      float* to = plane + (y * kInner + x) * kLanes;
      store(to, larger(left, zero));
      store(to + kLanes, larger(right, zero));
    }
}

void convolve1_all(const float* image, const float* bias, Workspace& work) {
  for (int group = 0; group < kGroups; ++group)
    convolve1(image, work.weights1 + group * kTaps * kLanes, bias + group * kLanes,
              work.planes + group * kPlane);
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
  const float* top = plane + tile_row * kTile * kInner * kLanes;
  for (int x = 0; x < kInner; ++x) {
    Floats d[kPatch], f[kPatch];
    for (int a = 0; a < kPatch; ++a) d[a] = load(top + (a * kInner + x) * kLanes);
    to_frequencies(d, f);
    for (int a = 0; a < kPatch; ++a) store(columns + (a * kInner + x) * kLanes, f[a]);
  }
  for (int tile = 0; tile < kTilesAcross; ++tile)
    for (int a = 0; a < kPatch; ++a) {
      Floats d[kPatch], f[kPatch];
      for (int b = 0; b < kPatch; ++b)
        d[b] = load(columns + (a * kInner + tile * kTile + b) * kLanes);
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
                 int feature, float* out, Winners* winners) {
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
    auto* to = reinterpret_cast<std::uint8_t*>(winners[window].place) + byte;  // little-endian
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
                        int feature, float* out, Winners* winners) {
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
        transform_inputs(work.planes + group * kPlane, first + row, work.columns,
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

void convolve(std::ptrdiff_t images, const float* image, const Parameters& given,
              const Dropout& dropout, float* features, Winners* winners, Workspace& work) {
  arrange_weights1(given.weights1, work.weights1);
  arrange_kernels(given.weights2, work.kernels);
  for (std::ptrdiff_t i = 0; i < images; ++i) {
    convolve1_all(image + i * kPixels, given.bias1, work);
    Dropout mine = dropout;
    if (mine.bytes) mine.bytes += i * kFeatures;
    float* out = features + i * kFeatures;
    if (winners)
      convolve2<true>(work, given.bias2, mine, out, winners + i * kWindows);
    else
      convolve2<false>(work, given.bias2, mine, out, nullptr);
  }
}

}  // namespace
