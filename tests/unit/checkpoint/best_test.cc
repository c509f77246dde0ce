// The best model so far: one whole model replaces another.

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/checkpoint/training_state.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/file_store.h"
#include "trainer/checkpoint/memory_store.h"
#include "trainer/checkpoint/stored_checkpoint.h"

namespace pliant {
namespace {

using Fault = MemoryStore::Fault;
using ::testing::AnyOf;
using ::testing::ElementsAre;

Result<Manifest> Export(CheckpointStore& store, std::uint64_t step,
                        MembershipId membership = {.term = 2, .counter = 5}) {
  TrainingState state(step);
  return ExportBest(store, LabelAt(step, membership), state.View(),
                    {.texts = {{.name = "best.json", .text = std::to_string(step)}}});
}

// The step of the model in best/, of which no file is another one's. 0: there is none.
std::uint64_t BestIn(CheckpointStore& store) {
  const auto present = FindDirectory(store, kBestDirectory);
  EXPECT_TRUE(present);
  if (present->files.empty()) return 0;
  const Result<Manifest> manifest = ReadManifest(store, *present);
  EXPECT_TRUE(manifest) << manifest.error();
  if (!manifest) return 0;
  MemoryStore expected;
  EXPECT_EQ(Export(expected, manifest->position.step)->files, manifest->files);
  EXPECT_EQ(present->files.size(), manifest->files.size() + 1) << "and nothing else";
  for (const ManifestFile& file : manifest->files) {
    std::vector<std::byte> content(file.bytes);
    EXPECT_TRUE(store.Read(PathIn(kBestDirectory, file.name), 0, content));
    EXPECT_EQ(content, expected.objects().at(PathIn(kBestDirectory, file.name))) << file.name;
  }
  return manifest->position.step;
}

std::vector<std::string> NamesIn(CheckpointStore& store) {
  std::vector<std::string> names;
  const std::vector<StoredObject> objects = *store.List("");
  for (const StoredObject& object : objects) names.push_back(object.name);
  return names;
}

TEST(Best, ReplacesTheOneBefore) {
  MemoryStore memory;
  const std::string folder = std::filesystem::temp_directory_path() / "pliant-best-XXXXXX";
  std::string made = folder;
  ASSERT_NE(::mkdtemp(made.data()), nullptr);
  FileStore files(made);
  for (CheckpointStore* const store :
       {static_cast<CheckpointStore*>(&memory), static_cast<CheckpointStore*>(&files)}) {
    EXPECT_EQ(BestIn(*store), 0U);
    for (const std::uint64_t step : {100U, 200U, 300U}) {
      const Result<Manifest> exported = Export(*store, step);
      ASSERT_TRUE(exported) << exported.error();
      EXPECT_EQ(BestIn(*store), step);
    }
    EXPECT_THAT(NamesIn(*store),
                ElementsAre("best/best.json", "best/manifest.json", "best/model.safetensors"));
  }
  std::filesystem::remove_all(made);
}

// Each operation fails once, done or not, and is the last one before a crash.
TEST(Best, ACrashLeavesTheOldOneOrTheNewOneWhole) {
  MemoryStore before;
  ASSERT_TRUE(Export(before, 100));
  MemoryStore counting;
  counting.objects() = before.objects();
  ASSERT_TRUE(Export(counting, 200));
  ASSERT_GT(counting.operations(), 3U);
  for (const Fault fault : {Fault::kFail, Fault::kFailDone, Fault::kFailTorn}) {
    for (std::uint64_t last = 0; last < counting.operations(); ++last) {
      MemoryStore store;
      store.objects() = before.objects();
      store.fault = [&](std::uint64_t operation, std::string_view) {
        if (operation == last) return fault;
        return operation < last ? Fault::kNone : Fault::kFail;
      };
      EXPECT_FALSE(Export(store, 200));
      store.fault = nullptr;
      EXPECT_THAT(BestIn(store), AnyOf(100U, 200U)) << last;
      // Another learner continues.
      ASSERT_TRUE(Export(store, 300, {.term = 3, .counter = 1}));
      EXPECT_EQ(BestIn(store), 300U);
      EXPECT_EQ(NamesIn(store).size(), 3U) << "nothing remains of the first one";
    }
  }
}

}  // namespace
}  // namespace pliant
