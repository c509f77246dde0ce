// Checkpoints that several learners write at once, a slice each.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/checkpoint/training_state.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/memory_store.h"
#include "trainer/checkpoint/state_slice.h"

namespace pliant {
namespace {

using Fault = MemoryStore::Fault;
using ::testing::ElementsAre;

constexpr int kSlices = 3;
constexpr std::size_t kGiB = std::size_t{1} << 30;

Result<std::optional<Manifest>> Save(CheckpointStore& store, std::uint64_t step, int index,
                                     MembershipId membership = {.term = 2, .counter = 5}) {
  TrainingState state(step);
  const StateSlice slice{.index = index, .count = kSlices};
  return SaveSlice(store, LabelAt(step, membership), slice, SliceOf(state.View(), slice));
}

// The step from which a learner would continue, 0 without a checkpoint. Checks that its state is
// complete.
std::uint64_t RestoredStep(CheckpointStore& store) {
  const Result<Restored> restored = RestoreNewest(store, LabelAt(0).job);
  if (!restored) return 0;
  TrainingState want(restored->manifest.position.step);
  EXPECT_EQ(Contents(restored->state.view()), Contents(want.View()));
  return restored->manifest.position.step;
}

TEST(SlicesFor, LargeStatesAreSharedAsFarAsThereAreLearners) {
  const struct {
    std::size_t bytes;
    std::size_t least;
    int learners;
    int want;
  } kCases[] = {
      {.bytes = 0, .least = kGiB, .learners = 4, .want = 1},
      {.bytes = kGiB - 1, .least = kGiB, .learners = 4, .want = 1},
      {.bytes = 2 * kGiB - 1, .least = kGiB, .learners = 4, .want = 1},
      {.bytes = 2 * kGiB, .least = kGiB, .learners = 4, .want = 2},
      {.bytes = 100 * kGiB, .least = kGiB, .learners = 4, .want = 4},
      {.bytes = 100 * kGiB, .least = kGiB, .learners = 1, .want = 1},
      {.bytes = 10, .least = 0, .learners = 4, .want = 4},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(SlicesFor(c.bytes, c.least, c.learners), c.want)
        << c.bytes << " bytes, " << c.learners << " learners";
  }
}

TEST(SliceOf, EveryTensorIsInOneSlice) {
  TrainingState state(7);
  const auto all = Contents(state.View());
  for (int count = 1; count <= 8; ++count) {
    std::vector<std::pair<std::string, std::vector<std::byte>>> together;
    for (int index = 0; index < count; ++index) {
      const auto part = Contents(SliceOf(state.View(), {.index = index, .count = count}));
      together.insert(together.end(), part.begin(), part.end());
    }
    std::ranges::sort(together);
    EXPECT_EQ(together, all) << count << " slices";
  }
}

// A joiner receives the whole state, with the tensors in the order of its own.
TEST(SliceOf, TheOrderStays) {
  std::vector<std::byte> memory(4);
  StateDict state;
  for (const std::string name : {"model.weight", "buffers.mask", "model.frozen", "optimizer.step"})
    state.push_back({.name = name, .dtype = DType::kUInt8, .shape = {4}, .bytes = memory});
  const StateDict whole = SliceOf(state, {});
  ASSERT_EQ(whole.size(), state.size());
  for (std::size_t i = 0; i < state.size(); ++i) EXPECT_EQ(whole[i].name, state[i].name);
}

TEST(SliceOf, SlicesAreOfAboutEqualBytesForTheModelAndForTheRest) {
  std::vector<std::byte> memory(800);
  StateDict state;
  for (const std::string prefix : {"model.", "optimizer."}) {
    for (int i = 0; i < 40; ++i) {
      state.push_back({.name = prefix + std::to_string(i),
                       .dtype = DType::kUInt8,
                       .shape = {10},
                       .bytes = std::span(memory).first(10)});
    }
  }
  for (int index = 0; index < 4; ++index) {
    const StateDict own = SliceOf(state, {.index = index, .count = 4});
    EXPECT_EQ(own.size(), 20U);
    EXPECT_EQ(own.front().name, "model." + std::to_string(10 * index)) << "slices are contiguous";
  }
}

TEST(SlicedCheckpoint, IsThereWithTheLastSliceWhoeverWritesIt) {
  std::vector<int> order(kSlices);
  std::iota(order.begin(), order.end(), 0);
  do {
    MemoryStore store;
    for (int i = 0; i < kSlices; ++i) {
      const auto saved = Save(store, 100, order[i]);
      ASSERT_TRUE(saved) << saved.error();
      EXPECT_EQ(saved->has_value(), i == kSlices - 1);
      EXPECT_EQ(RestoredStep(store), i == kSlices - 1 ? 100U : 0U);
    }
  } while (std::ranges::next_permutation(order).found);
}

TEST(SlicedCheckpoint, TheManifestDoesNotDependOnTheLearnerThatCompletesIt) {
  std::optional<Manifest> first;
  for (int last = 0; last < kSlices; ++last) {
    MemoryStore store;
    for (int i = 1; i <= kSlices; ++i) ASSERT_TRUE(Save(store, 100, (last + i) % kSlices));
    const auto again = Save(store, 100, 0);  // it is complete, so nothing is written
    ASSERT_TRUE(again && *again);
    if (!first) first = **again;
    EXPECT_EQ(**again, *first);
    EXPECT_EQ((*again)->parameters_sha256, "") << "no learner has seen the whole state";
    EXPECT_EQ((*again)->files.size(), 2U * kSlices);
  }
}

// On a volume with delayed listings no writer sees all slices in time; a waiting learner looks
// again.
TEST(SlicedCheckpoint, IsPublishedByWhoLooksAgain) {
  MemoryStore store;
  for (int i = 0; i < kSlices; ++i) ASSERT_TRUE(Save(store, 100, i));
  ASSERT_EQ(store.objects().erase("step-000000000100-t000000000110-m2.5/manifest.json"), 1U);
  EXPECT_EQ(RestoredStep(store), 0U);
  const auto published = PublishSlices(store, LabelAt(100), kSlices);
  ASSERT_TRUE(published && *published);
  EXPECT_EQ(RestoredStep(store), 100U);

  MemoryStore half;
  ASSERT_TRUE(Save(half, 100, 1));
  const auto nothing = PublishSlices(half, LabelAt(100), kSlices);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(*nothing, std::nullopt);
}

// One of the writers dies at any operation: before it, after it or half-way. The others write their
// slices.
TEST(SlicedCheckpoint, SurvivesACrashOfAnyWriterAtEveryOperation) {
  for (const Fault fault : {Fault::kFail, Fault::kFailDone, Fault::kFailTorn}) {
    for (int dead = 0; dead < kSlices; ++dead) {
      bool completed = false;
      for (std::uint64_t crash = 0; !completed; ++crash) {
        SCOPED_TRACE(testing::Message()
                     << "fault " << static_cast<int>(fault) << " of " << dead << " at " << crash);
        MemoryStore store;
        for (int i = 0; i < kSlices; ++i) ASSERT_TRUE(Save(store, 100, i));
        std::optional<Manifest> saved;
        completed = true;
        for (int i = 0; i < kSlices; ++i) {
          const std::uint64_t before = store.operations();
          if (i == dead) {
            store.fault = [&](std::uint64_t operation, std::string_view) {
              if (operation < before + crash) return Fault::kNone;
              return operation == before + crash ? fault : Fault::kFail;
            };
          }
          const auto result = Save(store, 200, i);
          store.fault = nullptr;
          if (i == dead) completed = result.has_value();
          if (result && *result) saved = *result;
        }
        const std::uint64_t restored = RestoredStep(store);
        EXPECT_TRUE(restored == 100 || restored == 200) << restored;
        EXPECT_TRUE(!saved || restored == 200) << restored;

        // The learners of the next membership continue, and clean up.
        const MembershipId next{.term = 2, .counter = 6};
        for (int i = 0; i < kSlices; ++i) ASSERT_TRUE(Save(store, 300, i, next));
        ASSERT_TRUE(PruneTo(store, LabelAt(300, next).position, 1));
        EXPECT_EQ(store.objects().size(), 3U * kSlices + 1) << "no remains";
        EXPECT_EQ(RestoredStep(store), 300U);
        ASSERT_LT(crash, 50U);
      }
    }
  }
}

TEST(SlicedCheckpoint, AFailedWriteTakesNoRoom) {
  MemoryStore store;
  ASSERT_TRUE(Save(store, 100, 0));
  const auto before = store.objects();
  std::uint64_t used = 0;
  for (const auto& [name, content] : before) used += content.size();
  for (std::uint64_t room = 0; room < 200; room += 20) {
    store.capacity = used + room;
    ASSERT_FALSE(Save(store, 100, 1)) << room;
    EXPECT_EQ(store.objects(), before) << room;
  }
}

// Its list was written although the store reported a failure: other learners may already rely on
// it.
TEST(SlicedCheckpoint, KeepsASliceThatOthersMayHavePublished) {
  MemoryStore store;
  ASSERT_TRUE(Save(store, 100, 0));
  ASSERT_TRUE(Save(store, 100, 1));
  store.fault = [](std::uint64_t, std::string_view name) {
    return name.ends_with("slice-00003-of-00003.json") ? Fault::kFailDone : Fault::kNone;
  };
  ASSERT_FALSE(Save(store, 100, 2));
  const auto published = PublishSlices(store, LabelAt(100), kSlices);
  ASSERT_TRUE(published && *published);
  EXPECT_EQ(RestoredStep(store), 100U);
}

TEST(SlicedCheckpoint, AnAttemptThatLacksASliceMakesRoomForTheNextOnes) {
  MemoryStore store;
  ASSERT_TRUE(Save(store, 100, 0));
  ASSERT_TRUE(Save(store, 200, 0));
  RemoveRemains(store, LabelAt(200).position);
  for (const auto& [name, content] : store.objects())
    EXPECT_TRUE(name.starts_with("step-000000000200"));
  EXPECT_EQ(store.objects().size(), 3U);
}

// While a checkpoint is being removed, the volume begins to refuse removals. A manifest of the
// remaining files would persist and look like a checkpoint.
TEST(SlicedCheckpoint, APartlyRemovedCheckpointIsNotPublished) {
  for (std::uint64_t removed = 0; removed <= 3U * kSlices; ++removed) {
    MemoryStore store;
    for (int i = 0; i < kSlices; ++i) ASSERT_TRUE(Save(store, 100, i));
    ASSERT_EQ(store.objects().erase("step-000000000100-t000000000110-m2.5/manifest.json"), 1U);
    store.fault = [end = store.operations() + removed](std::uint64_t operation, std::string_view) {
      return operation < end ? Fault::kNone : Fault::kFail;
    };
    RemoveRemains(store, LabelAt(200).position);
    EXPECT_EQ(store.objects().size(), 3U * kSlices - removed);
    store.fault = [put = store.operations()](std::uint64_t operation, std::string_view) {
      return operation == put ? Fault::kNone : Fault::kFail;
    };
    (void)PublishSlices(store, LabelAt(100), kSlices);
    const Result<Restored> restored = RestoreNewest(store, LabelAt(0).job);
    EXPECT_EQ(restored.has_value(), removed == 0) << removed;
    if (!restored) {
      EXPECT_EQ(restored.error().code, ErrorCode::kNotFound) << removed;
    }
  }
}

// One learner publishes a checkpoint, another removes it as remains, unknown to each other. In
// either order no manifest is left without its files.
TEST(SlicedCheckpoint, ARemovalDuringPublicationLeavesNothing) {
  for (const bool publishes_first : {true, false}) {
    SCOPED_TRACE(publishes_first);
    MemoryStore store;
    for (int i = 0; i < kSlices; ++i) ASSERT_TRUE(Save(store, 100, i));
    ASSERT_EQ(store.objects().erase("step-000000000100-t000000000110-m2.5/manifest.json"), 1U);
    const auto publish = [&] { (void)PublishSlices(store, LabelAt(100), kSlices); };
    const auto remove = [&] { RemoveRemains(store, LabelAt(200).position); };
    // It has listed the files, and is about to change the first one.
    bool looked = false;
    store.fault = [&](std::uint64_t, std::string_view) {
      if (std::exchange(looked, true)) return Fault::kNone;
      publishes_first ? remove() : publish();
      return Fault::kNone;
    };
    publishes_first ? publish() : remove();
    EXPECT_TRUE(looked);
    EXPECT_TRUE(store.objects().empty());
  }
}

// A learner may write the whole checkpoint although some slices exist, when their writers are gone.
TEST(SlicedCheckpoint, OneLearnerMayWriteItAll) {
  MemoryStore store;
  ASSERT_TRUE(Save(store, 100, 0));
  ASSERT_TRUE(Save(store, 100, 2));
  TrainingState state(100);
  const auto whole = SaveSlice(store, LabelAt(100), {}, state.View());
  ASSERT_TRUE(whole && *whole);
  EXPECT_EQ(RestoredStep(store), 100U);
  const auto late = Save(store, 100, 1);
  ASSERT_TRUE(late && *late);
  EXPECT_EQ(**late, **whole) << "it exists already";
  EXPECT_EQ(RestoredStep(store), 100U);
}

// A learner that timed out waiting for a slow writer begins to write everything, while that one
// publishes its slices.
TEST(SlicedCheckpoint, APublishedCheckpointIsNotWrittenAgainAsAWhole) {
  for (const bool full : {true, false}) {
    MemoryStore store;
    for (int i = 0; i < kSlices; ++i) ASSERT_TRUE(Save(store, 100, i));
    const auto published = store.objects();
    if (full) {
      store.capacity = 0;
      for (const auto& [name, content] : published) *store.capacity += content.size();
    } else {
      store.fault = [](std::uint64_t, std::string_view name) {
        return name.ends_with("manifest.json") ? Fault::kNone : Fault::kFail;
      };
    }
    TrainingState state(100);
    const auto whole = SaveSlice(store, LabelAt(100), {}, state.View());
    EXPECT_EQ(store.objects(), published) << "full " << full;
    EXPECT_EQ(RestoredStep(store), 100U) << "full " << full;
    ASSERT_TRUE(whole && *whole) << "full " << full;
    EXPECT_EQ((*whole)->files.size(), 2U * kSlices) << "nothing is written again";
  }
}

TEST(SlicedCheckpoint, WritesACheckpointWholeIfAFileIsGone) {
  MemoryStore store;
  for (int i = 0; i < kSlices; ++i) ASSERT_TRUE(Save(store, 100, i));
  ASSERT_EQ(store.objects().erase(
                "step-000000000100-t000000000110-m2.5/model-00002-of-00003.safetensors"),
            1U);
  TrainingState state(100);
  const auto whole = SaveSlice(store, LabelAt(100), {}, state.View());
  ASSERT_TRUE(whole && *whole);
  EXPECT_EQ((*whole)->files.size(), 2U);
  EXPECT_EQ(RestoredStep(store), 100U);
}

}  // namespace
}  // namespace pliant
