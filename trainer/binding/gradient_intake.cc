#include "trainer/binding/gradient_intake.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "trainer/collective/float_environment.h"
#include "trainer/collective/float_loops.h"
#include "trainer/collective/gradient_square.h"

namespace pliant {
namespace {

// Tensors of these numbers of elements, in host memory. nullptr: not handed in.
Result<std::vector<const void*>> InHostMemory(std::span<const std::size_t> sizes,
                                              std::span<const void* const> data,
                                              const GradientFormat& format,
                                              const ReadDevice& read_device) {
  std::vector<const void*> host(data.begin(), data.end());
  if (!format.on_device) return host;
  std::vector<std::span<const std::byte>> on_device;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] == nullptr) continue;
    on_device.emplace_back(static_cast<const std::byte*>(data[i]), sizes[i] * SizeOf(format.dtype));
  }
  ASSIGN_OR_RETURN(const std::vector<const std::byte*> copies, read_device(on_device));
  auto copy = copies.begin();
  for (const void*& each : host)
    if (each != nullptr) each = *copy++;
  return host;
}

// Copies all of a shard's gradients and adds them to LeftOf at the same time, which saves a pass
// over memory. False: not possible for these; nothing was written.
bool AddAllScaled(BoundProgram& program, std::span<const void* const> data,
                  const GradientFormat& format) {
  if (format.dtype != DType::kFloat32 || !program.can_add()) return false;
  if (std::ranges::contains(data, nullptr)) return false;
  for (std::size_t i = 0; i < data.size(); ++i) {
    AddScaled(program.LeftOf(i), static_cast<const float*>(data[i]),
              static_cast<float>(format.scale), program.GradientOf(i));
  }
  program.Added();
  return true;
}

}  // namespace

Status PutGradient(BoundProgram& program, std::size_t parameter, const void* data,
                   const GradientFormat& format, const ReadDevice& read_device) {
  RETURN_IF_ERROR(program.CheckNotReady(parameter, 1));
  const std::span<float> to = program.GradientOf(parameter);
  if (data == nullptr && !to.empty()) return Invalid("data is NULL");
  ASSIGN_OR_RETURN(const std::vector<const void*> host,
                   InHostMemory(std::array{to.size()}, {&data, 1}, format, read_device));
  PutScaled(host.front(), format.dtype, format.scale, to);
  return program.GradientsReady(parameter, 1);
}

Status PutGradients(BoundProgram& program, std::span<const void* const> data,
                    const GradientFormat& format, const ReadDevice& read_device) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] != nullptr) RETURN_IF_ERROR(program.CheckNotReady(i, 1));
  }
  ASSIGN_OR_RETURN(const std::vector<const void*> host,
                   InHostMemory(program.gradient_sizes(), data, format, read_device));
  if (!AddAllScaled(program, host, format)) {
    for (std::size_t i = 0; i < host.size(); ++i) {
      if (host[i] != nullptr) PutScaled(host[i], format.dtype, format.scale, program.GradientOf(i));
    }
  }
  // Only after all were copied; one call for each run of adjacent parameters.
  for (std::size_t first = 0, i = 0; i <= data.size(); ++i) {
    if (i < data.size() && data[i] != nullptr) continue;
    RETURN_IF_ERROR(program.GradientsReady(first, i - first));
    first = i + 1;
  }
  return {};
}

Result<double> GradientNorm(const BoundProgram& program, std::span<const void* const> data,
                            const GradientFormat& format, const ReadDevice& read_device) {
  ASSIGN_OR_RETURN(const std::vector<const void*> host,
                   InHostMemory(program.gradient_sizes(), data, format, read_device));
  std::vector<const float*> tensors;
  for (const void* const tensor : host) tensors.push_back(static_cast<const float*>(tensor));
  const FloatEnvironment environment;  // this is the program's thread
  return std::sqrt(GradientSquare::Of(program.cells(), program.gradient_sizes(), tensors));
}

void PutScaled(const void* data, DType dtype, double scale, std::span<float> to) {
  if (dtype == DType::kFloat32) {
    const auto* const from = static_cast<const float*>(data);
    return MultiplyInto(to.data(), from, static_cast<float>(scale), to.size());
  }
  const auto* from = static_cast<const double*>(data);
  for (float& value : to) value = static_cast<float>(*from++ * scale);
}

void AddScaled(std::span<const float> left, const float* values, float scale,
               std::span<float> out) {
  std::array<float, 2048> product;  // stays in the cache
  for (std::size_t begin = 0; begin < out.size(); begin += product.size()) {
    const std::size_t size = std::min(product.size(), out.size() - begin);
    MultiplyInto(product.data(), values + begin, scale, size);
    const FloatEnvironment environment;
    AddInto(out.data() + begin, left.data() + begin, product.data(), size);
  }
}

}  // namespace pliant
