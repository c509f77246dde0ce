#include "operator/kube/lease_policy.h"

#include <functional>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"
#include "tests/unit/kube/start.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;
using LeaseAction = LeasePolicy::Action;

LeaseRecord HeldBy(const std::string& holder, int transitions = 3,
                   const std::string& renewed = "t0") {
  return {.holder = holder,
          .duration_seconds = 15,
          .transitions = transitions,
          .acquire_time = "t0",
          .renew_time = renewed};
}

class LeasePolicyTest : public testing::Test {
 protected:
  LeasePolicy::Step Next(double random = 0) { return policy_.NextStep("now", random); }
  void Lead() {
    policy_.OnRead(std::nullopt, kStart);
    ASSERT_EQ(Next().action, LeaseAction::kCreate);
    policy_.OnWritten(true, kStart, kStart);
    ASSERT_TRUE(policy_.Leads(kStart));
  }
  LeasePolicy policy_{"me", LeaseTiming()};
};

TEST_F(LeasePolicyTest, CreatesALeaseThatIsNotThere) {
  EXPECT_EQ(Next().action, LeaseAction::kRead);
  policy_.OnRead(std::nullopt, kStart);
  const LeasePolicy::Step create = Next();
  EXPECT_EQ(create.action, LeaseAction::kCreate);
  EXPECT_EQ(create.record, (LeaseRecord{.holder = "me",
                                        .duration_seconds = 15,
                                        .transitions = 0,
                                        .acquire_time = "now",
                                        .renew_time = "now"}));
  EXPECT_FALSE(policy_.Leads(kStart)) << "not before the write has succeeded";
  policy_.OnWritten(true, kStart, kStart + 1s);
  EXPECT_TRUE(policy_.Leads(kStart + 9999ms));
  EXPECT_FALSE(policy_.Leads(kStart + 10s)) << "counted from the sending of the request";
}

// Plans are ordered by the lease's transitions, so a new lease must not start at a lower number.
TEST_F(LeasePolicyTest, ADeletedLeaseDoesNotBeginToCountAgain) {
  policy_.OnRead(HeldBy("other", 3), kStart);
  policy_.OnRead(std::nullopt, kStart + 1s);
  const LeasePolicy::Step create = Next();
  EXPECT_EQ(create.action, LeaseAction::kCreate);
  EXPECT_EQ(create.record.transitions, 4);
  policy_.OnWritten(true, kStart + 1s, kStart + 1s);
  EXPECT_EQ(policy_.transitions(), 4);

  policy_.OnRead(std::nullopt, kStart + 2s);  // deleted once more, while this replica leads
  EXPECT_EQ(Next().record.transitions, 5);
}

// Coordinators refuse plans under a lower number than they have seen.
TEST_F(LeasePolicyTest, AFirstLeaseBeginsAboveAnyEarlierOne) {
  const struct {
    const char* wall_time;
    int transitions;
  } kCases[] = {
      {"2020-01-01T00:00:07.000000Z", 7},         {"2026-11-27T12:00:00.123456Z", 217'944'000},
      {"2026-11-27T12:00:01Z", 217'944'001},      {"2087-01-01T00:00:00.000000Z", 2'114'380'800},
      {"2200-01-01T00:00:00.000000Z", INT32_MAX}, {"1970-01-01T00:00:00.000000Z", 0}};
  for (const auto& c : kCases) {
    LeasePolicy policy("me", {});
    policy.OnRead(std::nullopt, kStart);
    EXPECT_EQ(policy.NextStep(c.wall_time, 0).record.transitions, c.transitions) << c.wall_time;
  }
}

TEST_F(LeasePolicyTest, TakesAnEmptyLeaseAtOnceAndCountsTheTransition) {
  policy_.OnRead(HeldBy("", 3), kStart);
  const LeasePolicy::Step take = Next();
  EXPECT_EQ(take.action, LeaseAction::kReplace);
  EXPECT_EQ(take.record.holder, "me");
  EXPECT_EQ(take.record.transitions, 4);
  policy_.OnWritten(true, kStart, kStart);
  EXPECT_EQ(policy_.transitions(), 4);
}

TEST_F(LeasePolicyTest, WaitsUntilAnothersLeaseHasNotChangedForItsDuration) {
  policy_.OnRead(HeldBy("other"), kStart);
  EXPECT_EQ(Next(0.5).wait, Duration(1250ms)) << "2 s divided by 1.6";
  EXPECT_EQ(Next().action, LeaseAction::kRead);
  policy_.OnRead(HeldBy("other", 3, "t1"), kStart + 14s);
  EXPECT_EQ(Next().action, LeaseAction::kWait) << "it was renewed, so the time starts over";
  EXPECT_EQ(Next().action, LeaseAction::kRead);
  policy_.OnRead(HeldBy("other", 3, "t1"), kStart + 28s);
  EXPECT_EQ(Next().wait, Duration(1s)) << "no longer than until it ends";
  EXPECT_EQ(Next().action, LeaseAction::kRead);
  policy_.OnRead(HeldBy("other", 3, "t1"), kStart + 29s);
  const LeasePolicy::Step take = Next();
  EXPECT_EQ(take.action, LeaseAction::kReplace);
  EXPECT_EQ(take.record.transitions, 4);
}

TEST_F(LeasePolicyTest, TheDurationIsThatOfTheHolder) {
  LeaseRecord longer = HeldBy("other");
  longer.duration_seconds = 60;
  policy_.OnRead(longer, kStart);
  policy_.OnRead(longer, kStart + 59s);
  EXPECT_EQ(Next().action, LeaseAction::kWait);
  longer.duration_seconds = 0;  // invalid: our own duration applies
  policy_.OnRead(longer, kStart + 60s);
  EXPECT_EQ(Next().action, LeaseAction::kWait);
  policy_.OnRead(longer, kStart + 75s);
  Next();
  policy_.OnRead(longer, kStart + 75s);
  EXPECT_EQ(Next().action, LeaseAction::kReplace);
}

TEST_F(LeasePolicyTest, RenewsEveryTwoSecondsWithoutReading) {
  Lead();
  for (int i = 1; i < 100; ++i) {
    const LeasePolicy::Step wait = Next(0.9);
    EXPECT_EQ(wait.action, LeaseAction::kWait);
    EXPECT_EQ(wait.wait, Duration(2s));
    const LeasePolicy::Step renew = policy_.NextStep("later", 0);
    EXPECT_EQ(renew.action, LeaseAction::kReplace);
    EXPECT_EQ(renew.record.acquire_time, "now");
    EXPECT_EQ(renew.record.renew_time, "later");
    EXPECT_EQ(renew.record.transitions, 0);
    policy_.OnWritten(true, kStart + 2s * i, kStart + 2s * i);
  }
  EXPECT_EQ(policy_.leads_until(), kStart + 198s + 10s);
}

TEST_F(LeasePolicyTest, AFailedRenewalIsReadBeforeItIsTriedAgain) {
  Lead();
  Next();
  Next();
  policy_.OnWritten(false, kStart + 2s, kStart + 5s);
  EXPECT_TRUE(policy_.Leads(kStart + 5s)) << "the earlier renewal is still valid";
  EXPECT_EQ(Next().action, LeaseAction::kWait);
  EXPECT_EQ(Next().action, LeaseAction::kRead);
  policy_.OnRead(HeldBy("me", 0), kStart + 7s);
  EXPECT_EQ(Next().action, LeaseAction::kReplace);
  policy_.OnWritten(true, kStart + 7s, kStart + 7s);
  EXPECT_EQ(policy_.leads_until(), kStart + 17s);
  EXPECT_FALSE(policy_.Lost(kStart + 7s));
}

TEST_F(LeasePolicyTest, ARenewalThatComesTooLateDoesNotBringLeadershipBack) {
  Lead();
  Next();
  Next();
  policy_.OnWritten(true, kStart + 9s, kStart + 10s);
  EXPECT_FALSE(policy_.Leads(kStart + 10s));
  EXPECT_TRUE(policy_.Lost(kStart + 10s));
}

TEST_F(LeasePolicyTest, AnotherHolderEndsLeadershipAtOnce) {
  Lead();
  policy_.OnRead(HeldBy("other"), kStart + 1s);
  EXPECT_TRUE(policy_.Lost(kStart + 1s));
}

TEST_F(LeasePolicyTest, ReadingFailuresAreNotRetriedInAHotLoop) {
  policy_.OnRead(HeldBy("other"), kStart);
  policy_.OnReadFailed();
  EXPECT_EQ(Next(0).wait, Duration(2s));
}

TEST_F(LeasePolicyTest, ItsOwnWriteThatSeemedToFailIsTakenUp) {
  policy_.OnRead(std::nullopt, kStart);
  Next();
  policy_.OnWritten(false, kStart, kStart + 3s);
  Next();
  policy_.OnRead(HeldBy("me", 0), kStart + 5s);
  const LeasePolicy::Step take = Next();
  EXPECT_EQ(take.record.transitions, 0) << "no other replica led in between";
}

TEST_F(LeasePolicyTest, ReleasesOnlyWhatItHolds) {
  EXPECT_EQ(policy_.Release(kStart, "end"), std::nullopt);
  Lead();
  const auto released = policy_.Release(kStart + 1s, "end");
  ASSERT_TRUE(released);
  EXPECT_EQ(released->holder, "");
  EXPECT_EQ(released->transitions, 0);
  EXPECT_FALSE(policy_.Leads(kStart + 1s));
}

TEST(LeaseTiming, IsInProportionToTheLease) {
  const LeaseTiming usual = LeaseTiming::Of(15s);
  EXPECT_EQ(usual.lease, LeaseTiming().lease);
  EXPECT_EQ(usual.renew_deadline, LeaseTiming().renew_deadline);
  EXPECT_EQ(usual.retry, LeaseTiming().retry);
  EXPECT_TRUE(LeaseTiming::Of(3s).Validate());
  EXPECT_TRUE(LeaseTiming::Of(3600s).Validate());
}

TEST(LeaseTiming, RefusesTimesThatLeaveNoGap) {
  EXPECT_TRUE(LeaseTiming().Validate());
  EXPECT_FALSE((LeaseTiming{.lease = 10s, .renew_deadline = 10s}.Validate()));
  EXPECT_FALSE((LeaseTiming{.renew_deadline = 4s}.Validate()));
  EXPECT_FALSE((LeaseTiming{.retry = 0s}.Validate()));
}

// Several replicas and one lease, on virtual time. Requests take time, fail, and are answered late;
// replicas are frozen for a while, and crash.
class Election {
 public:
  explicit Election(unsigned seed) : random_(seed) {}

  struct Replica {
    std::string name;
    LeasePolicy policy;
    TimePoint frozen_until{};
    bool crashed = false;
    std::uint64_t version_read = 0;
  };

  void Add(const std::string& name) {
    replicas_.push_back(
        std::make_unique<Replica>(Replica{name, LeasePolicy(name, {}), {}, false, 0}));
    Run(*replicas_.back());
  }
  int Leaders() {
    int leaders = 0;
    for (const auto& replica : replicas_) {
      leaders += !replica->crashed && replica->policy.Leads(loop_.Now()) ? 1 : 0;
    }
    return leaders;
  }
  Replica& Pick() { return *replicas_[random_() % replicas_.size()]; }
  double Random() { return std::uniform_real_distribution()(random_); }

  SimEventLoop loop_{};
  double failure_rate_ = 0;

 private:
  // Runs a replica's next task, as soon as the replica is not frozen.
  void Later(Replica& replica, Duration delay, std::function<void()> task) {
    loop_.PostAfter(delay, [this, &replica, task = std::move(task)]() mutable {
      if (replica.crashed) return;
      const Duration frozen = replica.frozen_until - loop_.Now();
      if (frozen > Duration::zero()) return Later(replica, frozen, std::move(task));
      task();
    });
  }

  void Run(Replica& replica) {
    if (replica.policy.Lost(loop_.Now())) {
      replica.crashed = true;  // as the program does when it loses the lease
      return;
    }
    const LeasePolicy::Step step =
        replica.policy.NextStep(std::to_string(loop_.Now().time_since_epoch().count()), Random());
    const TimePoint began = loop_.Now();
    const auto delay = std::chrono::duration_cast<Duration>(1s * Random());
    switch (step.action) {
      case LeaseAction::kWait:
        Later(replica, step.wait, [this, &replica] { Run(replica); });
        return;
      case LeaseAction::kRead:
        Later(replica, delay, [this, &replica] {
          if (Random() < failure_rate_) {
            replica.policy.OnReadFailed();
          } else {
            replica.version_read = version_;
            replica.policy.OnRead(lease_, loop_.Now());
          }
          Run(replica);
        });
        return;
      case LeaseAction::kCreate:
      case LeaseAction::kReplace: {
        // The server executes the request half-way; the answer may be lost on the way back.
        loop_.PostAfter(delay / 2, [this, &replica, step, began, delay] {
          bool success =
              step.action == LeaseAction::kCreate ? !lease_ : version_ == replica.version_read;
          if (success && Random() >= failure_rate_ / 2) {
            lease_ = step.record;
            ++version_;
          } else {
            success = false;
          }
          const std::uint64_t version = version_;
          if (Random() < failure_rate_ / 2) success = false;
          Later(replica, delay / 2, [this, &replica, success, began, version] {
            if (success) replica.version_read = version;
            replica.policy.OnWritten(success, began, loop_.Now());
            Run(replica);
          });
        });
        return;
      }
    }
  }

  std::mt19937 random_;
  std::optional<LeaseRecord> lease_;
  std::uint64_t version_ = 0;
  std::vector<std::unique_ptr<Replica>> replicas_;
};

TEST(Election, ThereAreNeverTwoLeadersAndSoonOneAgain) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Election election(seed);
    election.Add("a");
    election.Add("b");
    election.Add("c");
    // Safety, under faults.
    election.failure_rate_ = 0.3;
    for (int i = 0; i < 600; ++i) {
      election.loop_.RunFor(500ms);
      ASSERT_LE(election.Leaders(), 1) << "after " << i / 2 << " s";
      if (election.Random() < 0.02) {
        election.Pick().frozen_until =
            election.loop_.Now() + std::chrono::duration_cast<Duration>(30s * election.Random());
      }
      if (election.Random() < 0.002) election.Pick().crashed = true;
    }
    // Liveness, when the faults have ended. Restarted replicas have new names.
    election.failure_rate_ = 0;
    election.Add("d");
    election.Add("e");
    election.loop_.RunFor(31s);
    EXPECT_TRUE(election.loop_.RunUntilTrue([&] { return election.Leaders() == 1; }, 20s));
  }
}

TEST(Election, ACrashedLeaderIsFollowedAfterItsLeaseAndOneRetry) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    Election election(seed);
    election.Add("a");
    ASSERT_TRUE(election.loop_.RunUntilTrue([&] { return election.Leaders() == 1; }, 5s));
    Election::Replica& leader = election.Pick();
    election.Add("b");
    election.loop_.RunFor(60s);
    leader.crashed = true;
    const TimePoint crash = election.loop_.Now();
    ASSERT_TRUE(election.loop_.RunUntilTrue([&] { return election.Leaders() == 1; }, 60s));
    // The last renewal is read after a retry period at most, and expires one lease duration later.
    // Here each of three requests takes one second at most.
    EXPECT_LE(ToSeconds(election.loop_.Now() - crash), 2 + 15 + 3);
  }
}

}  // namespace
}  // namespace pliant::kube
