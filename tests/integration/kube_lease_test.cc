// Two replicas and the lease of a real API server.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "base/real_event_loop.h"
#include "operator/kube/lease_elector.h"
#include "tests/integration/api_server.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

using nlohmann::json;

class KubeLeaseTest : public ApiServerTest {
 protected:
  void SetUp() override {
    ApiServerTest::SetUp();
    control_thread_ = std::jthread([this] { control_.Run(); });
  }
  void TearDown() override {
    control_.Stop();
    control_thread_.join();
    ApiServerTest::TearDown();
  }

  struct Replica {
    std::atomic<int> transitions{-1};  // -1 until elected
    std::atomic<bool> lost{false};
    std::unique_ptr<KubeClient> client;
    std::unique_ptr<LeaseElector> elector;
  };
  // The times are shorter than the operator's, so that the test is quick.
  std::unique_ptr<Replica> Start(const std::string& identity) {
    auto replica = std::make_unique<Replica>();
    Replica* raw = replica.get();
    replica->client =
        std::make_unique<KubeClient>(transport(), config(), LeaseElector::OptionsOfClient());
    replica->elector = std::make_unique<LeaseElector>(
        *replica->client, control_,
        LeaseElectorOptions{
            .lease = Key("leader"),
            .identity = identity,
            .timing = {.lease = 4s, .renew_deadline = 3s, .retry = 200ms},
            .on_elected = [raw](int transitions) { raw->transitions = transitions; },
            .on_lost = [raw] { raw->lost = true; }});
    return replica;
  }
  json Lease() { return (*client().Get(kLeases, Key("leader")))["spec"]; }

  RealEventLoop control_;
  std::jthread control_thread_;
};

TEST_F(KubeLeaseTest, OneLeadsAndTheOtherFollowsARelease) {
  auto first = Start("first");
  ASSERT_TRUE(WaitUntil([&] { return first->transitions >= 0; }));
  EXPECT_TRUE(first->elector->MayWrite());
  EXPECT_EQ(Lease()["holderIdentity"], "first");
  EXPECT_EQ(Lease()["leaseDurationSeconds"], 4);

  auto second = Start("second");
  ASSERT_TRUE(WaitUntil([&] { return second->elector->Leader() == "first"; }));
  std::this_thread::sleep_for(5s);  // longer than the lease, which is renewed
  EXPECT_TRUE(first->elector->MayWrite());
  EXPECT_FALSE(second->elector->MayWrite());
  EXPECT_FALSE(first->lost);

  const auto begin = std::chrono::steady_clock::now();
  first->elector->Release();
  EXPECT_FALSE(first->elector->MayWrite());
  ASSERT_TRUE(WaitUntil([&] { return second->transitions == first->transitions + 1; }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s)
      << "the successor need not wait for the lease to expire";
  EXPECT_TRUE(second->elector->MayWrite());
  EXPECT_FALSE(first->lost) << "a released lease does not count as lost";
}

TEST_F(KubeLeaseTest, ACrashedLeaderIsFollowedWhenItsLeaseEnds) {
  auto first = Start("first");
  ASSERT_TRUE(WaitUntil([&] { return first->transitions >= 0; }));
  auto second = Start("second");
  ASSERT_TRUE(WaitUntil([&] { return second->elector->Leader() == "first"; }));
  first->elector.reset();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(WaitUntil([&] { return second->transitions == first->transitions + 1; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 3s);
}

TEST_F(KubeLeaseTest, ALeaderThatIsDeposedStopsAtOnce) {
  auto first = Start("first");
  ASSERT_TRUE(WaitUntil([&] { return first->transitions >= 0; }));
  ASSERT_TRUE(client().Patch(kLeases, Key("leader"), {{"spec", {{"holderIdentity", "usurper"}}}}));
  EXPECT_TRUE(WaitUntil([&] { return first->lost.load(); }));
  EXPECT_FALSE(first->elector->MayWrite());
  EXPECT_EQ(Lease()["holderIdentity"], "usurper");
}

}  // namespace
}  // namespace pliant::kube
