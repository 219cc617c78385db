// A network of one hidden layer, or of none, whole: its scores, and the gradient of its losses.
//
// Everything is one product of matrices, over rows of a multiple of eight columns. A row of a
// product is summed in one order, whatever the other rows are.

#pragma once

#include <cmath>

#include "common.hpp"

namespace {

constexpr int kStrip = 2 * kLanes;  // columns of the product below that registers hold

inline std::ptrdiff_t padded(std::ptrdiff_t count) { return (count + kStrip - 1) / kStrip * kStrip; }

// The sizes and parameters, or their gradients, in torch's order; no hidden units for no layer.
struct Perceptron {
  std::ptrdiff_t inputs, hidden, classes;
  float *weights1, *bias1, *weights2, *bias2;
};

// Samples of one client: rows of its inputs and labels. Without a choice, the first of them.
struct Samples {
  const float* inputs;
  const std::int64_t* labels;
  const std::int64_t* chosen;
  std::ptrdiff_t count;
};

// The left factor of a product: where it begins, and how far apart its rows and columns are.
struct Left {
  const float* from;
  std::ptrdiff_t row, column;
};

template <int kRows>
inline void multiply_strip(std::ptrdiff_t inner, Left left, const float* right,
                           std::ptrdiff_t width, const float* bias, float* to) {
  Floats sum[kRows][2];
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < 2; ++j) sum[i][j] = bias ? load(bias + j * kLanes) : all(0.0f);
  for (std::ptrdiff_t k = 0; k < inner; ++k) {
    const Floats first = load(right + k * width), second = load(right + k * width + kLanes);
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
      const Floats factor = all(left.from[i * left.row + k * left.column]);
      sum[i][0] += factor * first;
      sum[i][1] += factor * second;
    }
  }
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < 2; ++j) store(to + i * width + j * kLanes, sum[i][j]);
}

// to [rows][width] = left [rows][inner] right [inner][width] + bias, if there is one.
void multiply(std::ptrdiff_t rows, std::ptrdiff_t inner, Left left, const float* right,
              std::ptrdiff_t width, const float* bias, float* to) {
  for (std::ptrdiff_t strip = 0; strip < width; strip += kStrip) {
    const float* shift = bias ? bias + strip : nullptr;
    std::ptrdiff_t i = 0;
    for (; i + kRowsOfA <= rows; i += kRowsOfA)
      multiply_strip<kRowsOfA>(inner, {left.from + i * left.row, left.row, left.column},
                               right + strip, width, shift, to + i * width + strip);
    for (; i < rows; ++i)
      multiply_strip<1>(inner, {left.from + i * left.row, left.row, left.column}, right + strip,
                        width, shift, to + i * width + strip);
  }
}

// Rows with zeros behind them, up to the width.
void pad_rows(std::ptrdiff_t rows, std::ptrdiff_t columns, const float* from, std::ptrdiff_t width,
              std::vector<float>& to) {
  to.assign(rows * width, 0.0f);
  for (std::ptrdiff_t i = 0; i < rows; ++i)
    std::copy(from + i * columns, from + (i + 1) * columns, to.data() + i * width);
}

// The columns of a matrix as rows, with zeros behind them.
void turn_rows(std::ptrdiff_t rows, std::ptrdiff_t columns, const float* from, std::ptrdiff_t width,
               std::vector<float>& to) {
  to.assign(columns * width, 0.0f);
  for (std::ptrdiff_t i = 0; i < rows; ++i)
    for (std::ptrdiff_t j = 0; j < columns; ++j) to[j * width + i] = from[i * columns + j];
}

void write_rows(std::ptrdiff_t rows, std::ptrdiff_t columns, const std::vector<float>& from,
                std::ptrdiff_t width, float* to) {
  for (std::ptrdiff_t i = 0; i < rows; ++i)
    std::copy(from.data() + i * width, from.data() + i * width + columns, to + i * columns);
}

void sum_columns(std::ptrdiff_t rows, std::ptrdiff_t columns, const std::vector<float>& from,
                 std::ptrdiff_t width, float* to) {
  std::fill(to, to + columns, 0.0f);
  for (std::ptrdiff_t i = 0; i < rows; ++i)
    for (std::ptrdiff_t j = 0; j < columns; ++j) to[j] += from[i * width + j];
}

// As torch has it, relu keeps what is not a number.
inline Floats relu(Floats values) { return values <= all(0.0f) ? all(0.0f) : values; }

// Memory that the thread keeps from call to call.
struct Layers {
  std::vector<float> inputs, hidden, scores, weights1, bias1, weights2, bias2;
  std::vector<float> scores_slope, hidden_slope, back2, product;
  std::vector<std::int64_t> labels;

  void take_weights(const Perceptron& given) {
    const std::ptrdiff_t units = padded(given.hidden), width = padded(given.classes);
    if (given.hidden) {
      turn_rows(given.hidden, given.inputs, given.weights1, units, weights1);
      pad_rows(1, given.hidden, given.bias1, units, bias1);
    }
    turn_rows(given.classes, given.hidden ? given.hidden : given.inputs, given.weights2, width,
              weights2);
    pad_rows(1, given.classes, given.bias2, width, bias2);
  }

  // The scores of rows; the hidden layer stays for the gradient.
  void pass(const Perceptron& given, std::ptrdiff_t rows, Left points) {
    const std::ptrdiff_t units = padded(given.hidden), width = padded(given.classes);
    scores.resize(rows * width);
    if (given.hidden) {
      hidden.resize(rows * units);
      multiply(rows, given.inputs, points, weights1.data(), units, bias1.data(), hidden.data());
      for (float* at = hidden.data(); at < hidden.data() + rows * units; at += kLanes)
        store(at, relu(load(at)));
      points = {hidden.data(), units, 1};
    }
    multiply(rows, given.hidden ? given.hidden : given.inputs, points, weights2.data(), width,
             bias2.data(), scores.data());
  }
};

Layers& layers() {
  static thread_local Layers kept;
  return kept;
}

// The samples of all clients, one below the other; gives how many there are.
std::ptrdiff_t gather(std::ptrdiff_t clients, const Samples* samples, std::ptrdiff_t columns,
                      Layers& work) {
  const std::ptrdiff_t width = padded(columns);
  std::ptrdiff_t rows = 0;
  for (std::ptrdiff_t c = 0; c < clients; ++c) rows += samples[c].count;
  work.inputs.assign(rows * width, 0.0f);
  work.labels.resize(rows);
  std::ptrdiff_t row = 0;
  for (std::ptrdiff_t c = 0; c < clients; ++c)
    for (std::ptrdiff_t i = 0; i < samples[c].count; ++i, ++row) {
      const std::int64_t at = samples[c].chosen ? samples[c].chosen[i] : i;
      const float* from = samples[c].inputs + at * columns;
      std::copy(from, from + columns, work.inputs.data() + row * width);
      work.labels[row] = samples[c].labels[at];
    }
  return rows;
}

// The cross-entropy of each row, and the gradient of its mean with respect to the scores.
void find_losses(std::ptrdiff_t rows, std::ptrdiff_t classes, Layers& work, float* losses) {
  const std::ptrdiff_t width = padded(classes);
  work.scores_slope.assign(rows * width, 0.0f);
  const float part = 1.0f / static_cast<float>(rows);
  for (std::ptrdiff_t i = 0; i < rows; ++i) {
    const float* score = work.scores.data() + i * width;
    float* slope = work.scores_slope.data() + i * width;
    float most = score[0], sum = 0;
    for (std::ptrdiff_t j = 1; j < classes; ++j)
      if (!(score[j] <= most)) most = score[j];
    for (std::ptrdiff_t j = 0; j < classes; ++j) sum += slope[j] = std::exp(score[j] - most);
    for (std::ptrdiff_t j = 0; j < classes; ++j) slope[j] = slope[j] / sum * part;
    slope[work.labels[i]] -= part;
    losses[i] = std::log(sum) - (score[work.labels[i]] - most);
  }
}

// The gradient of the mean loss with respect to all parameters, after `pass` and `find_losses`.
void find_gradient(const Perceptron& given, std::ptrdiff_t rows, const Perceptron& gradient,
                   Layers& work) {
  const std::ptrdiff_t points = padded(given.inputs), units = padded(given.hidden),
                       width = padded(given.classes);
  const Left turned{work.scores_slope.data(), 1, width};
  const float* before = given.hidden ? work.hidden.data() : work.inputs.data();
  const std::ptrdiff_t taken = given.hidden ? units : points;
  work.product.resize(std::max(given.classes, given.hidden) * std::max(taken, points));
  multiply(given.classes, rows, turned, before, taken, nullptr, work.product.data());
  write_rows(given.classes, given.hidden ? given.hidden : given.inputs, work.product, taken,
             gradient.weights2);
  sum_columns(rows, given.classes, work.scores_slope, width, gradient.bias2);
  if (!given.hidden) return;
  pad_rows(given.classes, given.hidden, given.weights2, units, work.back2);
  work.hidden_slope.resize(rows * units);
  multiply(rows, given.classes, {work.scores_slope.data(), width, 1}, work.back2.data(), units,
           nullptr, work.hidden_slope.data());
  for (std::ptrdiff_t i = 0; i < rows * units; i += kLanes) {
    float* slope = work.hidden_slope.data() + i;
    store(slope, load(work.hidden.data() + i) <= all(0.0f) ? all(0.0f) : load(slope));
  }
  multiply(given.hidden, rows, {work.hidden_slope.data(), 1, units}, work.inputs.data(), points,
           nullptr, work.product.data());
  write_rows(given.hidden, given.inputs, work.product, points, gradient.weights1);
  sum_columns(rows, given.hidden, work.hidden_slope, units, gradient.bias1);
}

}  // namespace
