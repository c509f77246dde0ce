#include "trainer/checkpoint/manifest.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/json.h"

namespace pliant {
namespace {

using Json = nlohmann::json;

// A change that would make a reader continue with other bits has another number, so that a version
// refuses a file that it would misread.
constexpr std::uint64_t kFormat = 1;
constexpr std::size_t kMaxFiles = 100'000;

std::unexpected<Error> Corrupt(std::string_view field) {
  return Fail(ErrorCode::kCorrupt, Format("manifest: {} is missing or wrong", field));
}

std::optional<std::uint64_t> ParseHex(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<MembershipId> ParseMembership(std::string_view text) {
  MembershipId id;
  const char* const end = text.data() + text.size();
  const auto term = std::from_chars(text.data(), end, id.term);
  if (term.ec != std::errc() || term.ptr == end || *term.ptr != '.') return std::nullopt;
  const auto counter = std::from_chars(term.ptr + 1, end, id.counter);
  if (counter.ec != std::errc() || counter.ptr != end) return std::nullopt;
  return id;
}

Status Get(const Json& json, const char* field, std::uint64_t& value) {
  const auto found = json.find(field);
  if (found == json.end() || !found->is_number_unsigned()) return Corrupt(field);
  value = found->get<std::uint64_t>();
  return {};
}

Status Get(const Json& json, const char* field, std::string& value) {
  const auto found = json.find(field);
  if (found == json.end() || !found->is_string()) return Corrupt(field);
  value = found->get<std::string>();
  return {};
}

Status Get(const Json& json, const char* field, double& value) {
  const auto found = json.find(field);
  if (found == json.end() || !found->is_number()) return Corrupt(field);
  value = found->get<double>();
  return {};
}

Status GetNoise(const Json& json, NoiseWindow& noise) {
  const auto found = json.find("noise");
  if (found == json.end() || !found->is_object()) return Corrupt("noise");
  RETURN_IF_ERROR(Get(*found, "trace", noise.trace));
  RETURN_IF_ERROR(Get(*found, "square", noise.square));
  RETURN_IF_ERROR(Get(*found, "steps", noise.steps));
  return noise.valid() ? Status() : Corrupt("noise");
}

Status GetBatches(const Json& json, BatchSegments& batches) {
  const auto found = json.find("batches");
  if (found == json.end() || !found->is_array() || found->size() > kMaxBatchSegments)
    return Corrupt("batches");
  for (const Json& item : *found) {
    BatchSegment segment;
    std::uint64_t doublings = 0;
    if (!item.is_object()) return Corrupt("batches");
    RETURN_IF_ERROR(Get(item, "epoch", segment.epoch));
    RETURN_IF_ERROR(Get(item, "doublings", doublings));
    if (doublings > 31) return Corrupt("batches.doublings");
    segment.doublings = static_cast<int>(doublings);
    batches.push_back(segment);
  }
  return {};
}

Result<ManifestFile> DecodeFile(const Json& json) {
  ManifestFile file;
  if (!json.is_object()) return Corrupt("files");
  RETURN_IF_ERROR(Get(json, "name", file.name));
  // A manifest names only files in its own directory.
  if (file.name.empty() || file.name.front() == '.' || file.name.find('/') != std::string::npos ||
      file.name.find('\0') != std::string::npos)
    return Corrupt("files.name");
  RETURN_IF_ERROR(Get(json, "bytes", file.bytes));
  std::string crc;
  RETURN_IF_ERROR(Get(json, "crc32c", crc));
  const auto value = ParseHex(crc);
  if (!value || crc.size() != 8) return Corrupt("files.crc32c");
  file.crc32c = static_cast<std::uint32_t>(*value);
  return file;
}

Json BaseJson(const BaseModel& base) {
  if (base.sha256.empty()) return nullptr;
  return {{"sha256", base.sha256}, {"name", base.name}};
}

Status GetBase(const Json& json, BaseModel& base) {
  const auto found = json.find("base");
  if (found == json.end()) return Corrupt("base");
  if (found->is_null()) return {};
  if (!found->is_object()) return Corrupt("base");
  RETURN_IF_ERROR(Get(*found, "sha256", base.sha256));
  RETURN_IF_ERROR(Get(*found, "name", base.name));
  return base.sha256.empty() ? Corrupt("base.sha256") : Status();
}

Json FilesJson(const std::vector<ManifestFile>& files) {
  Json json = Json::array();
  for (const ManifestFile& file : files)
    json.push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"crc32c", Format("{:08x}", file.crc32c)}});
  return json;
}

Result<std::vector<ManifestFile>> FilesIn(const Json& json) {
  const auto files = json.find("files");
  if (files == json.end() || !files->is_array() || files->size() > kMaxFiles)
    return Corrupt("files");
  std::vector<ManifestFile> decoded;
  for (const Json& file : *files) {
    ASSIGN_OR_RETURN(ManifestFile one, DecodeFile(file));
    if (std::ranges::contains(decoded, one.name, &ManifestFile::name)) return Corrupt("files.name");
    decoded.push_back(std::move(one));
  }
  return decoded;
}

}  // namespace

std::string EncodeFiles(const std::vector<ManifestFile>& files) {
  const Json json = {{"files", FilesJson(files)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::vector<ManifestFile>> DecodeFiles(std::string_view text) {
  const Json json = ParseJson(text);
  if (!json.is_object()) return Fail(ErrorCode::kCorrupt, "slice: no JSON object");
  return FilesIn(json);
}

std::string EncodeManifest(const Manifest& manifest) {
  const NoiseWindow& noise = manifest.position.noise;
  Json batches = Json::array();
  for (const BatchSegment& segment : manifest.position.batches)
    batches.push_back({{"epoch", segment.epoch}, {"doublings", segment.doublings}});
  // Doubles are written with as many digits as give the same bits when read.
  Json json = {
      {"format", kFormat},
      {"complete", true},
      {"step", manifest.position.step},
      {"tick", manifest.position.tick},
      {"epoch", manifest.position.epoch},
      {"membership", ToString(manifest.position.membership)},
      {"seed", manifest.job.seed},
      {"globalBatchSize", manifest.job.global_batch_size},
      {"logicalShards", manifest.job.logical_shards},
      {"trainSamples", manifest.job.train_samples},
      {"testSamples", manifest.job.test_samples},
      {"base", BaseJson(manifest.job.base)},
      {"framework", manifest.framework},
      {"parametersSha256", manifest.parameters_sha256},
      {"noise", {{"trace", noise.trace}, {"square", noise.square}, {"steps", noise.steps}}},
      {"batches", std::move(batches)},
      {"files", FilesJson(manifest.files)}};
  if (manifest.position.evaluate_every != 0) {
    json["evaluateEvery"] = manifest.position.evaluate_every;
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Manifest> DecodeManifest(std::string_view text) {
  const Json json = ParseJson(text);
  if (!json.is_object()) return Fail(ErrorCode::kCorrupt, "manifest: no JSON object");
  std::uint64_t format = 0;
  RETURN_IF_ERROR(Get(json, "format", format));
  if (format != kFormat)
    return Fail(ErrorCode::kCorrupt,
                Format("manifest: format {} is not supported, only {}", format, kFormat));
  if (const auto complete = json.find("complete"); complete == json.end() || *complete != true)
    return Corrupt("complete");

  Manifest manifest;
  TrainingPosition& position = manifest.position;
  RETURN_IF_ERROR(Get(json, "step", position.step));
  RETURN_IF_ERROR(Get(json, "tick", position.tick));
  RETURN_IF_ERROR(Get(json, "epoch", position.epoch));
  std::string membership;
  RETURN_IF_ERROR(Get(json, "membership", membership));
  const auto id = ParseMembership(membership);
  if (!id) return Corrupt("membership");
  position.membership = *id;
  RETURN_IF_ERROR(GetNoise(json, position.noise));
  RETURN_IF_ERROR(GetBatches(json, position.batches));
  if (json.contains("evaluateEvery")) {
    RETURN_IF_ERROR(Get(json, "evaluateEvery", position.evaluate_every));
  }

  RETURN_IF_ERROR(Get(json, "seed", manifest.job.seed));
  RETURN_IF_ERROR(Get(json, "globalBatchSize", manifest.job.global_batch_size));
  std::uint64_t shards = 0;
  RETURN_IF_ERROR(Get(json, "logicalShards", shards));
  if (shards > std::numeric_limits<int>::max()) return Corrupt("logicalShards");
  manifest.job.logical_shards = static_cast<int>(shards);
  RETURN_IF_ERROR(Get(json, "trainSamples", manifest.job.train_samples));
  RETURN_IF_ERROR(Get(json, "testSamples", manifest.job.test_samples));
  RETURN_IF_ERROR(GetBase(json, manifest.job.base));
  RETURN_IF_ERROR(Get(json, "framework", manifest.framework));
  RETURN_IF_ERROR(Get(json, "parametersSha256", manifest.parameters_sha256));

  ASSIGN_OR_RETURN(manifest.files, FilesIn(json));
  return manifest;
}

}  // namespace pliant
