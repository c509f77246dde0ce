#include "trainer/runtime/coordinator_session.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"
#include "tests/unit/runtime/fake_coordinator_link.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using MessageNames = std::vector<std::string>;

struct SessionOf final : CoordinatorSession::Owner {
  explicit SessionOf(std::uint64_t min_term = 5) : session(&link, tasks, min_term, *this) {
    session.Start();
  }
  std::vector<LearnerMessage> Greeting() override { return {Hello{}, Lost{}}; }
  Progress MakeProgress() override { return {.tick = tick++}; }
  void Obey(const CoordinatorMessage& message) override { obeyed.emplace_back(NameOf(message)); }
  std::ptrdiff_t heartbeats() const { return std::ranges::count(link.sent_names(), "progress"); }

  SimEventLoop loop;
  Tasks tasks{loop, [] {}};
  FakeCoordinatorLink link;
  Tick tick = 0;
  MessageNames obeyed;
  CoordinatorSession session;
};

TEST(CoordinatorSession, AConnectionBeginsWithTheGreetingAndAHeartbeat) {
  SessionOf it;
  EXPECT_FALSE(it.session.linked());
  it.session.Send(Leaving{});
  it.session.SendProgress();
  EXPECT_TRUE(it.link.sent.empty()) << "there is no connection";
  it.link.Connect();
  EXPECT_TRUE(it.session.linked());
  EXPECT_EQ(it.link.sent_names(), (MessageNames{"hello", "lost", "progress"}));
  it.link.Break();
  EXPECT_FALSE(it.session.linked());
  it.link.sent.clear();
  it.link.Connect();
  EXPECT_EQ(it.link.sent_names(), (MessageNames{"hello", "lost", "progress"}));
}

TEST(CoordinatorSession, ObeysWhoWelcomedItAndARefusalAnyway) {
  SessionOf it;
  it.link.Connect();
  it.link.Say(Leave{});
  EXPECT_EQ(it.obeyed, MessageNames{}) << "before the coordinator's term is known";
  it.link.Say(Refused{});
  EXPECT_EQ(it.obeyed, MessageNames{"refused"});
  it.link.Say(Welcome{.term = 5});
  it.link.Say(Recover{.membership = {.id = {3, 1}, .members = {}}});
  it.link.Say(Leave{});
  EXPECT_EQ(it.obeyed, (MessageNames{"refused", "recover", "leave"}))
      << "for any term of the membership; the session itself handles the welcome";
  it.link.Break();
  it.link.Connect();
  it.link.Say(Withdraw{});
  EXPECT_EQ(it.obeyed.size(), 3U) << "each connection has its welcome";
}

TEST(CoordinatorSession, ACoordinatorBeforeTheNewestIsNotObeyed) {
  const struct {
    const char* name;
    std::vector<std::uint64_t> terms;  // terms of the coordinators, in order
    std::vector<bool> obeyed;
  } kCases[] = {
      {"before any that may be", {4}, {false}},
      {"the least that may be", {5}, {true}},
      {"one that came back", {7, 7}, {true, true}},
      {"one that is over", {7, 6, 7, 8}, {true, false, true, true}},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    SessionOf it;
    int redials = 0;
    for (std::size_t i = 0; i < test.terms.size(); ++i) {
      SCOPED_TRACE(i);
      it.obeyed.clear();
      it.link.Connect();
      it.link.Say(Welcome{.term = test.terms[i]});
      it.link.Say(Leave{});
      EXPECT_EQ(!it.obeyed.empty(), test.obeyed[i]);
      EXPECT_EQ(it.session.linked(), test.obeyed[i]);
      if (!test.obeyed[i]) ++redials;
      EXPECT_EQ(it.link.redials, redials);
      it.link.Say(Refused{});
      EXPECT_EQ(it.obeyed.size(), test.obeyed[i] ? 2U : 0U) << "not even its refusal";
      if (test.obeyed[i]) it.link.Break();
    }
  }
}

TEST(CoordinatorSession, SendsHeartbeatsAtTheIntervalThatItReceives) {
  SessionOf it;
  it.link.Connect();
  EXPECT_EQ(it.heartbeats(), 1);
  it.loop.RunFor(milliseconds(3500));
  EXPECT_EQ(it.heartbeats(), 4) << "one per second";
  it.link.Say(Welcome{.term = 5, .heartbeat_seconds = 0.25});
  it.loop.RunFor(milliseconds(500));  // the running timer still has one second
  const std::ptrdiff_t before = it.heartbeats();
  it.loop.RunFor(seconds(10));
  EXPECT_EQ(it.heartbeats() - before, 40);
  it.link.Break();
  it.link.Connect();
  it.link.Say(Welcome{.term = 5, .heartbeat_seconds = 0});
  const std::ptrdiff_t again = it.heartbeats();
  it.loop.RunFor(seconds(10));
  EXPECT_EQ(it.heartbeats() - again, 40) << "zero keeps the interval";
}

TEST(CoordinatorSession, OneHeartbeatAtATimeHoweverOftenItConnects) {
  SessionOf it;
  for (int i = 0; i < 5; ++i) {
    it.link.Connect();
    it.loop.RunFor(milliseconds(100));
    it.link.Break();
  }
  it.loop.RunFor(seconds(5));
  EXPECT_EQ(it.heartbeats(), 5) << "none without a connection";
  EXPECT_EQ(it.loop.pending(), 0U);
  it.link.Connect();
  const std::ptrdiff_t before = it.heartbeats();
  it.loop.RunFor(seconds(10));
  EXPECT_EQ(it.heartbeats() - before, 10);
}

TEST(CoordinatorSession, EndedItHearsAndSaysNothing) {
  SessionOf it;
  it.link.Connect();
  it.link.Say(Welcome{.term = 5});
  it.session.End();
  EXPECT_FALSE(it.session.linked());
  it.link.sent.clear();
  it.link.Say(Leave{});
  it.session.Send(Leaving{});
  it.loop.RunFor(seconds(10));
  it.link.Break();
  it.link.Connect();
  it.link.Say(Welcome{.term = 4});
  it.link.Say(Refused{});
  EXPECT_TRUE(it.link.sent.empty());
  EXPECT_EQ(it.obeyed, MessageNames{});
  EXPECT_EQ(it.link.redials, 0);
  EXPECT_FALSE(it.session.linked());
}

}  // namespace
}  // namespace pliant
