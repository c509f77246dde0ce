#include "trainer/coordinator/coordinator_service.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/real_event_loop.h"
#include "base/websocket_client.h"
#include "tests/unit/run_until.h"
#include "trainer/membership/messages.h"

namespace pliant {
namespace {
using namespace std::chrono_literals;
using testing::HasSubstr;

// The service behind a plain server, with one learner that is connected to it, on one event loop.
class CoordinatorServiceTest : public testing::Test {
 protected:
  void Start(const std::filesystem::path& state) {
    service_ = std::make_unique<CoordinatorService>(
        loop_, "team/digits", CoordinatorOptions{.term = 4, .join_settle = 0ms},
        CoordinatorTokens{.operator_token = "op", .learner_token = "le"}, CounterFile(state, 4),
        [this](const Error& error) { fatal_ = error; });
    auto server = HttpServer::Listen(loop_, {.address = "127.0.0.1"}, service_->ApiRoutes());
    ASSERT_TRUE(server) << server.error();
    server_ = *std::move(server);
    service_->Start();
    plan_route_ = service_->ApiRoutes().at(0);
  }

  ServerResponse PutPlan(std::uint64_t sequence, const std::string& learners) {
    return plan_route_.handle(
        {.method = "PUT",
         .path = "/v1/plan",
         .body = "{\"leaseTransitions\": 1, \"sequence\": " + std::to_string(sequence) +
                 ", \"learners\": [" + learners + "]}"});
  }

  void ConnectLearner() {
    ConnectWebSocket(
        loop_,
        {.host = "127.0.0.1",
         .port = std::to_string(server_->port()),
         .path = "/v1/learner",
         .bearer_token = "le"},
        {}, [this](Result<std::shared_ptr<WebSocket>> socket) {
          EXPECT_TRUE(socket);
          if (!socket) return WebSocketCallbacks{};
          learner_ = *socket;
          return WebSocketCallbacks{
              .on_message = [this](std::string text) { received_.push_back(std::move(text)); },
              .on_closed = [this](std::string_view reason) { closed_because_ = reason; }};
        });
    RunUntil([this] { return learner_ != nullptr; });
  }

  void Say(const LearnerMessage& message) { learner_->Send(Encode(message)); }
  void SayHello() { Say(Hello{.learner = {"digits-0", "uid-0", 1}, .address = "127.0.0.1:7000"}); }

  // Messages of this type that were sent to the learner.
  template <typename Message>
  std::optional<Message> Received() const {
    for (const std::string& text : received_) {
      auto message = DecodeCoordinatorMessage(text);
      EXPECT_TRUE(message) << text;
      if (message && std::holds_alternative<Message>(*message)) return std::get<Message>(*message);
    }
    return std::nullopt;
  }

  void RunUntil(const std::function<bool()>& condition) { pliant::RunUntil(loop_, condition); }

  ~CoordinatorServiceTest() override { std::filesystem::remove_all(state_); }

  const std::filesystem::path state_ =
      testing::TempDir() + "pliant-service-test-" + std::to_string(::getpid());
  const std::string wanted_ = R"({"name": "digits-0", "podUid": "uid-0", "state": "Wanted"})";
  RealEventLoop loop_;
  std::optional<Error> fatal_;
  std::unique_ptr<CoordinatorService> service_;
  std::unique_ptr<HttpServer> server_;
  HttpRoute plan_route_;
  std::shared_ptr<WebSocket> learner_;
  std::vector<std::string> received_;
  std::string closed_because_;
};

TEST_F(CoordinatorServiceTest, AWantedLearnerIsProposedWithACounterThatIsOnDisk) {
  Start(state_);
  ConnectLearner();
  SayHello();
  RunUntil([this] { return Received<Welcome>().has_value(); });
  EXPECT_EQ(Received<Welcome>()->term, 4U);
  const ServerResponse answer = PutPlan(1, wanted_);
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr("planAccepted"));
  RunUntil([this] { return Received<Prepare>().has_value(); });
  const MembershipId id = Received<Prepare>()->membership.id;
  EXPECT_EQ(id.term, 4U);
  EXPECT_GE(CounterFile(state_, 4).Read().value_or(0), id.counter);
  EXPECT_FALSE(fatal_);
}

TEST_F(CoordinatorServiceTest, NoMembershipIsSentWhenItsCounterCannotBeWritten) {
  Start("/proc/nowhere");
  ConnectLearner();
  SayHello();
  PutPlan(1, wanted_);
  RunUntil([this] { return fatal_.has_value(); });
  EXPECT_THAT(fatal_->message, HasSubstr("counter"));
  EXPECT_FALSE(Received<Prepare>());
}

TEST_F(CoordinatorServiceTest, AMessageThatIsNotUnderstoodEndsTheConnectionWithTheReason) {
  Start(state_);
  ConnectLearner();
  learner_->Send(R"({"type": "hello", "protocol": "one"})");
  RunUntil([this] { return !closed_because_.empty(); });
  EXPECT_EQ(closed_because_, "closed by the other side");
}

TEST_F(CoordinatorServiceTest, PlansAreTakenInTheirOrder) {
  Start(state_);
  EXPECT_EQ(PutPlan(5, "").status, 200);
  EXPECT_EQ(PutPlan(5, "").status, 200);
  EXPECT_EQ(PutPlan(4, "").status, 409);
  const ServerResponse invalid =
      PutPlan(6, R"({"name": "digits-0", "podUid": "u", "state": "Perhaps"})");
  EXPECT_EQ(invalid.status, 400);
  EXPECT_THAT(invalid.body, HasSubstr("state"));
}

TEST(CoordinatorTokens, AreReadWithoutTheLinesEnd) {
  const std::filesystem::path folder =
      testing::TempDir() + "pliant-tokens-test-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  EXPECT_THAT(ReadCoordinatorTokens(folder).error().message, HasSubstr("operator-token"));
  ASSERT_TRUE(WriteFileAtomically(folder / "operator-token", "abc\n"));
  ASSERT_TRUE(WriteFileAtomically(folder / "learner-token", "\n"));
  EXPECT_THAT(ReadCoordinatorTokens(folder).error().message, HasSubstr("learner-token is empty"));
  ASSERT_TRUE(WriteFileAtomically(folder / "learner-token", "def"));
  const auto tokens = ReadCoordinatorTokens(folder);
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->operator_token, "abc");
  EXPECT_EQ(tokens->learner_token, "def");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace pliant
