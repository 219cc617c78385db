// Sizes, vectors and the memory that all parts of the native block share.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Everything is in a namespace without a name, so that the library shows its C functions alone.
namespace {

constexpr int kLanes = 8;        // floats in a vector register
constexpr int kCacheLine = 16;   // floats in a line of the cache
constexpr int kImage = 28;       // side of an image
constexpr int kInner = 26;       // side between the convolutions
constexpr int kPooled = 12;      // side after the second and the pool
constexpr int kTaps = 9;         // of a 3x3 kernel
constexpr int kChannels1 = 32;   // out of the first convolution
constexpr int kChannels2 = 64;   // out of the second
constexpr int kGroups = kChannels1 / kLanes;
constexpr int kWindows = kPooled * kPooled;
constexpr int kFeatures = kWindows * kChannels2;
constexpr int kPlane = kInner * kInner * kLanes;
constexpr int kPixels = kImage * kImage;
constexpr int kUnits = 128;                  // of the hidden layer
constexpr int kHalf = kUnits / 2;            // what eight registers hold
constexpr int kStretch = kFeatures / 4;      // features of a sum that is made at a time

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

// The size of a float as an integer, in the same order, with NaN above all.
inline Ints sizes(Floats values) { return reinterpret_cast<Ints>(values) & 0x7fffffff; }
inline Ints larger(Ints a, Ints b) { return a > b ? a : b; }

// The largest size among those, NaN if there is one.
inline float largest_lane(Ints sizes) {
  std::int32_t most = 0;
  for (int lane = 0; lane < kLanes; ++lane) most = std::max(most, std::int32_t{sizes[lane]});
  float result;
  std::memcpy(&result, &most, sizeof result);
  return result;
}

// The same of values as many as a multiple of eight.
float largest(const float* values, std::ptrdiff_t count) {
  Ints most{};
  for (std::ptrdiff_t i = 0; i < count; i += kLanes) most = larger(most, sizes(load(values + i)));
  return largest_lane(most);
}

// The network's parameters, or their gradients, in torch's order.
struct Parameters {
  float *weights1, *bias1, *weights2, *bias2, *weights3, *bias3;
};

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

// One summand of a sparse product: which row, and how often.
struct Term {
  std::int32_t row;
  float factor;
};

// One gradient on its way back: where its 3x3 patch begins in a plane, and how much it is.
struct Arrival {
  std::int32_t corner;
  float gradient;
};

struct Workspace {
  alignas(64) float planes[kGroups * kPlane];
  alignas(64) float plane_gradient[kPlane];
  alignas(64) float columns[kPatch * kInner * kLanes];
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
  alignas(64) float turned[2][kChannels2 * kHalf];
  alignas(64) float features_gradient[kFeatures];
  std::vector<std::uint64_t> live;  // for each image, which features of a window are not zero
  std::vector<Term> terms;
};

// Kept by the thread from call to call: making the pages anew would cost as much as an image.
Workspace& workspace() {
  static thread_local std::unique_ptr<Workspace> kept;
  if (!kept) kept.reset(new Workspace);
  return *kept;
}

}  // namespace
