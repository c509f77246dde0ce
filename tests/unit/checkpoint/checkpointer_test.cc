#include "trainer/checkpoint/checkpointer.h"

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/real_event_loop.h"
#include "base/sim_event_loop.h"
#include "tests/unit/checkpoint/training_state.h"
#include "trainer/checkpoint/file_store.h"
#include "trainer/checkpoint/memory_store.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::shared_ptr<const StateCopy> StateAt(std::uint64_t step) {
  TrainingState state(step);
  return std::make_shared<const StateCopy>(StateCopy::Of(state.View()));
}

// Saves, prunes, publishes and restores. Returns the results in the order of their callbacks.
std::vector<std::string> PlayThrough(Checkpointer& checkpointer,
                                     const std::function<bool(const std::function<bool()>&)>& run) {
  std::vector<std::string> heard;
  const auto note = [&heard](const std::string& what) {
    return [&heard, what](const auto& result) {
      heard.push_back(what + (result ? "" : " " + std::string(ToString(result.error().code))));
    };
  };
  checkpointer.FindFinal(note("final"));
  checkpointer.Restore(LabelAt(0).job, note("restore"));
  EXPECT_TRUE(heard.empty()) << "never within the call";
  EXPECT_TRUE(run([&] { return heard.size() == 2; }));
  for (const std::uint64_t step : {100U, 200U, 300U})
    checkpointer.Save(LabelAt(step), {}, StateAt(step), 2, note("save"));
  checkpointer.ExportFinal(LabelAt(300), StateAt(300), {}, note("export"));
  EXPECT_TRUE(run([&] { return heard.size() == 6; }));
  checkpointer.FindFinal(note("final"));
  checkpointer.Restore(LabelAt(0).job, [&heard](Result<Restored> restored) {
    heard.push_back(restored ? "restored " + std::to_string(restored->manifest.position.step)
                             : restored.error().message);
  });
  EXPECT_TRUE(run([&] { return heard.size() == 8; }));
  return heard;
}

const std::vector<std::string> kHeard = {
    "final NotFound", "restore NotFound", "save",  "save",
    "save",           "export",           "final", "restored 300"};

TEST(InLoopCheckpointer, DoesOneThingAfterTheOther) {
  SimEventLoop loop;
  MemoryStore store;
  const auto checkpointer = NewInLoopCheckpointer(loop, store, [] { return milliseconds(100); });
  EXPECT_EQ(PlayThrough(*checkpointer,
                        [&](const auto& done) { return loop.RunUntilTrue(done, seconds(10)); }),
            kHeard);
  EXPECT_EQ(loop.Now(), TimePoint(milliseconds(800)));
  EXPECT_EQ(store.List("step-")->size(), 6U) << "pruned to two";
}

TEST(InLoopCheckpointer, ADeadLearnerHasDoneNothing) {
  SimEventLoop loop;
  MemoryStore store;
  auto checkpointer = NewInLoopCheckpointer(loop, store, [] { return milliseconds(100); });
  checkpointer->Save(LabelAt(1), {}, StateAt(1), 1, [](const auto&) { FAIL(); });
  loop.RunFor(milliseconds(99));
  checkpointer.reset();
  loop.RunFor(seconds(1));
  EXPECT_TRUE(store.objects().empty());
}

TEST(ThreadedCheckpointer, DoesOneThingAfterTheOther) {
  RealEventLoop loop;
  const auto checkpointer = NewThreadedCheckpointer(loop, std::make_unique<MemoryStore>());
  const auto run = [&](const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + seconds(30);
    while (!done() && std::chrono::steady_clock::now() < end)
      loop.context().run_one_for(milliseconds(100)), loop.context().restart();
    return done();
  };
  EXPECT_EQ(PlayThrough(*checkpointer, run), kHeard);
}

TEST(ThreadedCheckpointer, SaysNothingOnceItIsGone) {
  RealEventLoop loop;
  auto checkpointer = NewThreadedCheckpointer(loop, std::make_unique<MemoryStore>());
  for (int i = 0; i < 10; ++i)
    checkpointer->FindFinal([](const auto&) { FAIL() << "its caller may be destroyed, too"; });
  checkpointer.reset();
  loop.context().run_for(milliseconds(20));
}

TEST(ThreadedCheckpointer, LetsGoOfTheStateBeforeItReports) {
  RealEventLoop loop;
  const auto checkpointer = NewThreadedCheckpointer(loop, std::make_unique<MemoryStore>());
  auto state = StateAt(1);
  std::optional<long> holders;
  checkpointer->Save(LabelAt(1), {}, state, 1, [&](const auto&) { holders = state.use_count(); });
  const auto end = std::chrono::steady_clock::now() + seconds(30);
  while (!holders && std::chrono::steady_clock::now() < end)
    loop.context().run_one_for(milliseconds(100)), loop.context().restart();
  EXPECT_EQ(holders, 1) << "the copy's memory can be used for the next one";
}

// The result of RestoreFirst: "<step>", or an error.
std::string First(std::optional<ResumeSource> resume, JobIdentity job = LabelAt(0).job) {
  RealEventLoop loop;
  const auto checkpointer =
      NewThreadedCheckpointer(loop, std::make_unique<MemoryStore>(), std::move(resume));
  std::string heard;
  checkpointer->RestoreFirst(job, [&](Result<Restored> restored) {
    heard = restored
                ? std::to_string(restored->manifest.position.step)
                : std::string(ToString(restored.error().code)) + " " + restored.error().message;
  });
  const auto end = std::chrono::steady_clock::now() + seconds(30);
  while (heard.empty() && std::chrono::steady_clock::now() < end)
    loop.context().run_one_for(milliseconds(100)), loop.context().restart();
  return heard;
}

TEST(RestoreFirst, IsFromTheJobOrTheCheckpointThatWasNamed) {
  std::string pattern = (std::filesystem::temp_directory_path() / "restore-first-XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const std::filesystem::path volume = pattern;
  const std::filesystem::path job = volume / "uid";
  FileStore store(job);
  for (const std::uint64_t step : {100U, 200U})
    ASSERT_TRUE(SaveCheckpoint(store, LabelAt(step), StateAt(step)->view()));

  EXPECT_EQ(First(std::nullopt), "NotFound there is no checkpoint to resume from");
  EXPECT_EQ(First(ResumeFromFolder(job)), "200");
  EXPECT_EQ(First(ResumeFromFolder(job / "")), "200");
  EXPECT_EQ(First(ResumeFromFolder(job / "step-000000000100-t000000000110-m2.5")), "100");
  EXPECT_EQ(First(ResumeFromFolder(volume / "none")),
            "Invalid resume from " + (volume / "none").string() + ": there is no checkpoint");
  EXPECT_EQ(
      First(ResumeFromFolder(job), {8, 256, 32, 5000, 0}),
      "Invalid resume from " + job.string() +
          ": checkpoint step-000000000200-t000000000210-m2.5 was written with seed 7; this job "
          "has seed 8");
  std::filesystem::remove_all(volume);
}

// A store that runs out of memory when it reads or writes.
class ThrowingStore final : public CheckpointStore {
 public:
  Status Put(std::string_view, std::span<const std::span<const std::byte>>) override {
    throw std::bad_alloc();
  }
  Status Read(std::string_view, std::uint64_t, std::span<std::byte>) override {
    throw std::bad_alloc();
  }
  Result<std::vector<StoredObject>> List(std::string_view) override { throw std::bad_alloc(); }
  Status Remove(std::string_view) override { throw std::bad_alloc(); }
};

TEST(ThreadedCheckpointer, ReportsExceptionsAsErrors) {
  RealEventLoop loop;
  const auto checkpointer = NewThreadedCheckpointer(loop, std::make_unique<ThrowingStore>());
  std::vector<Error> heard;
  const auto note = [&](const auto& result) { heard.push_back(result.error()); };
  checkpointer->FindNewest(note);
  checkpointer->Save(LabelAt(1), {}, StateAt(1), 1, note);
  checkpointer->Restore(LabelAt(0).job, note);
  const auto end = std::chrono::steady_clock::now() + seconds(30);
  while (heard.size() < 3 && std::chrono::steady_clock::now() < end)
    loop.context().run_one_for(milliseconds(100)), loop.context().restart();
  EXPECT_EQ(heard, std::vector(3, Error{ErrorCode::kUnavailable, "out of memory"}));
}

// A store that answers a write only when `answer` is ready.
class SlowStore final : public CheckpointStore {
 public:
  explicit SlowStore(std::future<void> answer) : answer_(std::move(answer)) {}
  Status Put(std::string_view, std::span<const std::span<const std::byte>>) override {
    answer_.wait();
    return {};
  }
  Status Read(std::string_view, std::uint64_t, std::span<std::byte>) override { return {}; }
  Result<std::vector<StoredObject>> List(std::string_view) override { return {}; }
  Status Remove(std::string_view) override { return {}; }

 private:
  const std::future<void> answer_;
};

TEST(ThreadedCheckpointer, NobodyWhoReadsWaitsForOneWhoWrites) {
  RealEventLoop loop;
  std::promise<void> answer;
  const auto checkpointer =
      NewThreadedCheckpointer(loop, std::make_unique<SlowStore>(answer.get_future()));
  std::vector<std::string> heard;
  checkpointer->Save(LabelAt(1), {}, StateAt(1), 1, [&](const auto&) { heard.push_back("saved"); });
  checkpointer->FindNewest([&](const auto&) {
    heard.push_back("newest");
    answer.set_value();
  });
  const auto end = std::chrono::steady_clock::now() + seconds(30);
  while (heard.size() < 2 && std::chrono::steady_clock::now() < end)
    loop.context().run_one_for(milliseconds(100)), loop.context().restart();
  EXPECT_EQ(heard, (std::vector<std::string>{"newest", "saved"}));
}

}  // namespace
}  // namespace pliant
