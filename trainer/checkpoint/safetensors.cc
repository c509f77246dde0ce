#include "trainer/checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/format.h"
#include "base/json.h"

namespace pliant::safetensors {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kDataAlignment = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

std::unexpected<Error> Corrupt(std::string message) {
  return Fail(ErrorCode::kCorrupt, "safetensors: " + std::move(message));
}

std::optional<DType> ParseDType(std::string_view name) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                            DType::kInt64, DType::kInt32, DType::kUInt8, DType::kBool, DType::kInt8,
                            DType::kInt16, DType::kFloat8E4M3, DType::kFloat8E5M2})
    if (ToString(dtype) == name) return dtype;
  return std::nullopt;
}

// None if the number does not fit into 64 bits.
std::optional<std::uint64_t> BytesOf(DType dtype, const std::vector<std::int64_t>& shape) {
  std::uint64_t bytes = SizeOf(dtype);
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
      return std::nullopt;
  return bytes;
}

std::optional<std::uint64_t> AsUnsigned(const Json& json) {
  if (!json.is_number_unsigned()) return std::nullopt;
  return json.get<std::uint64_t>();
}

Result<TensorInfo> DecodeTensor(const std::string& name, const Json& json) {
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets"))
    return Corrupt(Format("tensor {} does not have dtype, shape and data_offsets", name));
  TensorInfo tensor{.name = name};

  const Json& dtype = json["dtype"];
  const auto parsed =
      dtype.is_string() ? ParseDType(dtype.get_ref<const std::string&>()) : std::nullopt;
  if (!parsed) return Corrupt(Format("tensor {} has dtype {}", name, dtype.dump()));
  tensor.dtype = *parsed;

  const Json& shape = json["shape"];
  if (!shape.is_array()) return Corrupt(Format("tensor {} has a shape that is no array", name));
  for (const Json& extent : shape) {
    const auto value = AsUnsigned(extent);
    if (!value || *value > std::numeric_limits<std::int64_t>::max())
      return Corrupt(Format("tensor {} has shape {}", name, shape.dump()));
    tensor.shape.push_back(static_cast<std::int64_t>(*value));
  }

  const Json& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !AsUnsigned(offsets[0]) ||
      !AsUnsigned(offsets[1]))
    return Corrupt(Format("tensor {} has data_offsets {}", name, offsets.dump()));
  tensor.begin = *AsUnsigned(offsets[0]);
  tensor.end = *AsUnsigned(offsets[1]);
  const auto bytes = BytesOf(tensor.dtype, tensor.shape);
  if (tensor.end < tensor.begin || bytes != tensor.end - tensor.begin)
    return Corrupt(Format("tensor {} has data_offsets {}, which do not fit {} {}", name,
                          offsets.dump(), ToString(tensor.dtype), shape.dump()));
  return tensor;
}

}  // namespace

std::string EncodeHeader(const StateDict& tensors,
                         const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  std::uint64_t begin = 0;
  for (const TensorView& tensor : tensors) {
    const std::uint64_t end = begin + tensor.bytes.size();
    header[tensor.name] = {
        {"dtype", ToString(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string json = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  json.resize((json.size() + kDataAlignment - 1) / kDataAlignment * kDataAlignment, ' ');
  const std::uint64_t length = json.size();
  std::string encoded(kLengthBytes, '\0');
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    encoded[i] = static_cast<char>(length >> 8 * i & 0xff);
  return encoded + json;
}

Result<std::uint64_t> DecodeHeaderLength(std::span<const std::byte, kLengthBytes> bytes,
                                         std::uint64_t file_bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
  if (length > kMaxHeaderBytes || file_bytes < kLengthBytes || length > file_bytes - kLengthBytes)
    return Corrupt(
        Format("a header of {} bytes does not fit a file of {} bytes", length, file_bytes));
  return length;
}

Result<Header> DecodeHeader(std::string_view json, std::uint64_t data_bytes) {
  if (IsNestedTooDeep(json)) return Corrupt("the header is JSON that is nested too deep");
  // A key that occurs twice would silently hide one of the two.
  bool repeated = false;
  std::set<std::string> keys;
  const Json::parser_callback_t find_repeated = [&](int depth, Json::parse_event_t event,
                                                    Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1)
      repeated = !keys.insert(parsed.get<std::string>()).second || repeated;
    return true;
  };
  const Json parsed = Json::parse(json, find_repeated, false);
  if (!parsed.is_object()) return Corrupt("the header is no JSON object");
  if (repeated) return Corrupt("the header has a name twice");

  Header header;
  for (const auto& [name, value] : parsed.items()) {
    if (name == kMetadataKey) {
      if (!value.is_object()) return Corrupt("__metadata__ is no object");
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) return Corrupt(Format("__metadata__ {} is no string", key));
        header.metadata.emplace(key, text.get<std::string>());
      }
      continue;
    }
    ASSIGN_OR_RETURN(TensorInfo tensor, DecodeTensor(name, value));
    header.tensors.push_back(std::move(tensor));
  }
  std::ranges::sort(header.tensors, [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t next = 0;
  for (const TensorInfo& tensor : header.tensors) {
    if (tensor.begin != next)
      return Corrupt(Format("tensor {} begins at {}, not at {}", tensor.name, tensor.begin, next));
    next = tensor.end;
  }
  if (next != data_bytes)
    return Corrupt(Format("the tensors have {} bytes, the file has {}", next, data_bytes));
  return header;
}

}  // namespace pliant::safetensors
