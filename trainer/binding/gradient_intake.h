#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "base/result.h"
#include "trainer/binding/bound_program.h"
#include "trainer/checkpoint/state_dict.h"

namespace pliant {

// How a program has its gradients in memory, and what they are multiplied by on their way.
struct GradientFormat {
  DType dtype = DType::kFloat32;  // or kFloat64
  bool on_device = false;
  double scale = 1;
};

// Copies from a device's memory. The copy is valid until the next call.
using ReadDevice =
    std::function<Result<std::span<const std::byte>>(const void* device, std::size_t bytes)>;

// Both are for a training shard's program. What they put is ready: it will not change any more.
// kInvalid: the gradient was handed in before, or there is none.
Status PutGradient(BoundProgram& program, std::size_t parameter, const void* data,
                   const GradientFormat& format, const ReadDevice& read_device);
// Of all parameters, or of none if one of them is wrong. nullptr: that parameter has none now.
Status PutGradients(BoundProgram& program, std::span<const void* const> data,
                    const GradientFormat& format, const ReadDevice& read_device);

// to = data · scale. `data`: as many elements of `dtype` as `to` has.
void PutScaled(const void* data, DType dtype, double scale, std::span<float> to);

// out = left + values · scale, by the operations and so to the bits of doing one after the other:
// the product is made as PutScaled does, and added as the sums of a learner's shards are.
void AddScaled(std::span<const float> left, const float* values, float scale, std::span<float> out);

}  // namespace pliant
