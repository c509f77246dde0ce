#include "trainer/runtime/learner_loop.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"
#include "tests/unit/runtime/fake_checkpointer.h"
#include "tests/unit/runtime/fake_compute.h"
#include "tests/unit/runtime/fake_coordinator_link.h"
#include "tests/unit/runtime/fake_peer_transport.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class NoMetrics final : public MetricsSink {
 public:
  void Append(Tick /*tick*/, std::string_view /*line*/) override {}
  void CutFrom(Tick /*tick*/) override {}
};

// A whole learner, with the test's coordinator, peers, program and volume. (The simulations test it
// with real ones.)
struct LearnerOf {
  LearnerOf() {
    learner.Start();
    loop.RunFor(seconds(1));
    link.Connect();
    link.Say(Welcome{.term = 1, .heartbeat_seconds = 1});
  }

  SimEventLoop loop;
  FakeCoordinatorLink link;
  FakePeerTransport transport;
  FakeCompute compute{loop};
  FakeCheckpointer checkpointer{loop};
  NoMetrics metrics;
  const Member self{.id = {.name = "learner-1", .nonce = 1}, .address = "x:1"};
  const Member other{.id = {.name = "learner-2", .nonce = 1}, .address = "x:1"};
  std::optional<LearnerExit> exit;
  LearnerLoop learner{
      {.self = self.id, .opening_timeout = seconds(2)},
      Schedule::Make(
          {.train_samples = 64, .epochs = 2, .global_batch_size = 16, .logical_shards = 4})
          .value(),
      {.loop = loop,
       .link = &link,
       .transport = &transport,
       .compute = compute,
       .checkpointer = checkpointer,
       .metrics = metrics},
      [this](LearnerExit how) { exit = std::move(how); }};
};

TEST(LearnerLoop, ALearnerThatIsNotNeededLeavesAtOnce) {
  LearnerOf it;
  it.link.Say(Leave{.at_once = true});
  it.loop.RunFor(seconds(1));
  ASSERT_TRUE(it.exit);
  EXPECT_EQ(it.exit->message, "left as asked");
}

// The learner receives Leave, and is called back while it looks for a final model. When its new
// membership is aborted before the volume has answered, it must not exit: the next membership may
// need it.
TEST(LearnerLoop, ALearnerThatIsCalledBackMeanwhileStays) {
  for (const Duration volume : {Duration(seconds(1)), Duration(seconds(5))}) {
    LearnerOf it;
    it.checkpointer.time = volume;
    it.link.Say(Leave{.at_once = true});
    it.loop.RunFor(milliseconds(100));
    it.link.Say(Recover{{.id = {1, 1}, .members = {it.self, it.other}}});
    it.loop.RunFor(seconds(20));
    EXPECT_EQ(it.link.sent_names().back(), "progress");
    EXPECT_TRUE(std::ranges::contains(it.link.sent_names(), "lost")) << "the other never came";
    EXPECT_FALSE(it.exit) << it.exit->message;
  }
}

}  // namespace
}  // namespace pliant
