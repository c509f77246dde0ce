#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pliant {

class DeviceMemory;

enum class DType {
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt64,
  kInt32,
  kUInt8,
  kBool,
  kInt8,
  kInt16,
  kFloat8E4M3,
  kFloat8E5M2,
};
std::string_view ToString(DType dtype);  // as safetensors names them: "F32", "I64", ...
std::size_t SizeOf(DType dtype);

// The prefix of the model's tensors. Files and the hash use their names without it, as their
// framework names them.
inline constexpr std::string_view kModelPrefix = "model.";

// One named tensor of the training state. Borrowed: `bytes` points into the program's memory and
// stays valid and at the same place for the program's life; contents change only inside
// Program::Commit and when state is loaded.
struct TensorView {
  std::string
      name;  // "model.conv1.weight", "optimizer.conv1.weight.momentum", "scheduler.last_epoch"
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;  // empty for a scalar
  std::span<std::byte> bytes;       // contiguous, row-major, little-endian
  DeviceMemory* device = nullptr;   // device that has the bytes; nullptr: the host
};

// All state that a learner needs to continue bit for bit, in an order that is the same on every
// learner. Tensors named "model.…" go to the model file of a checkpoint, all others to the
// optimizer file.
using StateDict = std::vector<TensorView>;

}  // namespace pliant
