#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/binding/bound_program.h"
#include "trainer/checkpoint/state_dict.h"

namespace pliant {

// How a program stores its gradients, and the factor by which they are multiplied when copied.
struct GradientFormat {
  DType dtype = DType::kFloat32;  // or kFloat64, kFloat16, kBFloat16
  bool on_device = false;
  double scale = 1;
};

// Copies memory of a device to the host. The copies are valid until the next call.
using ReadDevice = std::function<Result<std::vector<const std::byte*>>(
    std::span<const std::span<const std::byte>> device)>;

// Both copy gradients of a training shard into the program; these are final from then on.
// kInvalid: the gradient was handed in before, or `data` is nullptr.
Status PutGradient(BoundProgram& program, std::size_t parameter, const void* data,
                   const GradientFormat& format, const ReadDevice& read_device);
// Copies the gradients of all parameters, or none if one is wrong. nullptr: skips that parameter.
Status PutGradients(BoundProgram& program, std::span<const void* const> data,
                    const GradientFormat& format, const ReadDevice& read_device);

// The Euclidean norm of gradients of all parameters, float32. nullptr: counts as zero.
Result<double> GradientNorm(BoundProgram& program, std::span<const void* const> data,
                            const GradientFormat& format, const ReadDevice& read_device);

// to = data · scale. `data` has to.size() elements of `dtype`.
void PutScaled(const void* data, DType dtype, double scale, std::span<float> to);

// out = left + values · scale. Bitwise equal to the two separate steps, because it uses the same
// operations: the product of PutScaled, and the addition that sums a learner's shards.
void AddScaled(std::span<const float> left, const float* values, float scale, std::span<float> out);

}  // namespace pliant
