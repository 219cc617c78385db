// The linear layer, which leaves zeros out: of the features, and of the gradient.

#pragma once

#include <numeric>

#include "common.hpp"

namespace {

// Weights [128][9216] of the 64 features of a window, turned to [half][feature][64 units]; gives
// the size of the largest.
float turn_weights(const float* weights, int window, float (&to)[2][kChannels2 * kHalf]) {
  Ints most{};
  for (int unit = 0; unit < kUnits; ++unit) {
    const float* row = weights + std::ptrdiff_t{unit} * kFeatures + window * kChannels2;
    float* column = to[unit / kHalf] + unit % kHalf;
    // Of rows so far apart the processor does not guess that the next window comes next.
    for (int ahead = 0; ahead < kChannels2; ahead += kCacheLine)
      __builtin_prefetch(row + kChannels2 + ahead, 0, 2);
    for (int feature = 0; feature < kChannels2; ++feature) column[feature * kHalf] = row[feature];
    for (int feature = 0; feature < kChannels2; feature += kLanes)
      most = larger(most, sizes(load(row + feature)));
  }
  return largest_lane(most);
}

// Which of the 64 features of a window are not zero, one bit each.
inline std::uint64_t live_features(const float* features) {
  std::uint64_t result = 0;
  for (int i = 0; i < kChannels2 / kLanes; ++i)
    result |= std::uint64_t{bits(load(features + i * kLanes) != all(0.0f))} << (i * kLanes);
  return result;
}

// Add what the live features of one window give to 64 hidden units. Summed by themselves first,
// as many small sums are more exact than one long one.
inline void add_window(std::uint64_t live, const float* features, const float* weights,
                       float* hidden) {
  constexpr int kRegisters = kHalf / kLanes;
  Floats sum[kRegisters];
  for (int i = 0; i < kRegisters; ++i) sum[i] = all(0.0f);
  for (; live; live &= live - 1) {
    const int feature = __builtin_ctzll(live);
    const Floats value = all(features[feature]);
    const float* row = weights + feature * kHalf;
#pragma GCC unroll 8
    for (int i = 0; i < kRegisters; ++i) sum[i] += value * load(row + i * kLanes);
  }
  for (int i = 0; i < kRegisters; ++i)
    store(hidden + i * kLanes, load(hidden + i * kLanes) + sum[i]);
}

// hidden = relu(features weights' + bias); gives the size of the largest weight.
float linear(std::ptrdiff_t images, const float* features, const float* weights, const float* bias,
             float* hidden, Workspace& work) {
  float most = 0;
  work.live.resize(images);
  for (std::ptrdiff_t i = 0; i < images; ++i)
    std::copy(bias, bias + kUnits, hidden + i * kUnits);
  for (int window = 0; window < kWindows; ++window) {
    const float here = turn_weights(weights, window, work.turned);
    if (!(here <= most)) most = here;
    if (most != most) return most;
    const float* of_window = features + window * kChannels2;
    for (std::ptrdiff_t i = 0; i < images; ++i)
      work.live[i] = live_features(of_window + i * kFeatures);
    for (int half = 0; half < 2; ++half)
      for (std::ptrdiff_t i = 0; i < images; ++i)
        if (work.live[i])
          add_window(work.live[i], of_window + i * kFeatures, work.turned[half],
                     hidden + i * kUnits + half * kHalf);
  }
  for (std::ptrdiff_t i = 0; i < images * kUnits; i += kLanes)
    store(hidden + i, larger(load(hidden + i), all(0.0f)));
  return most;
}

// List where a row (or, with a stride, a column) of the hidden layer's gradient is not zero and relu
// lets it through.
const Term* list_terms(std::ptrdiff_t count, std::ptrdiff_t stride, const float* hidden,
                       const float* gradient, Term* to) {
  for (std::ptrdiff_t i = 0; i < count; ++i)
    if (hidden[i * stride] > 0 && gradient[i * stride] != 0)
      *to++ = {static_cast<std::int32_t>(i), gradient[i * stride]};
  return to;
}

// Add so many terms' rows of a matrix with 9216 columns, as far as one stretch goes.
template <int kTerms>
inline void add_rows(const Term* terms, const float* matrix, float* to) {
  const float* row[kTerms];
  Floats factor[kTerms];
  for (int i = 0; i < kTerms; ++i) {
    row[i] = matrix + std::ptrdiff_t{terms[i].row} * kFeatures;
    factor[i] = all(terms[i].factor);
  }
  for (int column = 0; column < kStretch; column += kLanes) {
    Floats sum = factor[0] * load(row[0] + column);
#pragma GCC unroll 4
    for (int i = 1; i < kTerms; ++i) sum += factor[i] * load(row[i] + column);
    store(to + column, load(to + column) + sum);
  }
}

// A row of a product with a sparse matrix: the sum of the terms' rows. One stretch after the other,
// so that the sum stays in the first-level cache while the rows stream by.
void sum_rows(const Term* begin, const Term* end, const float* matrix, float* to) {
  std::fill(to, to + kFeatures, 0.0f);
  for (int first = 0; first < kFeatures; first += kStretch) {
    const Term* term = begin;
    for (; end - term >= 4; term += 4) add_rows<4>(term, matrix + first, to + first);
    for (; end - term >= 1; term += 1) add_rows<1>(term, matrix + first, to + first);
  }
}

// Gradients of the linear layer's weights and bias.
void linear_backward(std::ptrdiff_t images, const float* features, const float* hidden,
                     const float* gradient, float* gradient_weights, float* gradient_bias,
                     Workspace& work) {
  work.terms.resize(std::max<std::ptrdiff_t>(images, kUnits));
  const Term* begin = work.terms.data();
  for (int unit = 0; unit < kUnits; ++unit) {
    const Term* end =
        list_terms(images, kUnits, hidden + unit, gradient + unit, work.terms.data());
    sum_rows(begin, end, features, gradient_weights + std::ptrdiff_t{unit} * kFeatures);
    gradient_bias[unit] = std::accumulate(
        begin, end, 0.0f, [](float sum, const Term& term) { return sum + term.factor; });
  }
}

// The gradient of one image's features.
void features_backward(const float* weights, const float* hidden, const float* gradient,
                       Workspace& work) {
  Term terms[kUnits];
  const Term* end = list_terms(kUnits, 1, hidden, gradient, terms);
  sum_rows(terms, end, weights, work.features_gradient);
}

}  // namespace
