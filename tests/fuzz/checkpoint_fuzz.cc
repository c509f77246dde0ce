// Fuzzes the readers of a checkpoint volume: manifests, lists of the files of a slice, and headers
// of safetensors files.

#include <algorithm>
#include <array>

#include "base/check.h"
#include "tests/fuzz/fuzz_target.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/memory_store.h"
#include "trainer/checkpoint/safetensors.h"

namespace pliant {
namespace {

constexpr std::string_view kManifestPath = "step-000000000007-t000000000008-m1.2/manifest.json";
constexpr std::string_view kModelPath =
    "step-000000000007-t000000000008-m1.2/model-00001-of-00001.safetensors";

const MemoryStore& SavedStore() {
  static const MemoryStore store = [] {
    MemoryStore made;
    std::array<float, 6> weight{1, 2, 3, 4, 5, 6};
    std::array<std::int64_t, 1> count{9};
    const StateDict state = {{.name = "model.weight",
                              .shape = {2, 3},
                              .bytes = std::as_writable_bytes(std::span(weight))},
                             {.name = "optimizer.count",
                              .dtype = DType::kInt64,
                              .shape = {},
                              .bytes = std::as_writable_bytes(std::span(count))}};
    CHECK(SaveCheckpoint(made,
                         {.position = {.step = 7, .tick = 8, .membership = {1, 2}},
                          .job = {.seed = 1, .global_batch_size = 8, .logical_shards = 4},
                          .framework = "fuzz"},
                         state)
              .has_value(),
          "memory takes it");
    return made;
  }();
  return store;
}

std::string ObjectText(std::string_view name) {
  MemoryStore store = SavedStore();
  return fuzz::TextOf(store.objects().at(std::string(name)));
}

void RunHeader(std::span<const std::byte> bytes) {
  if (bytes.size() < safetensors::kLengthBytes) return;
  const auto length =
      safetensors::DecodeHeaderLength(bytes.first<safetensors::kLengthBytes>(), bytes.size());
  if (!length) return;
  const auto rest = bytes.subspan(safetensors::kLengthBytes);
  CHECK(*length <= rest.size(), "the header is within the file");
  const auto header =
      safetensors::DecodeHeader(fuzz::TextOf(rest.first(*length)), rest.size() - *length);
  if (!header) return;
  std::uint64_t end = 0;
  for (const safetensors::TensorInfo& tensor : header->tensors) {
    CHECK(tensor.begin == end && tensor.end >= tensor.begin, "tensors fill the file in order");
    end = tensor.end;
  }
  CHECK(end == rest.size() - *length, "to its end");
}

// A damaged file in an otherwise good checkpoint: the restore reports an error or returns what was
// saved.
void RunRestore(std::string_view path, std::span<const std::byte> bytes) {
  MemoryStore store = SavedStore();
  store.objects()[std::string(path)] = {bytes.begin(), bytes.end()};
  const auto restored =
      RestoreNewest(store, {.seed = 1, .global_batch_size = 8, .logical_shards = 4});
  if (!restored) return;
  CHECK(restored->state.view().size() == 2, "a checkpoint that verifies is the one that was saved");
}

}  // namespace

std::vector<std::string> fuzz::Seeds() {
  return {ObjectText(kManifestPath), ObjectText(kModelPath),
          EncodeFiles({{.name = "model-00001-of-00002.safetensors", .bytes = 88, .crc32c = 7},
                       {.name = "buffers-00001-of-00002.safetensors", .bytes = 8}})};
}

}  // namespace pliant

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pliant;
  const auto bytes = fuzz::BytesOf(data, size);
  RunHeader(bytes);
  if (const auto manifest = DecodeManifest(fuzz::TextOf(data, size))) {
    const auto again = DecodeManifest(EncodeManifest(*manifest));
    CHECK(again && *again == *manifest, "what was read can be written and read");
  }
  if (const auto files = DecodeFiles(fuzz::TextOf(data, size))) {
    const auto again = DecodeFiles(EncodeFiles(*files));
    CHECK(again && *again == *files, "what was read can be written and read");
  }
  const bool is_manifest = size > 0 && data[0] == '{';
  RunRestore(is_manifest ? kManifestPath : kModelPath, bytes);
  return 0;
}
