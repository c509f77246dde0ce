// Fuzzes the messages between learners, their coordinator and the operator. A message that can be
// read must be the same after it is written and read again.

#include "base/check.h"
#include "tests/fuzz/fuzz_target.h"
#include "trainer/membership/messages.h"
#include "trainer/membership/plan.h"

namespace pliant {
namespace {

const LearnerId kId{.name = "digits-1a2b3-4", .pod_uid = "u", .nonce = 0x1234};
const Membership kMembership{
    .id = {.term = 2, .counter = 5},
    .members = {{.id = kId, .address = "10.0.0.1:1"}, {.id = {.name = "b"}, .address = "[::1]:2"}}};

template <typename Decode>
void CheckRoundTrip(std::string_view text, Decode decode, auto encode) {
  const auto value = decode(text);
  if (!value) return;
  const auto again = decode(encode(*value));
  CHECK(again.has_value() && *again == *value, "what was read can be written and read");
}

}  // namespace

std::vector<std::string> fuzz::Seeds() {
  const Progress::Stats stats{
      .epoch = 3,
      .total_steps = 1200,
      .samples = 5,
      .loss = 0.5,
      .samples_per_second = 5310,
      .batch_size = 256,
      .evaluations = {{.step = 3, .epoch = 2, .accuracy = 0.9, .sums = {{"samples", 8}}}},
      .last_checkpoint = CheckpointReport{
          .step = 4, .membership = {2, 5}, .unix_seconds = 1.5e9, .error = "full", .reason = "x"}};
  const LearnerMessage from_learners[] = {
      Hello{.learner = kId,
            .address = "10.0.0.1:1",
            .fingerprint = {{"gpu", "H100"}, {"cpu", "x"}},
            .membership = kMembership,
            .before = kMembership,
            .applied_ticks = 7,
            .has_state = true},
      Prepared{{2, 5}},
      Entered{.membership = kMembership, .applied_ticks = 7},
      Opened{.membership = {2, 5}, .applied_ticks = 8, .pause_seconds = 0.1, .ticks_lost = 1},
      Leaving{20},
      Lost{.membership = {2, 5}, .tick = 7, .accused = {kId}, .cause = "reset"},
      Progress{.membership = MembershipId{2, 5},
               .tick = 7,
               .step = 6,
               .times = TickTimes{1, 2, 3, 4, 5, 6, 7},
               .stats = stats},
      Left{.applied_ticks = 9, .reason = LeftReason::kCompleted, .parameters_sha256 = "ab"}};
  const CoordinatorMessage from_coordinators[] = {Welcome{.term = 2, .heartbeat_seconds = 1},
                                                  Refused{.reason = "Protocol", .message = "no"},
                                                  Prepare{kMembership, MembershipId{2, 4}},
                                                  Announce{kMembership, std::nullopt},
                                                  Withdraw{{2, 5}},
                                                  Recover{kMembership},
                                                  Leave{.at_once = true}};
  std::vector<std::string> seeds = {
      EncodeMembership(kMembership),
      R"({"leaseTransitions": 3, "sequence": 17, "learners": [{"name": "a", "podUid": "u", "state": "Wanted"}]})"};
  for (const LearnerMessage& message : from_learners) seeds.push_back(Encode(message));
  for (const CoordinatorMessage& message : from_coordinators) seeds.push_back(Encode(message));
  return seeds;
}

}  // namespace pliant

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pliant;
  const std::string_view text = fuzz::TextOf(data, size);
  const auto encode = [](const auto& message) { return Encode(message); };
  CheckRoundTrip(text, DecodeLearnerMessage, encode);
  CheckRoundTrip(text, DecodeCoordinatorMessage, encode);
  CheckRoundTrip(text, DecodeMembership, EncodeMembership);
  (void)DecodePlan(text);
  return 0;
}
