// Checkpoints on a real FileStore, with a crash of the machine at every instant, and with a failure
// of every system call.

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/checkpoint/crash_disk.h"
#include "tests/unit/checkpoint/training_state.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/file_store.h"
#include "trainer/checkpoint/memory_store.h"

namespace pliant {
namespace {

namespace fs = std::filesystem;

constexpr int kKeep = 2;
constexpr std::size_t kMaxOutcomes = 400;  // examined per instant

Result<Manifest> SaveAndPrune(CheckpointStore& store, std::uint64_t step, int keep) {
  TrainingState state(step);
  Result<Manifest> saved = SaveCheckpoint(store, LabelAt(step), state.View());
  if (saved)
    if (const Status pruned = PruneTo(store, saved->position, keep); !pruned)
      return std::unexpected(pruned.error());
  return saved;
}

Result<Manifest> Export(CheckpointStore& store, std::uint64_t step) {
  TrainingState state(step);
  return ExportFinal(store, LabelAt(step), state.View());
}

// The step from which a learner would continue, 0 without a checkpoint. Checks that its state is
// complete.
std::uint64_t RestoredStep(CheckpointStore& store) {
  const Result<Restored> restored = RestoreNewest(store, LabelAt(0).job);
  if (!restored) {
    EXPECT_EQ(restored.error().code, ErrorCode::kNotFound) << restored.error();
    return 0;
  }
  const std::uint64_t step = restored->manifest.position.step;
  TrainingState want(step);
  EXPECT_EQ(Contents(restored->state.view()), Contents(want.View()));
  return step;
}

// The content of folder "uid" after a crash.
MemoryStore StoreOf(const CrashDisk::Files& files) {
  constexpr std::string_view kFolder = "uid/";
  MemoryStore store;
  for (const auto& [name, content] : files) {
    if (!name.starts_with(kFolder)) continue;
    const auto bytes = std::as_bytes(std::span(content));
    store.objects()[name.substr(kFolder.size())] = {bytes.begin(), bytes.end()};
  }
  return store;
}

class CrashSafety : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "crash-safety-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  fs::path directory_;
};

TEST_F(CrashSafety, AfterACrashAtAnyInstantTheNewestCheckpointOrTheOneBeforeIsThere) {
  DiskRecorder recorder(directory_.string());
  FileStore store(directory_ / "uid");
  // From event `begin` on: the lowest and highest step that may be restored, and whether a final
  // model may or must exist.
  struct Phase {
    std::size_t begin = 0;
    std::uint64_t least = 0;
    std::uint64_t most = 0;
    bool final_may = false;
    bool final_must = false;
  };
  std::vector<Phase> phases;
  std::uint64_t newest = 0;
  for (const std::uint64_t step : {100U, 200U, 300U, 400U}) {
    phases.push_back({.begin = recorder.events().size(), .least = newest, .most = step});
    TrainingState state(step);
    ASSERT_TRUE(SaveCheckpoint(store, LabelAt(step), state.View()));
    phases.push_back({.begin = recorder.events().size(), .least = step, .most = step});
    ASSERT_TRUE(PruneTo(store, LabelAt(step).position, kKeep));
    newest = step;
  }
  phases.push_back(
      {.begin = recorder.events().size(), .least = newest, .most = newest, .final_may = true});
  const Result<Manifest> exported = Export(store, newest);
  ASSERT_TRUE(exported);
  phases.push_back({.begin = recorder.events().size(),
                    .least = newest,
                    .most = newest,
                    .final_may = true,
                    .final_must = true});

  CrashDisk disk(directory_.string());
  std::mt19937_64 random(1);
  std::size_t outcomes = 0;
  for (std::size_t k = 0; k <= recorder.events().size(); ++k) {
    SCOPED_TRACE("crash before event " + std::to_string(k));
    const auto& phase =
        *std::ranges::find_last_if(phases, [&](const Phase& p) { return p.begin <= k; }).begin();
    disk.ForEachOutcome(kMaxOutcomes, random, [&](const CrashDisk::Files& files) {
      if (HasFailure()) return;
      ++outcomes;
      MemoryStore found = StoreOf(files);
      const std::uint64_t restored = RestoredStep(found);
      EXPECT_GE(restored, phase.least);
      EXPECT_LE(restored, phase.most);
      const Result<Manifest> final = ReadFinal(found);
      EXPECT_TRUE(!final || phase.final_may);
      EXPECT_TRUE(final || !phase.final_must);
      if (final) {
        EXPECT_EQ(*final, *exported);
        MemoryStore whole;
        ASSERT_TRUE(Export(whole, newest));
        EXPECT_EQ(found.objects()["final/model.safetensors"],
                  whole.objects()["final/model.safetensors"]);
      }
      // The next learner continues, and cleans up.
      ASSERT_TRUE(SaveAndPrune(found, 500, 1));
      EXPECT_EQ(RestoredStep(found), 500U);
      EXPECT_EQ(found.List("step-")->size(), 3U) << "no remains";
      EXPECT_TRUE(Export(found, 500));
    });
    if (k < recorder.events().size()) disk.Apply(recorder.events()[k]);
  }
  EXPECT_GT(recorder.events().size(), 100U);
  EXPECT_GT(outcomes, 5'000U);
}

// Once, or from then on, as on a volume that is full or mounted read-only.
TEST_F(CrashSafety, AnErrorAtAnyInstantLeavesWhatWasThere) {
  for (const int error : {ENOSPC, EIO, EROFS}) {
    for (const bool stays : {false, true}) {
      bool completed = false;
      for (std::size_t k = 0; !completed; ++k) {
        SCOPED_TRACE(std::to_string(error) + (stays ? " stays from " : " at ") + std::to_string(k));
        const fs::path root = directory_ / "uid";
        fs::remove_all(root);
        DiskRecorder recorder(directory_.string());
        FileStore store(root);
        for (const std::uint64_t step : {100U, 200U}) ASSERT_TRUE(SaveAndPrune(store, step, kKeep));
        const std::size_t before = recorder.asked();
        recorder.fail = [&](std::size_t number) {
          return number == before + k || (stays && number > before + k) ? error : 0;
        };
        const Result<Manifest> saved = SaveAndPrune(store, 300, kKeep);
        const Result<Manifest> exported = Export(store, 300);
        completed = saved && exported && recorder.asked() <= before + k;
        recorder.fail = nullptr;
        const std::uint64_t restored = RestoredStep(store);
        EXPECT_TRUE(restored == 300 || (!saved && restored == 200)) << restored;
        if (!saved && restored == 200 && !stays) {
          EXPECT_TRUE(store.List("step-000000000300")->empty())
              << "a failed attempt leaves no file";
        }
        ASSERT_TRUE(SaveAndPrune(store, 400, 1));
        EXPECT_EQ(RestoredStep(store), 400U);
        EXPECT_EQ(store.List("step-")->size(), 3U) << "no remains";
        ASSERT_TRUE(Export(store, 400));
        EXPECT_TRUE(ReadFinal(store));
        ASSERT_LT(k, 200U);
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace pliant
