#include "operator/controller/model/progress.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace pliant::controller {
namespace {

TEST(Progress, ReadsTheContractsExample) {
  const auto progress = DecodeProgress(R"({
    "term": 2, "membership": {"id": "2.5", "learners": ["digits-1a2b3-0", "digits-1a2b3-4"]}, "state": "Running",
    "planAccepted": {"leaseTransitions": 3, "sequence": 17},
    "tick": 412, "step": 400, "epoch": 16, "totalSteps": 1200, "loss": 0.0312, "samplesPerSecond": 5310.4321,
    "accuracy": 0.981, "evaluations": [{"step": 400, "epoch": 15, "loss": 0.07, "accuracy": 0.981, "sums": {"samples": 360}}],
    "learnersAsked": 2, "batchSize": 512,
    "lastCheckpoint": {"step": 400, "membership": "2.5", "unixSeconds": 1790000000.5, "error": "", "reason": ""},
    "learners": [{"name": "digits-1a2b3-4", "podUid": "u", "state": "Member", "step": 400}],
    "resizes": [{"membership": "2.5", "kind": "Planned", "from": 1, "to": 2, "requestedUnixSeconds": 1790000000.1,
                 "longestPauseSeconds": 0.021}],
    "speed": {"samplesPerSecond": 5280.5, "computeSeconds": 0.08, "seconds": 41.5},
    "problem": {"reason": "", "message": ""}, "parametersSha256": ""})");
  ASSERT_TRUE(progress) << progress.error();
  EXPECT_EQ(progress->speed, (ReportedSpeed{5280.5, 0.08, 41.5}));
  EXPECT_EQ(progress->term, 2);
  EXPECT_EQ(progress->members.size(), 2u);
  EXPECT_EQ(progress->plan_accepted, (PlanStamp{3, 17}));
  EXPECT_EQ(progress->step, 400);
  EXPECT_EQ(progress->samples_per_second, 5310) << "four digits: it is measured";
  EXPECT_EQ(progress->last_checkpoint->saved,
            (api::SavedCheckpoint{.step = 400,
                                  .time = api::WallTime(std::chrono::seconds(1'790'000'000))}));
  EXPECT_EQ(progress->learners_asked, 2);
  EXPECT_EQ(progress->evaluations, (std::vector<api::Evaluation>{{.step = 400,
                                                                  .epoch = 15,
                                                                  .loss = 0.07,
                                                                  .accuracy = 0.981,
                                                                  .sums = {{"samples", 360}}}}));
  EXPECT_EQ(progress->batch_size, 512);
  EXPECT_EQ(progress->last_checkpoint->reason, "");
  EXPECT_EQ(progress->resizes,
            (std::vector<ReportedResize>{
                {.membership = {2, 5}, .from = 1, .to = 2, .pause_seconds = 0.021}}));
}

TEST(Progress, APauseCountsIfItIsPlannedAndMakesSense) {
  for (const auto& [resize, pause] :
       {std::pair<const char*, std::optional<double>>{
            R"({"kind": "Planned", "longestPauseSeconds": 2.5})", 2.5},
        {R"({"kind": "Planned"})", {}},
        {R"({"kind": "Recovery", "longestPauseSeconds": 2.5})", {}},
        {R"({"kind": "Planned", "longestPauseSeconds": -1})", {}},
        {R"({"kind": "Planned", "longestPauseSeconds": 1e9})", {}}}) {
    const auto progress =
        DecodeProgress(std::string(R"({"state": "Running", "resizes": [)") + resize + "]}");
    ASSERT_TRUE(progress) << progress.error();
    EXPECT_EQ(progress->resizes.at(0).pause_seconds, pause) << resize;
  }
}

TEST(Progress, ASpeedThatMakesNoSenseIsUnknown) {
  for (const char* speed :
       {R"({})", R"({"samplesPerSecond": 0, "computeSeconds": 1})",
        R"({"samplesPerSecond": 1, "computeSeconds": -1})", R"({"samplesPerSecond": 1})"}) {
    const auto progress =
        DecodeProgress(std::string(R"({"state": "Running", "speed": )") + speed + "}");
    ASSERT_TRUE(progress) << progress.error();
    EXPECT_EQ(progress->speed, std::nullopt) << speed;
  }
}

TEST(Progress, LeavesUnknownValuesAbsent) {
  const auto progress = DecodeProgress(R"({"term": 1, "state": "Waiting"})");
  ASSERT_TRUE(progress) << progress.error();
  EXPECT_EQ(progress->step, std::nullopt);
  EXPECT_EQ(progress->last_checkpoint, std::nullopt);
  EXPECT_EQ(progress->learners_asked, std::nullopt);
  EXPECT_EQ(progress->plan_accepted, std::nullopt);
  EXPECT_TRUE(progress->members.empty());
}

TEST(Progress, TheReasonOfAFailedCheckpointIsOneOfAFixedSet) {
  for (const auto& [told, reason] : {
           std::pair{"VolumeFull", "VolumeFull"},
           std::pair{"VolumeReadOnly", "VolumeReadOnly"},
           std::pair{"WriteFailed", "WriteFailed"},
           std::pair{"", "WriteFailed"},  // from a learner that gives no reason
           std::pair{"no reason, at all", "WriteFailed"},
       }) {
    const auto progress = DecodeProgress(
        std::string(R"({"state": "Running", "lastCheckpoint": {"step": 0, "unixSeconds": 0,)") +
        R"("error": "write /checkpoints/x: No space left on device", "reason": ")" + told + "\"}}");
    ASSERT_TRUE(progress) << progress.error();
    EXPECT_EQ(progress->last_checkpoint->saved, std::nullopt) << "none was written yet";
    EXPECT_EQ(progress->last_checkpoint->reason, reason) << told;
  }
}

// A coordinator with long texts must not count as silent.
TEST(Progress, WordsOfAnyLengthAreCutBetweenCharacters) {
  const std::string words = std::string(1023, 'x') + "\u00e9" + std::string(100'000, 'x');
  const nlohmann::json body = {{"state", "Running"},
                               {"lastCheckpoint", {{"error", words}}},
                               {"problem", {{"reason", "LearnerFailed"}, {"message", words}}}};
  const auto progress = DecodeProgress(body.dump());
  ASSERT_TRUE(progress) << progress.error();
  EXPECT_EQ(progress->last_checkpoint->error, std::string(1023, 'x'));
  EXPECT_EQ(progress->problem_message, std::string(1023, 'x'));
}

TEST(Progress, TheReasonOfAProblemIsOneOfAFixedSet) {
  for (const auto& [told, reason] : {
           std::pair{"", ""},
           std::pair{"LearnerFailed", "LearnerFailed"},
           std::pair{"Fingerprint", "Fingerprint"},
           std::pair{"Protocol", "Protocol"},
           std::pair{"GpusUnusable", "GpusUnusable"},
           std::pair{"no reason, at all", "LearnerFailed"},
           std::pair{"Completed", "LearnerFailed"},
       }) {
    const nlohmann::json body = {{"state", "Running"}, {"problem", {{"reason", told}}}};
    const auto progress = DecodeProgress(body.dump());
    ASSERT_TRUE(progress) << progress.error();
    EXPECT_EQ(progress->problem_reason, reason) << told;
  }
}

TEST(Progress, NamesWhatIsWrong) {
  for (const auto& [body, message] : {
           std::pair{"", "progress: not JSON"},
           std::pair{"[]", "progress: not an object"},
           std::pair{R"({"state": "Dreaming"})", "progress.state: not a known state"},
           std::pair{R"({"state": "Running", "term": -1})",
                     "progress.term: not a whole number from 0 to 9223372036854775807"},
           std::pair{R"({"state": "Running", "membership": {"learners": [1]}})",
                     "progress.membership.learners: not a list of at most 4096 strings"},
       }) {
    const auto progress = DecodeProgress(body);
    ASSERT_FALSE(progress) << body;
    EXPECT_EQ(progress.error().message, message);
  }
}

TEST(Progress, MembershipIdsAreOrdered) {
  EXPECT_LT(ParseMembershipId("1.10"), ParseMembershipId("2.1"));
  EXPECT_LT(ParseMembershipId("1.9"), ParseMembershipId("1.10"));
  for (const char* text : {"", "1", "1.", ".1", "1.2x", "a.b"}) {
    EXPECT_EQ(ParseMembershipId(text), MembershipId{}) << text;
  }
}

TEST(Plan, IsWrittenAsTheContractSays) {
  EXPECT_EQ(
      nlohmann::json::parse(EncodePlan(
          {.stamp = {3, 17},
           .learners = {{.name = "a", .pod_uid = "u", .state = DesiredLearnerState::kLeaving}},
           .reason = "fair share" + std::string(2000, '.')})),
      nlohmann::json::parse(R"({"leaseTransitions": 3, "sequence": 17,
                "learners": [{"name": "a", "podUid": "u", "state": "Leaving"}],
                "reason": "fair share)" +
                            std::string(1014, '.') + R"("})"));
}

}  // namespace
}  // namespace pliant::controller
