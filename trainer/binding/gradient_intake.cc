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

using Given = CudaGradients::Given;

// The tensors of these parameters, in host memory.
Result<std::vector<Given>> InHostMemory(const BoundProgram& program, std::span<const Given> given,
                                        const GradientFormat& format,
                                        const ReadDevice& read_device) {
  std::vector<Given> host(given.begin(), given.end());
  if (!format.on_device) return host;
  std::vector<std::span<const std::byte>> on_device;
  for (const Given& each : given) {
    on_device.emplace_back(static_cast<const std::byte*>(each.data),
                           program.gradient_sizes()[each.parameter] * SizeOf(format.dtype));
  }
  ASSIGN_OR_RETURN(const std::vector<const std::byte*> copies, read_device(on_device));
  for (std::size_t i = 0; i < host.size(); ++i) host[i].data = copies[i];
  return host;
}

// The gradients that were handed in. nullptr: that parameter was not.
std::vector<Given> GivenIn(std::span<const void* const> data) {
  std::vector<Given> given;
  for (std::size_t i = 0; i < data.size(); ++i)
    if (data[i] != nullptr) given.push_back({.parameter = i, .data = data[i]});
  return given;
}

// Whether all gradients of the shard are here, and their sums with LeftOf may be written at once,
// which saves a pass over memory.
bool AddsAll(const BoundProgram& program, std::span<const Given> given) {
  return given.size() == program.parameters() && program.can_add();
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

Status PutOnDevice(BoundProgram& program, std::span<const Given> given,
                   const GradientFormat& format, const ReadDevice& read_device) {
  CudaGradients& device = *program.device_gradients();
  const auto type = KernelTypeOf(format.dtype);
  if (format.on_device && type) {
    const bool add = AddsAll(program, given);
    RETURN_IF_ERROR(device.Gather(*type, given, static_cast<float>(format.scale),
                                  add ? program.left() : std::span<const float>(),
                                  program.gradient()));
    if (add) program.Added();
    return {};
  }
  ASSIGN_OR_RETURN(const std::vector<Given> host,
                   InHostMemory(program, given, format, read_device));
  for (const Given& each : host) {
    const std::span<float> to = program.GradientOf(each.parameter);
    std::vector<float> scaled(to.size());
    PutScaled(each.data, format.dtype, format.scale, scaled);
    device.ToDevice(std::as_bytes(std::span(scaled)), std::as_writable_bytes(to));
  }
  return {};
}

Status PutInHost(BoundProgram& program, std::span<const Given> given, const GradientFormat& format,
                 const ReadDevice& read_device) {
  ASSIGN_OR_RETURN(const std::vector<Given> host,
                   InHostMemory(program, given, format, read_device));
  const bool add = format.dtype == DType::kFloat32 && AddsAll(program, host);
  for (const Given& each : host) {
    const std::span<float> to = program.GradientOf(each.parameter);
    if (add) {
      AddScaled(program.LeftOf(each.parameter), static_cast<const float*>(each.data),
                static_cast<float>(format.scale), to);
    } else {
      PutScaled(each.data, format.dtype, format.scale, to);
    }
  }
  if (add) program.Added();
  return {};
}

Status Put(BoundProgram& program, std::span<const Given> given, const GradientFormat& format,
           const ReadDevice& read_device) {
  if (given.empty()) return {};
  const auto put = program.device_gradients() != nullptr ? PutOnDevice : PutInHost;
  return put(program, given, format, read_device);
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
  if (data == nullptr && !program.GradientOf(parameter).empty()) return Invalid("data is NULL");
  const Given given{.parameter = parameter, .data = data};
  RETURN_IF_ERROR(Put(program, {&given, data == nullptr ? 0U : 1U}, format, read_device));
  return program.GradientsReady(parameter, 1);
}

Status PutGradients(BoundProgram& program, std::span<const void* const> data,
                    const GradientFormat& format, const ReadDevice& read_device) {
  const std::vector<Given> given = GivenIn(data);
  for (const Given& each : given) RETURN_IF_ERROR(program.CheckNotReady(each.parameter, 1));
  RETURN_IF_ERROR(Put(program, given, format, read_device));
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
  ASSIGN_OR_RETURN(const std::vector<Given> host,
                   InHostMemory(program, GivenIn(data), format, read_device));
  std::vector<const float*> tensors(data.size());
  for (const Given& each : host) tensors[each.parameter] = static_cast<const float*>(each.data);
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
