// The convolutions, backward: only what the pool, relu and dropout let through.

#pragma once

#include "common.hpp"
#include "forward.hpp"

namespace {

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
      const int corner = ((y + place / 2) * kInner + x + place % 2) * kLanes;
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
        sum[tap] += value * load(patch + (tap / 3 * kInner + tap % 3) * kLanes);
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
    if (!(place[0] | place[1] | place[2] | place[3])) continue;
    float* corner = plane + (window / kPooled * 2 * kInner + window % kPooled * 2) * kLanes;
    Floats patch[4][4];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i)
      patch[i / 4][i % 4] = load(corner + (i / 4 * kInner + i % 4) * kLanes);
    spread_place<0, 0>(place[0], from, weights, patch);
    spread_place<0, 1>(place[1], from, weights, patch);
    spread_place<1, 0>(place[2], from, weights, patch);
    spread_place<1, 1>(place[3], from, weights, patch);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i)
      store(corner + (i / 4 * kInner + i % 4) * kLanes, patch[i / 4][i % 4]);
  }
}

// Add one image's part to the gradients of the first weights and bias, for one group.
void add_weights1(const float* image, const float* plane, const float* plane_gradient,
                  float* gradient, float* bias_gradient) {
  Floats sum[kTaps], bias = all(0.0f);
  const Floats zero = all(0.0f);
  for (int tap = 0; tap < kTaps; ++tap) sum[tap] = zero;
  for (int y = 0; y < kInner; ++y)
    for (int x = 0; x < kInner; x += 2) {
      const int at = (y * kInner + x) * kLanes;
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
    const float* plane = work.planes + group * kPlane;
    add_weights2(work, plane, work.gradient2 + group * kOfGroup);
    spread(winners, gradient, work.weights2 + group * kOfGroup, work.plane_gradient);
    add_weights1(image, plane, work.plane_gradient, work.gradient1 + group * kTaps * kLanes,
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
void write_gradients(const Workspace& work, float scale, const Parameters& to) {
  for (int channel = 0; channel < kChannels1; ++channel) {
    to.bias1[channel] = scale * work.gradient_bias1[channel];
    for (int tap = 0; tap < kTaps; ++tap)
      to.weights1[channel * kTaps + tap] =
          scale * work.gradient1[(channel / kLanes * kTaps + tap) * kLanes + channel % kLanes];
  }
  for (int out = 0; out < kChannels2; ++out) {
    to.bias2[out] = scale * work.gradient_bias2[out];
    for (int in = 0; in < kChannels1; ++in)
      for (int tap = 0; tap < kTaps; ++tap)
        to.weights2[(out * kChannels1 + in) * kTaps + tap] =
            scale *
            work.gradient2[((in / kLanes * kChannels2 + out) * kTaps + tap) * kLanes + in % kLanes];
  }
}

}  // namespace
