#include "trainer/checkpoint/checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"
#include "tests/unit/checkpoint/training_state.h"
#include "trainer/checkpoint/memory_store.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/volume_error.h"

namespace pliant {
namespace {

using Fault = MemoryStore::Fault;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const JobIdentity kJob = LabelAt(0).job;

Result<Manifest> Save(CheckpointStore& store, std::uint64_t step,
                      MembershipId membership = {.term = 2, .counter = 5}) {
  TrainingState state(step);
  return SaveCheckpoint(store, LabelAt(step, membership), state.View());
}

void ExpectRestores(CheckpointStore& store, std::uint64_t step) {
  const Result<Restored> restored = RestoreNewest(store, kJob);
  ASSERT_TRUE(restored) << restored.error();
  EXPECT_EQ(restored->manifest.position.step, step);
  TrainingState want(step);
  EXPECT_EQ(Contents(restored->state.view()), Contents(want.View()));
}

std::vector<std::string> NamesIn(MemoryStore& store) {
  std::vector<std::string> names;
  for (const auto& [name, content] : store.objects()) names.push_back(name);
  return names;
}

void FlipByte(MemoryStore& store, const std::string& name, std::size_t at) {
  store.objects().at(name).at(at) ^= std::byte{1};
}

TEST(Checkpoint, ComesBackAsItWasSaved) {
  MemoryStore store;
  const Result<Manifest> saved = Save(store, 1234);
  ASSERT_TRUE(saved) << saved.error();
  EXPECT_THAT(
      NamesIn(store),
      ElementsAre("step-000000001234-t000000001244-m2.5/manifest.json",
                  "step-000000001234-t000000001244-m2.5/model-00001-of-00001.safetensors",
                  "step-000000001234-t000000001244-m2.5/optimizer-00001-of-00001.safetensors"));
  const Result<Restored> restored = RestoreNewest(store, kJob);
  ASSERT_TRUE(restored) << restored.error();
  EXPECT_EQ(restored->manifest, *saved);
  EXPECT_EQ(restored->manifest.position, LabelAt(1234).position);
  EXPECT_TRUE(restored->passed_over.empty());
  TrainingState want(1234);
  EXPECT_EQ(Contents(restored->state.view()), Contents(want.View()));

  TrainingState other(1);
  ASSERT_TRUE(CopyState(restored->state.view(), other.View()));
  EXPECT_EQ(ParametersSha256(other.View()), saved->parameters_sha256);
}

TEST(Checkpoint, WithoutOneThereIsNothingToRestore) {
  MemoryStore store;
  EXPECT_EQ(RestoreNewest(store, kJob).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(Save(store, 5));
  store.objects().erase("step-000000000005-t000000000015-m2.5/manifest.json");
  EXPECT_EQ(RestoreNewest(store, kJob).error().code, ErrorCode::kNotFound)
      << "without a manifest it does not exist";
}

TEST(Checkpoint, TheNewestIsTheOneWithTheMostStepsAndThenTheLatestMembership) {
  MemoryStore store;
  ASSERT_TRUE(Save(store, 200, {.term = 1, .counter = 9}));
  ASSERT_TRUE(Save(store, 1000000000000, {.term = 1, .counter = 1}));  // wider than its padding
  ASSERT_TRUE(Save(store, 999999999999, {.term = 3, .counter = 1}));
  ExpectRestores(store, 1000000000000);
  ASSERT_TRUE(Save(store, 1000000000000, {.term = 1, .counter = 10}));
  EXPECT_EQ(RestoreNewest(store, kJob)->manifest.position.membership,
            (MembershipId{.term = 1, .counter = 10}));
}

TEST(Checkpoint, RefusesACheckpointOfAnotherJob) {
  MemoryStore store;
  ASSERT_TRUE(Save(store, 5));
  const struct {
    JobIdentity job;
    const char* want;
  } kCases[] = {
      {{8, 256, 32, 5000, 0}, "written with seed 7; this job has seed 8"},
      {{7, 512, 32, 5000, 0}, "globalBatchSize 256; this job has globalBatchSize 512"},
      {{7, 256, 16, 5000, 0}, "logicalShards 32; this job has logicalShards 16"},
      {{7, 256, 32, 4999, 0}, "trainSamples 5000; this job has trainSamples 4999"},
      {{7, 256, 32, 5000, 100}, "testSamples 0; this job has testSamples 100"},
      {{8, 256, 32, 1, 0}, "seed 7, trainSamples 5000; this job has seed 8, trainSamples 1"},
  };
  for (const auto& c : kCases) {
    const Result<Restored> restored = RestoreNewest(store, c.job);
    ASSERT_FALSE(restored) << c.want;
    EXPECT_EQ(restored.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(restored.error().message, HasSubstr(c.want));
  }
}

// Flips every single byte of every file: the damage is reported, and the checkpoint before is
// restored.
TEST(Checkpoint, AnyDamageIsSeen) {
  MemoryStore good;
  ASSERT_TRUE(Save(good, 100));
  ASSERT_TRUE(Save(good, 200));
  int damaged = 0;
  for (const std::string& name : NamesIn(good)) {
    if (!name.starts_with("step-000000000200")) continue;
    for (std::size_t at = 0; at < good.objects()[name].size(); ++at) {
      MemoryStore store;
      store.objects() = good.objects();
      FlipByte(store, name, at);
      const Result<Restored> restored = RestoreNewest(store, kJob);
      // Some bytes of the manifest do not matter to the state: white space, the framework's name.
      if (name.ends_with("manifest.json")) {
        if (!restored) {
          EXPECT_EQ(restored.error().code, ErrorCode::kInvalid) << restored.error();
          continue;
        }
        TrainingState want(restored->passed_over.empty() ? 200 : 100);
        EXPECT_EQ(Contents(restored->state.view()), Contents(want.View()));
        continue;
      }
      ASSERT_TRUE(restored) << restored.error();
      EXPECT_EQ(restored->manifest.position.step, 100U) << name << " byte " << at;
      ASSERT_EQ(restored->passed_over.size(), 1U);
      EXPECT_THAT(restored->passed_over.front(), HasSubstr("step-000000000200"));
      ++damaged;
    }
  }
  EXPECT_GT(damaged, 300);
}

TEST(Checkpoint, AFileThatIsCutOrGoneIsSeen) {
  for (const std::string file : {"model", "optimizer"}) {
    const std::string name =
        "step-000000000200-t000000000210-m2.5/" + file + "-00001-of-00001.safetensors";
    for (const bool gone : {false, true}) {
      MemoryStore store;
      ASSERT_TRUE(Save(store, 100));
      ASSERT_TRUE(Save(store, 200));
      if (gone)
        ASSERT_EQ(store.objects().erase(name), 1U);
      else
        store.objects().at(name).pop_back();
      ExpectRestores(store, 100);
      ASSERT_TRUE(Save(store, 200)) << "it can be written again";
      ExpectRestores(store, 200);
    }
  }
}

TEST(Checkpoint, WhenNoneVerifiesItIsNotAFreshStart) {
  MemoryStore store;
  ASSERT_TRUE(Save(store, 100));
  FlipByte(store, "step-000000000100-t000000000110-m2.5/model-00001-of-00001.safetensors", 100);
  const Result<Restored> restored = RestoreNewest(store, kJob);
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::kCorrupt);
}

// A learner dies at any operation: before it took effect, after it, or half-way. The store gives no
// atomicity. The next learner restores the old or the new checkpoint completely, and continues.
TEST(Checkpoint, SurvivesACrashAtEveryOperation) {
  for (const Fault fault : {Fault::kFail, Fault::kFailDone, Fault::kFailTorn}) {
    bool completed = false;
    for (std::uint64_t crash = 0; !completed; ++crash) {
      SCOPED_TRACE("fault " + std::to_string(static_cast<int>(fault)) + " at " +
                   std::to_string(crash));
      MemoryStore store;
      for (const std::uint64_t step : {100U, 200U, 300U}) ASSERT_TRUE(Save(store, step));
      const std::uint64_t before = store.operations();
      store.fault = [&](std::uint64_t operation, std::string_view) {
        if (operation < before + crash) return Fault::kNone;
        return operation == before + crash ? fault : Fault::kFail;  // a dead learner does nothing
                                                                    // more
      };
      const Result<Manifest> saved = Save(store, 400);
      const Status pruned = PruneTo(store, LabelAt(400).position, 2);
      completed = saved && pruned;
      store.fault = nullptr;

      if (saved) {
        ExpectRestores(store, 400);
      } else {
        const Result<Restored> restored = RestoreNewest(store, kJob);
        ASSERT_TRUE(restored) << restored.error();
        const std::uint64_t step = restored->manifest.position.step;
        ASSERT_TRUE(step == 300 || step == 400) << step;
        ExpectRestores(store, step);
      }

      const MembershipId next{.term = 2, .counter = 6};
      ASSERT_TRUE(Save(store, 500, next));
      ASSERT_TRUE(PruneTo(store, LabelAt(500, next).position, 1));
      EXPECT_EQ(store.objects().size(), 3U) << "no remains";
      ExpectRestores(store, 500);
      ASSERT_LT(crash, 50U);
    }
  }
}

std::uint64_t BytesIn(MemoryStore& store) {
  std::uint64_t bytes = 0;
  for (const auto& [name, content] : store.objects()) bytes += content.size();
  return bytes;
}

// Whatever room is left: earlier checkpoints stay, and a failed attempt uses no room.
TEST(Checkpoint, AFullVolumeKeepsWhatItHas) {
  MemoryStore store;
  ASSERT_TRUE(Save(store, 100));
  const std::uint64_t each = BytesIn(store);
  const auto before = store.objects();
  for (std::uint64_t room = 0; room < each; room += 50) {
    store.capacity = each + room;
    const Result<Manifest> saved = Save(store, 200);
    ASSERT_FALSE(saved) << room;
    EXPECT_EQ(WriteProblemOf(saved.error()), "VolumeFull") << saved.error();
    EXPECT_EQ(store.objects(), before) << room;
    TrainingState state(200);
    const bool exported = ExportFinal(store, LabelAt(200), state.View()).has_value();
    EXPECT_EQ(store.objects().size(), before.size() + (exported ? 2 : 0)) << room;
    store.objects() = before;
  }
  store.capacity = 2 * each;
  ASSERT_TRUE(Save(store, 200));
  ExpectRestores(store, 200);
}

TEST(Checkpoint, RemainsOfTheDeadMakeRoom) {
  const MembershipId older{.term = 2, .counter = 4};
  const MembershipId newer{.term = 2, .counter = 6};
  MemoryStore store;
  for (const MembershipId& membership : {older, newer}) {
    ASSERT_TRUE(Save(store, 200, membership));
    store.objects().erase("step-000000000200-t000000000210-m" + ToString(membership) +
                          "/manifest.json");
  }
  ASSERT_TRUE(Save(store, 100, older));
  RemoveRemains(store, {.step = 200, .membership = {.term = 2, .counter = 5}});
  std::set<std::string> directories;
  for (const std::string& name : NamesIn(store)) directories.insert(name.substr(0, name.find('/')));
  EXPECT_THAT(directories, ElementsAre("step-000000000100-t000000000110-m2.4",
                                       "step-000000000200-t000000000210-m2.6"))
      << "the newer membership may still be writing";
}

// During an evaluation the position is its beginning. Saving again must not endanger the existing
// checkpoint.
TEST(Checkpoint, SavingTheSameStateAgainWritesTheManifestAtMost) {
  MemoryStore store;
  ASSERT_TRUE(Save(store, 100));
  std::set<std::string> written;
  store.fault = [&](std::uint64_t, std::string_view name) {
    written.emplace(name);
    return Fault::kNone;
  };
  ASSERT_TRUE(Save(store, 100));
  EXPECT_TRUE(written.empty());
  TrainingState state(100);
  CheckpointLabel label = LabelAt(100);
  label.framework = "test 2";
  ASSERT_TRUE(SaveCheckpoint(store, label, state.View()));
  EXPECT_EQ(written, std::set<std::string>{"step-000000000100-t000000000110-m2.5/manifest.json"});
  EXPECT_EQ(RestoreNewest(store, kJob)->manifest.framework, label.framework);
}

// The state after an evaluation has the same step and membership as the one saved before it.
// Wherever saving it fails, the earlier checkpoint stays intact.
TEST(Checkpoint, OneStepMayHaveTheStatesOfSeveralTicks) {
  CheckpointLabel label = LabelAt(100);
  label.position.tick += 2;
  TrainingState evaluated(101);
  for (const bool sliced : {false, true}) {
    bool completed = false;
    for (std::uint64_t crash = 0; !completed; ++crash) {
      ASSERT_LT(crash, 50U);
      MemoryStore store;
      ASSERT_TRUE(Save(store, 100));
      const auto before = store.objects();
      const std::uint64_t first = store.operations();
      store.fault = [&](std::uint64_t operation, std::string_view) {
        return operation < first + crash ? Fault::kNone : Fault::kFail;
      };
      if (sliced) {
        const StateDict state = evaluated.View();
        for (int i = 0; i < 2; ++i) {
          const StateSlice slice{.index = i, .count = 2};
          const auto saved = SaveSlice(store, label, slice, SliceOf(state, slice));
          completed = saved && *saved;
        }
      } else {
        completed = SaveCheckpoint(store, label, evaluated.View()).has_value();
      }
      store.fault = nullptr;
      for (const auto& [name, content] : before) EXPECT_EQ(store.objects()[name], content) << name;
      const Result<Restored> restored = RestoreNewest(store, kJob);
      ASSERT_TRUE(restored) << restored.error();
      const bool newer = restored->manifest.position == label.position;
      EXPECT_TRUE(newer || !completed);
      TrainingState want(newer ? 101 : 100);
      EXPECT_EQ(Contents(restored->state.view()), Contents(want.View()));
    }
  }
}

TEST(Checkpoint, AStoreThatCannotBeReadIsNoReasonToGoBack) {
  class Unreachable final : public CheckpointStore {
   public:
    explicit Unreachable(MemoryStore& store) : store_(store) {}
    Status Put(std::string_view, std::span<const std::span<const std::byte>>) override {
      return {};
    }
    Status Read(std::string_view name, std::uint64_t offset, std::span<std::byte> out) override {
      if (name.starts_with("step-000000000200"))
        return Fail(ErrorCode::kUnavailable, "the server does not answer");
      return store_.Read(name, offset, out);
    }
    Result<std::vector<StoredObject>> List(std::string_view prefix) override {
      return store_.List(prefix);
    }
    Status Remove(std::string_view) override { return {}; }

   private:
    MemoryStore& store_;
  };
  MemoryStore store;
  ASSERT_TRUE(Save(store, 100));
  ASSERT_TRUE(Save(store, 200));
  Unreachable unreachable(store);
  EXPECT_EQ(RestoreNewest(unreachable, kJob).error().code, ErrorCode::kUnavailable);
}

TEST(PruneTo, KeepsTheNewestAndRemovesRemains) {
  const MembershipId older{.term = 2, .counter = 4};
  const MembershipId present{.term = 2, .counter = 5};
  const MembershipId newer{.term = 3, .counter = 1};
  MemoryStore store;
  for (const std::uint64_t step : {100U, 200U, 300U, 400U}) ASSERT_TRUE(Save(store, step, present));
  ASSERT_TRUE(Save(store, 350, older));
  store.objects().erase("step-000000000350-t000000000360-m2.4/manifest.json");
  ASSERT_TRUE(Save(store, 900, older));  // it did not verify, so training restarted from an earlier
                                         // step
  CheckpointLabel evaluated = LabelAt(400, older);  // this one did not verify either
  evaluated.position.tick += 2;
  TrainingState state(401);
  ASSERT_TRUE(SaveCheckpoint(store, evaluated, state.View()));
  store.objects()["metrics.jsonl"] = {};
  store.objects()["step-of-a-stranger/x"] = {};
  ASSERT_TRUE(PruneTo(store, LabelAt(400, present).position, 2));
  std::set<std::string> directories;
  for (const auto& [name, content] : store.objects())
    directories.insert(name.substr(0, name.find('/')));
  EXPECT_THAT(directories,
              ElementsAre("metrics.jsonl", "step-000000000300-t000000000310-m2.5",
                          "step-000000000400-t000000000410-m2.5", "step-of-a-stranger"));

  ASSERT_TRUE(Save(store, 500, newer));
  const auto before = NamesIn(store);
  ASSERT_TRUE(PruneTo(store, LabelAt(400, present).position, 1));
  EXPECT_EQ(NamesIn(store), before) << "a superseded membership removes nothing";
}

TEST(Checkpoint, IsRefusedOnAnotherBase) {
  MemoryStore store;
  CheckpointLabel label = LabelAt(300);
  label.job.base = {.sha256 = std::string(64, 'a'), .name = "gpt2@607a30d"};
  TrainingState state(300);
  ASSERT_TRUE(SaveCheckpoint(store, label, state.View()));
  EXPECT_TRUE(RestoreNewest(store, label.job));
  JobIdentity renamed = label.job;
  renamed.base.name = "a copy of it";
  EXPECT_TRUE(RestoreNewest(store, renamed)) << "the content counts";
  JobIdentity other = label.job;
  other.base.sha256[0] = 'b';
  const auto refused = RestoreNewest(store, other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message,
              HasSubstr("with the base gpt2@607a30d aaaaaaaaaaaa; this job "
                        "has the base gpt2@607a30d baaaaaaaaaaa"));
  const auto without = RestoreNewest(store, kJob);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, HasSubstr("this job has all parameters"));
}

TEST(FinalModel, IsPublishedOnce) {
  MemoryStore store;
  EXPECT_EQ(ReadFinal(store).error().code, ErrorCode::kNotFound);
  TrainingState state(1200);
  const Result<Manifest> exported = ExportFinal(store, LabelAt(1200), state.View());
  ASSERT_TRUE(exported) << exported.error();
  EXPECT_THAT(NamesIn(store), ElementsAre("final/manifest.json", "final/model.safetensors"));
  const Result<Manifest> read = ReadFinal(store);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(*read, *exported);
  EXPECT_EQ(RestoreNewest(store, kJob).error().code, ErrorCode::kNotFound) << "no checkpoint";
  EXPECT_TRUE(ExportFinal(store, LabelAt(1200, {.term = 4, .counter = 1}), state.View()));

  store.objects()["final/model.safetensors"].pop_back();
  EXPECT_EQ(ReadFinal(store).error().code, ErrorCode::kCorrupt);
}

// The temporary files have unique names, so that no writer overwrites another's remains.
TEST(FinalModel, RemovesTheRemainsOfKilledWriters) {
  MemoryStore store;
  store.objects()["final/model.safetensors.5ca1ab1e.part"].resize(100);
  store.objects()["final/manifest.json.5ca1ab1e.part"].resize(10);
  store.objects()["final/tokenizer.json"].resize(10);
  TrainingState state(1200);
  ASSERT_TRUE(ExportFinal(store, LabelAt(1200), state.View()));
  EXPECT_THAT(NamesIn(store), ElementsAre("final/manifest.json", "final/model.safetensors",
                                          "final/tokenizer.json"));
  EXPECT_TRUE(ReadFinal(store));
}

TEST(FinalModel, HasTheNamesOfItsFramework) {
  MemoryStore store;
  TrainingState state(1);
  ASSERT_TRUE(ExportFinal(store, LabelAt(1), state.View()));
  const auto& file = store.objects().at("final/model.safetensors");
  const auto length = safetensors::DecodeHeaderLength(
      std::span(file).first<safetensors::kLengthBytes>(), file.size());
  ASSERT_TRUE(length);
  const auto header = safetensors::DecodeHeader(
      std::string_view(reinterpret_cast<const char*>(file.data()) + 8, *length),
      file.size() - 8 - *length);
  ASSERT_TRUE(header) << header.error();
  std::vector<std::string> names;
  for (const auto& tensor : header->tensors) {
    names.push_back(tensor.name);
    EXPECT_EQ(tensor.begin % SizeOf(tensor.dtype), 0U) << "aligned for readers that map it";
  }
  EXPECT_THAT(names, ElementsAre("bn.batches", "fc.bias", "fc.weight", "mask"));
}

TEST(ParametersSha256, IsTheHashOfTheContract) {
  // printf 'a\0F32\0\0\x00\x00\x80\x3fb\0U8\0002,1\0\x01\x02' | sha256sum
  float one = 1;
  std::uint8_t pair[2] = {1, 2};
  float other = 5;
  const StateDict state = {
      {.name = "model.b",
       .dtype = DType::kUInt8,
       .shape = {2, 1},
       .bytes = std::as_writable_bytes(std::span(pair))},
      {.name = "optimizer.a", .shape = {}, .bytes = std::as_writable_bytes(std::span(&other, 1))},
      {.name = "model.a", .shape = {}, .bytes = std::as_writable_bytes(std::span(&one, 1))},
  };
  EXPECT_EQ(ParametersSha256(state),
            "969db59443e9db56abd0f8812f75eb161803173366709d0d6ec6c4eb3485a74f");
}

}  // namespace
}  // namespace pliant
