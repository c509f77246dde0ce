#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trainer/checkpoint/state_dict.h"

// The safetensors format (github.com/huggingface/safetensors): eight bytes with the length of a
// JSON header, the header, then the tensors' bytes one after another without gaps.
namespace pliant::safetensors {

inline constexpr std::size_t kLengthBytes = 8;
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // as the reference reader allows

struct TensorInfo {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  // offset in the bytes after the header
  std::uint64_t end = 0;
  bool operator==(const TensorInfo&) const = default;
};

struct Header {
  std::vector<TensorInfo> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
  bool operator==(const Header&) const = default;
};

// Length and header of a file whose tensors' bytes follow in the order of `tensors`. The header is
// padded with spaces, so that these bytes begin at a multiple of 8.
std::string EncodeHeader(const StateDict& tensors,
                         const std::map<std::string, std::string>& metadata);

// The length of the header, from the first eight bytes. kCorrupt: it is impossible in a file of
// `file_bytes`.
Result<std::uint64_t> DecodeHeaderLength(std::span<const std::byte, kLengthBytes> bytes,
                                         std::uint64_t file_bytes);

// `json`: the header without its length; `data_bytes`: the size of the data after it. kCorrupt
// unless the tensors have distinct names and sizes that match their dtype and shape, and fill the
// data exactly.
Result<Header> DecodeHeader(std::string_view json, std::uint64_t data_bytes);

}  // namespace pliant::safetensors
