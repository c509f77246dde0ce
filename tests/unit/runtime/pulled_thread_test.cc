#include "trainer/runtime/pulled_thread.h"

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class StatelessProgram final : public ProgramView {
 public:
  const ProgramInfo& info() const override { return info_; }
  StateDict State() override { return {}; }

 private:
  const ProgramInfo info_;
};

// `count` pieces of work, for the epochs 0, 1 ...
class Evaluations final : public Operation {
 public:
  explicit Evaluations(std::uint64_t count) : count_(count) {}

  std::optional<Work> Next() override {
    if (throws_in_next) throw std::runtime_error("no memory");
    if (over()) return std::nullopt;
    return EvaluationTask{.epoch = heard.size()};
  }
  void Done(Result<ShardSums> sums) override {
    if (throws_in_done) throw std::runtime_error("no memory");
    heard.push_back(sums ? "done" : sums.error().message);
  }
  bool over() const override { return heard.size() == count_ || abandoned; }

  std::vector<std::string> heard;
  std::atomic<bool> abandoned = false;
  bool throws_in_next = false;
  bool throws_in_done = false;

 private:
  const std::uint64_t count_;
};

class PulledThreadTest : public testing::Test {
 protected:
  void Run(Operation& operation) {
    thread_.Run(operation, [this](const Status& status) {
      over_.push_back(status ? "done" : status.error().message);
    });
  }
  // The work that the program has fetched.
  std::optional<std::uint64_t> Epoch() const {
    if (thread_.work() == nullptr) return std::nullopt;
    return std::get<EvaluationTask>(*thread_.work()).epoch;
  }

  StatelessProgram program_;
  PulledThread thread_{program_};
  std::vector<std::string> over_;  // results of the operations
};

TEST_F(PulledThreadTest, AnOperationIsSteppedByWhoFetchesItsWork) {
  Evaluations two(2);
  Run(two);
  EXPECT_THAT(two.heard, IsEmpty());
  for (std::uint64_t epoch : {0U, 1U}) {
    ASSERT_TRUE(thread_.Next(std::nullopt));
    EXPECT_EQ(Epoch(), epoch);
    EXPECT_THAT(over_, IsEmpty());
    thread_.Answer(ShardSums{});
    EXPECT_EQ(Epoch(), std::nullopt);
  }
  EXPECT_THAT(over_, ElementsAre("done")) << "with the last answer, not with the next fetch";
}

TEST_F(PulledThreadTest, WaitsUntilTheTimeoutOfNext) {
  EXPECT_FALSE(thread_.Next(0ms));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(thread_.Next(20ms));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);

  Evaluations one(1);
  std::promise<bool> fetched;
  std::jthread program([&] {
    fetched.set_value(thread_.Next(std::nullopt));
    thread_.Answer(ShardSums{});
    EXPECT_FALSE(thread_.Next(std::nullopt)) << "the thread has ended";
  });
  Run(one);
  EXPECT_TRUE(fetched.get_future().get());
  thread_.End();
}

TEST_F(PulledThreadTest, AnOperationWithoutWorkIsSkipped) {
  Evaluations none(0);
  Run(none);
  EXPECT_FALSE(thread_.Next(0ms));
  EXPECT_THAT(over_, ElementsAre("done"));
}

TEST_F(PulledThreadTest, NoWorkIsFetchedOfWhatWasAbandonedMeanwhile) {
  Evaluations two(2);
  Run(two);
  ASSERT_TRUE(thread_.Next(0ms));
  thread_.Answer(ShardSums{});
  two.abandoned = true;
  EXPECT_FALSE(thread_.Next(0ms));
  EXPECT_THAT(over_, ElementsAre("done"));
}

TEST_F(PulledThreadTest, StopWithdrawsWhatTheProgramIsNotAt) {
  Evaluations before(1);
  Run(before);
  thread_.Stop();
  EXPECT_FALSE(thread_.Next(0ms));
  EXPECT_THAT(over_, IsEmpty()) << "there is no callback";
}

TEST_F(PulledThreadTest, StopWaitsForTheAnswerAndWithdrawsTheRest) {
  Evaluations two(2);
  Run(two);
  ASSERT_TRUE(thread_.Next(0ms));
  std::atomic<bool> stopped = false;
  std::jthread runtime([&] {
    thread_.Stop();
    stopped = true;
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(stopped);
  thread_.Answer(ShardSums{});
  runtime.join();
  EXPECT_THAT(two.heard, ElementsAre("done"));
  EXPECT_FALSE(thread_.Next(0ms));
  EXPECT_THAT(over_, IsEmpty());
}

TEST_F(PulledThreadTest, ARefusalEndsTheCurrentOperation) {
  Evaluations two(2);
  Run(two);
  ASSERT_TRUE(thread_.Next(0ms));
  two.abandoned = true;
  thread_.Refuse({ErrorCode::kInvalid, "bad data"});
  EXPECT_THAT(two.heard, ElementsAre("bad data"));
  EXPECT_THAT(over_, ElementsAre("done")) << "the operation got the error";
}

TEST_F(PulledThreadTest, ARefusalEndsTheOfferedOperationAndAllThatFollow) {
  Evaluations offered(1);
  Evaluations later(1);
  Run(offered);
  thread_.Refuse({ErrorCode::kInvalid, "bad data"});
  EXPECT_THAT(over_, ElementsAre("bad data"));
  thread_.Refuse({ErrorCode::kCancelled, "closed"});
  Run(later);
  EXPECT_THAT(over_, ElementsAre("bad data", "bad data")) << "the first refusal counts";
  EXPECT_FALSE(thread_.Next(0ms));
  EXPECT_THAT(offered.heard, IsEmpty());
}

TEST_F(PulledThreadTest, ClosedItHandsOutNoMoreWork) {
  Evaluations two(2);
  Run(two);
  ASSERT_TRUE(thread_.Next(0ms));
  thread_.Close({ErrorCode::kCancelled, "closed"});
  EXPECT_EQ(Epoch(), 0) << "the present work must be answered first";
  thread_.Answer(ShardSums{});
  EXPECT_FALSE(thread_.Next(0ms));
  EXPECT_THAT(two.heard, ElementsAre("done"));
  EXPECT_THAT(over_, ElementsAre("closed"));
}

TEST_F(PulledThreadTest, ClosedWhileWorkIsPreparedItDoesNotHandItOut) {
  struct Closing final : Operation {
    explicit Closing(PulledThread& thread) : closed(thread) {}
    std::optional<Work> Next() override {
      closed.Close({ErrorCode::kCancelled, "closed"});
      return LoadedWork{};
    }
    void Done(Result<ShardSums> sums) override { heard = sums.error().message; }
    bool over() const override { return !heard.empty(); }
    PulledThread& closed;
    std::string heard;
  } closing(thread_);
  Run(closing);
  EXPECT_FALSE(thread_.Next(0ms));
  EXPECT_EQ(closing.heard, "closed");
  EXPECT_THAT(over_, ElementsAre("done"));
}

TEST_F(PulledThreadTest, TheNextOperationMayComeWhileTheOneBeforeEnds) {
  Evaluations first(1);
  Evaluations next(1);
  thread_.Run(first, [&](const Status&) { Run(next); });
  ASSERT_TRUE(thread_.Next(0ms));
  thread_.Answer(ShardSums{});
  ASSERT_TRUE(thread_.Next(0ms));
  thread_.Answer(ShardSums{});
  EXPECT_THAT(next.heard, ElementsAre("done"));
  EXPECT_THAT(over_, ElementsAre("done"));
}

TEST_F(PulledThreadTest, StopWaitsForTheCallbackOfTheEnd) {
  Evaluations one(1);
  std::promise<void> told;
  std::promise<void> continues;
  thread_.Run(one, [&](const Status&) {
    told.set_value();
    continues.get_future().wait();
  });
  std::jthread program([&] {
    ASSERT_TRUE(thread_.Next(0ms));
    thread_.Answer(ShardSums{});
  });
  told.get_future().wait();
  std::atomic<bool> stopped = false;
  std::jthread runtime([&] {
    thread_.Stop();
    stopped = true;
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(stopped);
  continues.set_value();
}

TEST_F(PulledThreadTest, AnExceptionEndsTheOperation) {
  Evaluations next(1);
  next.throws_in_next = true;
  Run(next);
  EXPECT_FALSE(thread_.Next(0ms));
  EXPECT_THAT(over_, ElementsAre("no memory"));

  Evaluations done(1);
  done.throws_in_done = true;
  Run(done);
  ASSERT_TRUE(thread_.Next(0ms));
  thread_.Answer(ShardSums{});
  EXPECT_THAT(over_, ElementsAre("no memory", "no memory"));
  thread_.Stop();
}

}  // namespace
}  // namespace pliant
