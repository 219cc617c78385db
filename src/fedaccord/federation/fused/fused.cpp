// The paper's network up to its hidden layer, and smaller networks whole (perceptron.hpp), for one
// core. The paper's is
//
//     conv 3x3 (1 -> 32), relu, conv 3x3 (32 -> 64), max-pool 2x2, relu, dropout,
//     linear (9216 -> 128), relu
//
// A plain C interface for ctypes; no Python and no torch. What makes it fast:
//
//   * Forward, the second convolution is Winograd's F(4x4, 3x3): a quarter of the products.
//   * The convolutions take one image at a time, so nothing in between leaves the core's own cache.
//   * Backward, a pool window hands its gradient to one of its four places, and only if relu and
//     dropout let it through. Those few places are kept as bits, and only they are worked on.
//   * Of the 9216 features most are zero, and so are most gradients of the 128 hidden units (relu,
//     dropout): the linear layer leaves the zeros out, in all three of its products.
//
// Layout. "Plane" means the first convolution's output (or its gradient) for one group of eight
// channels: [26][26][8], small enough for the first-level cache. Features are position-major:
// [12][12][64] for each image. Weights come and gradients go in torch's order.
//
// Zeros may be left out only where all numbers are finite. The forward pass makes sure of that for
// everything it is given and says so if not; the caller then leaves the work to torch.

#include <new>

#include "backward.hpp"
#include "common.hpp"
#include "forward.hpp"
#include "linear.hpp"
#include "perceptron.hpp"

#ifndef FUSED_SOURCE
#define FUSED_SOURCE "unknown"
#endif

namespace {

// A bound on the size of everything in the convolutions; infinite or NaN if an input is.
// Winograd's transforms multiply sizes by at most 10 * 10 and 19 * 19, and the product between
// them sums 32 terms: together less than 2e6.
double bound_features(std::ptrdiff_t images, const float* image, const Parameters& given) {
  const double hidden = double{kTaps} * largest(image, images * kPixels) *
                            largest(given.weights1, kChannels1 * kTaps) +
                        largest(given.bias1, kChannels1);
  return 2e6 * hidden * (1 + double{largest(given.weights2, kChannels2 * kChannels1 * kTaps)}) +
         largest(given.bias2, kChannels2);
}

// How many rows a network of one hidden layer takes at a time: their layers fit the cache.
constexpr std::ptrdiff_t kRowsAtATime = 96;

// Far enough below the largest float for the sums that bounds do not count.
constexpr double kLargest = 1e37;

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

enum Outcome { kDone = 0, kNoMemory = 1, kOutOfRange = 2 };

// The hidden layer [images][128] of images [images][28][28], and the features [images][12][12][64]
// that backward needs. With winners [images][144][4], for training: dropout is applied (bytes, one
// per feature; null for none) and what else backward needs is noted. Without, for evaluation, there
// is no dropout.
int fused_forward(std::ptrdiff_t images, const float* image, const Parameters* given,
                  const std::uint8_t* bytes, int drop_below, float scale, float* features,
                  std::uint64_t* winners, float* hidden) try {
  Workspace& work = workspace();
  const double bound = bound_features(images, image, *given) * scale;
  if (!(bound < kLargest)) return kOutOfRange;
  convolve(images, image, *given, {bytes, drop_below, scale}, features,
           reinterpret_cast<Winners*>(winners), work);
  const double most = linear(images, features, given->weights3, given->bias3, hidden, work);
  const double bound_hidden = kFeatures * bound * most + largest(given->bias3, kUnits);
  return bound_hidden < kLargest ? kDone : kOutOfRange;
} catch (const std::bad_alloc&) {
  return kNoMemory;
}

// Gradients of all parameters from the gradient of the hidden layer, after a forward pass in range.
// Out of range is a gradient that is so itself: to leave out what is zero or dropped is then wrong.
int fused_backward(std::ptrdiff_t images, const float* image, const Parameters* given,
                   const float* features, const std::uint64_t* winners, const float* hidden,
                   const float* gradient, float scale, const Parameters* gradients) try {
  if (!(largest(gradient, images * kUnits) < kLargest)) return kOutOfRange;
  Workspace& work = workspace();
  linear_backward(images, features, hidden, gradient, gradients->weights3, gradients->bias3, work);
  arrange_weights1(given->weights1, work.weights1);
  arrange_weights2(given->weights2, work.weights2);
  clear_gradients(work);
  for (std::ptrdiff_t i = 0; i < images; ++i) {
    features_backward(given->weights3, hidden + i * kUnits, gradient + i * kUnits, work);
    backward_image(image + i * kPixels, given->bias1,
                   reinterpret_cast<const Winners*>(winners) + i * kWindows,
                   work.features_gradient, work);
  }
  write_gradients(work, scale, *gradients);
  return kDone;
} catch (const std::bad_alloc&) {
  return kNoMemory;
}

// The scores [rows][classes] of points [rows][inputs], some rows at a time.
int perceptron_scores(const Perceptron* given, std::ptrdiff_t rows, const float* points,
                      float* scores) try {
  Layers& work = layers();
  work.take_weights(*given);
  for (std::ptrdiff_t first = 0; first < rows; first += kRowsAtATime) {
    const std::ptrdiff_t some = std::min(rows - first, kRowsAtATime);
    work.pass(*given, some, {points + first * given->inputs, given->inputs, 1});
    write_rows(some, given->classes, work.scores, padded(given->classes),
               scores + first * given->classes);
  }
  return kDone;
} catch (const std::bad_alloc&) {
  return kNoMemory;
}

// The cross-entropy of each of the clients' samples, and the gradient of the mean of all.
int perceptron_gradient(const Perceptron* given, std::ptrdiff_t clients, const Samples* samples,
                        const Perceptron* gradient, float* losses) try {
  Layers& work = layers();
  const std::ptrdiff_t rows = gather(clients, samples, given->inputs, work);
  work.take_weights(*given);
  work.pass(*given, rows, {work.inputs.data(), padded(given->inputs), 1});
  find_losses(rows, given->classes, work, losses);
  find_gradient(*given, rows, *gradient, work);
  return kDone;
} catch (const std::bad_alloc&) {
  return kNoMemory;
}

}  // extern "C"
