#include "trainer/process/websocket_link.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/http_server.h"
#include "base/real_event_loop.h"
#include "tests/unit/run_until.h"

namespace pliant {
namespace {
using namespace std::chrono_literals;
using testing::ElementsAre;

// A minimal coordinator: it records received messages, and sends what a test gives it.
class WebSocketLinkTest : public testing::Test, public CoordinatorHandler {
 protected:
  void Listen(std::uint16_t port = 0) {
    auto server = HttpServer::Listen(
        loop_, {.address = "127.0.0.1", .port = port},
        {{.method = "GET", .path = "/v1/learner", .accept = [this](auto socket) {
            ++accepted_;
            coordinator_ = std::move(socket);
            return WebSocketCallbacks{.on_message =
                                          [this](std::string text) {
                                            auto message = DecodeLearnerMessage(text);
                                            ASSERT_TRUE(message) << text;
                                            heard_.push_back(*std::move(message));
                                          },
                                      .on_closed = [](auto) {}};
          }}});
    ASSERT_TRUE(server) << server.error();
    server_ = *std::move(server);
  }

  void MakeLink() {
    link_ = std::make_unique<WebSocketLink>(
        loop_, WebSocketLinkOptions{.endpoint = {.host = "127.0.0.1",
                                                 .port = std::to_string(server_->port()),
                                                 .path = "/v1/learner"},
                                    .backoff = {.first = 5ms, .most = 20ms}});
  }

  void OnCoordinatorConnected() override { seen_.push_back("connected"); }
  void OnCoordinatorMessage(CoordinatorMessage message) override {
    seen_.emplace_back(NameOf(message));
  }
  void OnCoordinatorDisconnected(std::string_view) override { seen_.push_back("disconnected"); }

  void RunUntil(const std::function<bool()>& condition) { pliant::RunUntil(loop_, condition); }
  void RunFor(Duration duration) {
    bool over = false;
    loop_.PostAfter(duration, [&] { over = true; });
    RunUntil([&] { return over; });
  }
  void RunUntilConnected(int times) {
    RunUntil([&] { return std::ranges::count(seen_, "connected") == times && accepted_ == times; });
  }

  RealEventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<WebSocketLink> link_;
  std::shared_ptr<WebSocket> coordinator_;
  int accepted_ = 0;
  std::vector<LearnerMessage> heard_;
  std::vector<std::string> seen_;
};

TEST_F(WebSocketLinkTest, CarriesMessagesInOrder) {
  Listen();
  MakeLink();
  link_->Start(this);
  EXPECT_THAT(seen_, ElementsAre()) << "never within the call";
  RunUntilConnected(1);
  link_->Send(Leaving{.grace_seconds = 3});
  link_->Send(Left{.applied_ticks = 9});
  RunUntil([&] { return heard_.size() == 2; });
  EXPECT_EQ(heard_[0], LearnerMessage(Leaving{.grace_seconds = 3}));
  EXPECT_EQ(heard_[1], LearnerMessage(Left{.applied_ticks = 9}));
  coordinator_->Send(Encode(CoordinatorMessage(Welcome{.term = 1})));
  coordinator_->Send(Encode(CoordinatorMessage(Leave{})));
  RunUntil([&] { return seen_.size() == 3; });
  EXPECT_THAT(seen_, ElementsAre("connected", "welcome", "leave"));
}

TEST_F(WebSocketLinkTest, DialsUntilACoordinatorIsThereAndAgainWhenItIsGone) {
  Listen();
  const std::uint16_t port = server_->port();
  MakeLink();
  server_.reset();
  link_->Start(this);
  RunFor(60ms);
  EXPECT_THAT(seen_, ElementsAre());
  link_->Send(Leaving{});  // dropped: there is no connection

  Listen(port);
  RunUntilConnected(1);
  server_.reset();
  RunUntil([&] { return seen_.size() == 2; });
  Listen(port);
  RunUntilConnected(2);
  EXPECT_THAT(seen_, ElementsAre("connected", "disconnected", "connected"));
  EXPECT_TRUE(heard_.empty());
}

TEST_F(WebSocketLinkTest, RedialIsSilentAndSendsWhatIsQueued) {
  Listen();
  MakeLink();
  link_->Start(this);
  RunUntilConnected(1);
  link_->Send(Left{.applied_ticks = 9});
  link_->Redial();
  link_->Redial();
  RunUntilConnected(2);
  RunUntil([&] { return !heard_.empty(); });
  EXPECT_THAT(seen_, ElementsAre("connected", "connected"));
}

TEST_F(WebSocketLinkTest, ACoordinatorThatSpeaksNonsenseIsLeft) {
  Listen();
  MakeLink();
  link_->Start(this);
  RunUntilConnected(1);
  coordinator_->Send("{\"type\": \"prepare\"}");
  RunUntilConnected(2);
  EXPECT_THAT(seen_, ElementsAre("connected", "disconnected", "connected"));
}

TEST_F(WebSocketLinkTest, FinishSendsWhatIsQueuedAndCallsNobodyAfterwards) {
  Listen();
  MakeLink();
  link_->Start(this);
  RunUntilConnected(1);
  int finished = 0;
  link_->Send(Left{.applied_ticks = 9});
  link_->Finish(5s, [&] { ++finished; });
  EXPECT_EQ(finished, 0) << "never within the call";
  RunUntil([&] { return finished > 0 && heard_.size() == 1; });
  RunFor(50ms);
  EXPECT_EQ(finished, 1);
  EXPECT_THAT(seen_, ElementsAre("connected"));
}

TEST_F(WebSocketLinkTest, FinishDoesNotWaitForACoordinatorThatIsNotThere) {
  Listen();
  MakeLink();
  server_.reset();
  link_->Start(this);
  bool finished = false;
  link_->Finish(20s, [&] { finished = true; });
  const TimePoint start = loop_.Now();
  RunUntil([&] { return finished; });
  EXPECT_LT(loop_.Now() - start, Duration(10s));
}

TEST_F(WebSocketLinkTest, MayBeDestroyedAtAnyTime) {
  Listen();
  MakeLink();
  link_->Start(this);  // dialling
  link_.reset();
  RunFor(30ms);
  MakeLink();
  link_->Start(this);
  RunUntilConnected(1);
  link_.reset();
  RunFor(30ms);
  EXPECT_THAT(seen_, ElementsAre("connected"));
}

}  // namespace
}  // namespace pliant
