#include "trainer/membership/messages.h"

#include <cmath>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

using testing::HasSubstr;

const LearnerId kA{.name = "digits-1a2b3-0", .pod_uid = "u-0", .nonce = 0xfedcba9876543210};
const LearnerId kB{.name = "digits-1a2b3-1", .pod_uid = "", .nonce = 0};
const Membership kTwo{.id = {2, 5}, .members = {{kA, "10.0.0.1:700"}, {kB, "[::1]:701"}}};

TEST(Messages, RoundTripFromLearners) {
  const LearnerMessage kMessages[] = {
      Hello{.learner = kA,
            .address = "10.0.0.1:700",
            .fingerprint = {{"cpu", "x"}, {"framework", "torch 2.6"}},
            .membership = kTwo,
            .before = kTwo,
            .applied_ticks = 412,
            .has_state = true,
            .leaving = true,
            .done = true},
      Hello{.learner = kB},
      Prepared{{2, 6}},
      Entered{.membership = kTwo, .applied_ticks = std::numeric_limits<Tick>::max()},
      Opened{.membership = {2, 6}, .applied_ticks = 413, .pause_seconds = 0.25, .ticks_lost = 1},
      Leaving{.grace_seconds = 60},
      Lost{.membership = {2, 6}, .tick = 3, .accused = {kA, kB}, .cause = "connection reset"},
      Lost{.membership = {2, 6}, .accused = {kA}, .cause = "a trailer of 3"},
      Lost{.membership = {2, 6}},
      Progress{},
      Progress{
          .membership = MembershipId{2, 6},
          .tick = 9,
          .step = 8,
          .following = true,
          .stats = Progress::Stats{.epoch = 1,
                                   .total_steps = 100,
                                   .samples = 2048,
                                   .loss = 0.5,
                                   .samples_per_second = 1e4,
                                   .noise_scale = 1830.5,
                                   .batch_size = 512,
                                   .evaluations = {{.step = 3,
                                                    .epoch = 0,
                                                    .loss = 0.5,
                                                    .accuracy = 0.97,
                                                    .sums = {{"samples", 8}}},
                                                   {.step = 6, .epoch = 1, .sums = {}}},
                                   .last_checkpoint = CheckpointReport{.step = 8,
                                                                       .membership = {2, 6},
                                                                       .unix_seconds = 1790000000.5,
                                                                       .error = "disk full",
                                                                       .reason = "VolumeFull"},
                                   .learners_asked = 2}},
      Progress{.times = TickTimes{0.01, 0.08, 0.003, 0.004, 0.002, 8e5, 9e5}},
      Left{.applied_ticks = 100,
           .reason = LeftReason::kCompleted,
           .message = "caf\xc3\xa9",
           .parameters_sha256 = std::string(64, 'a')},
      Left{.reason = LeftReason::kFailed, .message = "no data"},
  };
  for (const LearnerMessage& message : kMessages) {
    const Result<LearnerMessage> back = DecodeLearnerMessage(Encode(message));
    ASSERT_TRUE(back) << Encode(message) << ": " << back.error();
    EXPECT_EQ(*back, message) << Encode(message);
  }
}

TEST(Messages, RoundTripFromTheCoordinator) {
  const CoordinatorMessage kMessages[] = {
      Welcome{.term = 3, .heartbeat_seconds = 1},
      Refused{.reason = "Fingerprint", .message = "cpu differs"},
      Prepare{.membership = kTwo, .replaces = std::nullopt},
      Prepare{.membership = kTwo, .replaces = MembershipId{2, 4}},
      Announce{.membership = {.id = {2, 9}}, .replaces = MembershipId{2, 5}},
      Withdraw{{2, 5}},
      Recover{kTwo},
      Leave{.at_once = false},
      Leave{.at_once = true},
  };
  for (const CoordinatorMessage& message : kMessages) {
    const Result<CoordinatorMessage> back = DecodeCoordinatorMessage(Encode(message));
    ASSERT_TRUE(back) << Encode(message) << ": " << back.error();
    EXPECT_EQ(*back, message) << Encode(message);
  }
}

TEST(Messages, ALossThatIsNoNumberIsLeftOut) {
  const Progress progress{
      .stats = Progress::Stats{.loss = std::nan(""), .noise_scale = 0.5, .batch_size = 1}};
  const Result<LearnerMessage> back = DecodeLearnerMessage(Encode(LearnerMessage(progress)));
  ASSERT_TRUE(back) << back.error();
  EXPECT_EQ(std::get<Progress>(*back).stats->loss, std::nullopt);
  EXPECT_EQ(std::get<Progress>(*back).stats->noise_scale, 0.5);
}

TEST(Messages, TheHelloOfAnotherProtocolIsReadFarEnoughToRefuseIt) {
  const Result<LearnerMessage> hello = DecodeLearnerMessage(
      R"({"type":"hello","protocol":2,"learner":{"name":"a","podUid":"","nonce":"1"},"new":[]})");
  ASSERT_TRUE(hello) << hello.error();
  EXPECT_EQ(std::get<Hello>(*hello).protocol, 2);
  EXPECT_EQ(std::get<Hello>(*hello).learner.name, "a");
}

TEST(Messages, AWrongOneIsRefusedWithItsFieldNamed) {
  const struct {
    const char* json;
    const char* want;
  } kCases[] = {
      {"", "not JSON"},
      {"[]", "must be an object"},
      {"{}", "type is missing"},
      {R"({"type": 1})", "type must be a string"},
      {R"({"type": "welcome", "term": 1, "heartbeatSeconds": 1})", "type is not one"},
      {R"({"type": "prepared"})", "membership is missing"},
      {R"({"type": "prepared", "membership": "2"})", "membership must be \"term.counter\""},
      {R"({"type": "prepared", "membership": "2.x"})", "membership must be"},
      {R"({"type": "prepared", "membership": "-2.1"})", "membership must be"},
      {R"({"type": "prepared", "membership": "2.99999999999999999999"})", "membership must be"},
      {R"({"type": "leaving", "graceSeconds": "60"})", "graceSeconds must be a number"},
      {R"({"type": "opened", "membership": "1.1", "appliedTicks": -1, "pauseSeconds": 0,
           "ticksLost": 0})",
       "appliedTicks must be a whole number"},
      {R"({"type": "opened", "membership": "1.1", "appliedTicks": 1.5, "pauseSeconds": 0,
           "ticksLost": 0})",
       "appliedTicks must be a whole number"},
      {R"({"type": "left", "appliedTicks": 1, "reason": "Bored", "message": "",
           "parametersSha256": ""})",
       "reason must be"},
      {R"({"type": "lost", "membership": "1.1", "tick": 1, "accused": [7], "cause": ""})",
       "accused[0] must be an object"},
      {R"({"type": "lost", "membership": "1.1", "tick": 1, "cause": "",
           "accused": [{"name": "a", "podUid": "", "nonce": "0x1"}]})",
       "accused[0].nonce must be hexadecimal"},
      {R"({"type": "entered", "appliedTicks": 1, "membership": {"id": "1.1", "members": [
           {"address": "", "learner": {"name": "a", "podUid": "", "nonce": "1"}},
           {"address": "", "learner": {"name": "a", "podUid": "", "nonce": "1"}}]}})",
       "membership.members[1].learner is listed twice"},
      {R"({"type": "hello", "protocol": 1, "learner": {"name": "a", "podUid": "", "nonce": "1"},
           "address": "", "fingerprint": {}, "appliedTicks": 0, "hasState": false,
           "leaving": false, "done": false})",
       "ranks is missing"},
      {R"({"type": "progress", "tick": 1, "step": 1, "figures": {"epoch": 0, "totalSteps": 9,
           "samples": 0, "batchSize": 0}})",
       "figures.batchSize must be at least 1"},
      {R"({"type": "hello", "protocol": 1, "learner": {"name": "a", "podUid": "", "nonce": "1"},
           "ranks": 1, "address": "", "fingerprint": {"cpu": 3}, "appliedTicks": 0, "hasState": false,
           "leaving": false, "done": false})",
       "fingerprint.cpu must be a string"},
  };
  for (const auto& test : kCases) {
    const Result<LearnerMessage> message = DecodeLearnerMessage(test.json);
    ASSERT_FALSE(message) << test.json;
    EXPECT_EQ(message.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(message.error().message, HasSubstr(test.want)) << test.json;
  }
}

TEST(Messages, AHeartbeatIsATimeThatCanBeWaited) {
  const auto welcome = [](double seconds) {
    return DecodeCoordinatorMessage(
        Encode(CoordinatorMessage(Welcome{.term = 1, .heartbeat_seconds = seconds})));
  };
  EXPECT_TRUE(welcome(3600));
  for (const double seconds : {-1.0, 3601.0, 1e300}) {
    const Result<CoordinatorMessage> message = welcome(seconds);
    ASSERT_FALSE(message) << seconds;
    EXPECT_THAT(message.error().message, HasSubstr("heartbeatSeconds must be at most 3600"));
  }
}

TEST(Messages, SizeAndCountsAreLimited) {
  EXPECT_FALSE(DecodeLearnerMessage(std::string(kMaxMessageBytes + 1, ' ')));
  const Hello far{.learner = kA, .address = std::string(257, 'x')};
  EXPECT_FALSE(DecodeLearnerMessage(Encode(LearnerMessage(far))));
  Hello hello{.learner = kA};
  for (int i = 0; i < 65; ++i) hello.fingerprint[std::to_string(i)] = "";
  EXPECT_FALSE(DecodeLearnerMessage(Encode(LearnerMessage(hello))));
}

// An exception's text is part of the learner's last message: a wrong text must not invalidate the
// rest.
TEST(Messages, WordsOfAnyLengthAndEncodingAreCutAndNotRefused) {
  std::string words(4095, 'x');
  words += "\u00e9\xE9 and so on";
  const Result<LearnerMessage> left = DecodeLearnerMessage(
      Encode(LearnerMessage(Left{.reason = LeftReason::kFailed, .message = words})));
  ASSERT_TRUE(left) << left.error();
  EXPECT_EQ(std::get<Left>(*left).message, std::string(4095, 'x'));
  const Result<CoordinatorMessage> refused = DecodeCoordinatorMessage(
      Encode(CoordinatorMessage(Refused{.reason = "Fingerprint", .message = "caf\xE9"})));
  ASSERT_TRUE(refused) << refused.error();
  EXPECT_EQ(std::get<Refused>(*refused).message, "caf\uFFFD");
}

TEST(Messages, DeepNestingIsNoHarm) {
  std::string deep(100000, '[');
  EXPECT_FALSE(DecodeLearnerMessage(deep));
  const auto with_extra = [](std::size_t levels) {
    return DecodeLearnerMessage(R"({"type":"prepared","membership":"2.6","extra":)" +
                                std::string(levels, '[') + std::string(levels, ']') + "}");
  };
  EXPECT_TRUE(with_extra(99));
  const Result<LearnerMessage> deeper = with_extra(100);
  ASSERT_FALSE(deeper);
  EXPECT_EQ(deeper.error().message, "it is nested more than 100 levels deep");
}

TEST(Messages, MembershipsTravelAlone) {
  const Result<Membership> back = DecodeMembership(EncodeMembership(kTwo));
  ASSERT_TRUE(back) << back.error();
  EXPECT_EQ(*back, kTwo);
  EXPECT_FALSE(DecodeMembership("null"));
}

}  // namespace
}  // namespace pliant
