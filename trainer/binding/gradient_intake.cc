#include "trainer/binding/gradient_intake.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>

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

std::optional<CudaKernels::Type> KernelTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CudaKernels::Type::kFloat32;
    case DType::kFloat16:
      return CudaKernels::Type::kFloat16;
    case DType::kBFloat16:
      return CudaKernels::Type::kBFloat16;
    default:
      return std::nullopt;
  }
}

// Puts gradients, of which `given` names at least one, into the device's memory.
Status PutOnDevice(BoundProgram& program, std::span<const CudaGradients::Given> given,
                   const GradientFormat& format, const ReadDevice& read_device) {
  CudaGradients& device = *program.device_gradients();
  const auto scale = static_cast<float>(format.scale);
  const auto type = KernelTypeOf(format.dtype);
  if (format.on_device && type) {
    const bool add = given.size() == program.parameters() && program.can_add();
    RETURN_IF_ERROR(device.Gather(
        *type, given, scale, add ? program.left() : std::span<const float>(), program.gradient()));
    if (add) program.Added();
    return {};
  }
  std::vector<std::size_t> sizes;
  std::vector<const void*> data;
  for (const auto& each : given) {
    sizes.push_back(program.GradientOf(each.parameter).size());
    data.push_back(each.data);
  }
  ASSIGN_OR_RETURN(const std::vector<const void*> host,
                   InHostMemory(sizes, data, format, read_device));
  for (std::size_t i = 0; i < given.size(); ++i) {
    std::vector<float> scaled(sizes[i]);
    PutScaled(host[i], format.dtype, format.scale, scaled);
    device.ToDevice(std::as_bytes(std::span(scaled)),
                    std::as_writable_bytes(program.GradientOf(given[i].parameter)));
  }
  return {};
}

Status PutInHost(BoundProgram& program, std::span<const void* const> data,
                 const GradientFormat& format, const ReadDevice& read_device) {
  ASSIGN_OR_RETURN(const std::vector<const void*> host,
                   InHostMemory(program.gradient_sizes(), data, format, read_device));
  if (AddAllScaled(program, host, format)) return {};
  for (std::size_t i = 0; i < host.size(); ++i) {
    if (host[i] != nullptr) PutScaled(host[i], format.dtype, format.scale, program.GradientOf(i));
  }
  return {};
}

template <typename Bits, typename Value>
void PutScaledAs(const void* data, float scale, std::span<float> to, const Value& value_of) {
  const auto* from = static_cast<const Bits*>(data);
  for (float& value : to) value = value_of(*from++) * scale;
}

}  // namespace

Status PutGradient(BoundProgram& program, std::size_t parameter, const void* data,
                   const GradientFormat& format, const ReadDevice& read_device) {
  RETURN_IF_ERROR(program.CheckNotReady(parameter, 1));
  const std::span<float> to = program.GradientOf(parameter);
  if (data == nullptr && !to.empty()) return Invalid("data is NULL");
  if (program.device_gradients() != nullptr) {
    const CudaGradients::Given given{.parameter = parameter, .data = data};
    RETURN_IF_ERROR(PutOnDevice(program, {&given, 1}, format, read_device));
  } else {
    ASSIGN_OR_RETURN(const std::vector<const void*> host,
                     InHostMemory(std::array{to.size()}, {&data, 1}, format, read_device));
    PutScaled(host.front(), format.dtype, format.scale, to);
  }
  return program.GradientsReady(parameter, 1);
}

Status PutGradients(BoundProgram& program, std::span<const void* const> data,
                    const GradientFormat& format, const ReadDevice& read_device) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] != nullptr) RETURN_IF_ERROR(program.CheckNotReady(i, 1));
  }
  if (program.device_gradients() != nullptr) {
    std::vector<CudaGradients::Given> given;
    for (std::size_t i = 0; i < data.size(); ++i)
      if (data[i] != nullptr) given.push_back({.parameter = i, .data = data[i]});
    if (!given.empty()) RETURN_IF_ERROR(PutOnDevice(program, given, format, read_device));
  } else {
    RETURN_IF_ERROR(PutInHost(program, data, format, read_device));
  }
  // Only after all were copied; one call for each run of adjacent parameters.
  for (std::size_t first = 0, i = 0; i <= data.size(); ++i) {
    if (i < data.size() && data[i] != nullptr) continue;
    RETURN_IF_ERROR(program.GradientsReady(first, i - first));
    first = i + 1;
  }
  return {};
}

Result<double> GradientNorm(BoundProgram& program, std::span<const void* const> data,
                            const GradientFormat& format, const ReadDevice& read_device) {
  if (format.on_device && program.device_gradients() != nullptr) {
    std::vector<const float*> tensors;
    for (const void* const tensor : data) tensors.push_back(static_cast<const float*>(tensor));
    return program.device_gradients()->Norm(tensors);
  }
  ASSIGN_OR_RETURN(const std::vector<const void*> host,
                   InHostMemory(program.gradient_sizes(), data, format, read_device));
  std::vector<const float*> tensors;
  for (const void* const tensor : host) tensors.push_back(static_cast<const float*>(tensor));
  const FloatEnvironment environment;  // this is the program's thread
  return std::sqrt(GradientSquare::Of(program.cells(), program.gradient_sizes(), tensors));
}

void PutScaled(const void* data, DType dtype, double scale, std::span<float> to) {
  const auto factor = static_cast<float>(scale);
  if (dtype == DType::kFloat32) {
    return MultiplyInto(to.data(), static_cast<const float*>(data), factor, to.size());
  }
  if (dtype == DType::kFloat16) {
    return PutScaledAs<std::uint16_t>(data, factor, to, [](std::uint16_t bits) {
      return static_cast<float>(std::bit_cast<_Float16>(bits));
    });
  }
  if (dtype == DType::kBFloat16) {
    return PutScaledAs<std::uint16_t>(data, factor, to, [](std::uint16_t bits) {
      return std::bit_cast<float>(std::uint32_t{bits} << 16U);
    });
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
