#include "operator/controller/lifecycle/admission.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct ShardCase {
  std::int64_t batch;
  int max_learners;
  std::optional<int> asked;
  int shards;  // 0: refused
};

TEST(Admission, DerivesTheNumberOfShards) {
  const ShardCase kCases[] = {
      {256, 8, {}, 16},  // 2 · 8
      {256, 5, {}, 16},  // the smallest power of two above 2 · 5
      {48, 8, {}, 16},   // 48 = 16 · 3
      {48, 4, {}, 8},
      {256, 1, {}, 2},
      {256, 8, 8, 8},
      {256, 8, 256, 256},
      {96, 64, {}, 0},  // 32 divides it, but there are 64 GPUs
      {7, 1, {}, 1},
      {7, 2, {}, 0},
      {100, 1, 8, 0},
      {256, 16, 8, 0},
      {1 << 24, 1024, {}, 2048},
  };
  for (const ShardCase& c : kCases) {
    api::JobSpec spec = NewJob().spec;
    spec.training.global_batch_size = c.batch;
    spec.training.logical_shards = c.asked;
    spec.elastic.max_learners = c.max_learners;
    const auto training = FreezeTraining(spec);
    EXPECT_EQ(training ? training->logical_shards : 0, c.shards)
        << c.batch << " for " << c.max_learners;
    if (!training) {
      EXPECT_EQ(training.error().code, ErrorCode::kInvalid);
    }
  }
}

TEST(Admission, ABatchThatCannotGrowIsRefused) {
  api::JobSpec spec = NewJob().spec;
  spec.training.global_batch_size = 256;
  spec.training.max_batch_size = 512;
  EXPECT_EQ(FreezeTraining(spec)->max_batch_size, 512);
  spec.training.max_batch_size = 511;
  EXPECT_THAT(FreezeTraining(spec).error().message,
              testing::HasSubstr("maxBatchSize 511 is less than twice globalBatchSize 256"));
  spec.training.max_batch_size = 512;
  spec.elastic.max_learners = 1;
  spec.training.logical_shards = 1;
  EXPECT_THAT(FreezeTraining(spec).error().message,
              testing::HasSubstr("needs logicalShards of at least 2"));
  spec.training.logical_shards = 2;
  spec.training.reproducibility = api::Reproducibility::kStatistical;
  EXPECT_THAT(FreezeTraining(spec).error().message,
              testing::HasSubstr("needs reproducibility Bitwise"));
}

TEST(Admission, AsksTheServerOnceAndBelievesIt) {
  JobView view{.job = Shared(NewJob())};
  AdmissionOutcome outcome = DecideAdmission(view, At(10));
  EXPECT_EQ(outcome.verdict, std::nullopt);
  EXPECT_THAT(outcome.actions, ElementsAre(Action(CheckTemplate{})));

  view.soft_state.checked_template.check = TemplateCheck{.generation = 1, .accepted = true};
  outcome = DecideAdmission(view, At(11));
  EXPECT_THAT(outcome.actions, IsEmpty());
  ASSERT_TRUE(outcome.verdict);
  EXPECT_EQ(outcome.verdict->status, api::ConditionStatus::kTrue);
  EXPECT_EQ(outcome.training->logical_shards, 16);

  view.soft_state.checked_template.check =
      TemplateCheck{.generation = 1, .message = "no such class", .refusals = 1, .again_at = At(20)};
  outcome = DecideAdmission(view, At(11));
  EXPECT_EQ(outcome.verdict->reason, "TemplateRefused");
  EXPECT_EQ(outcome.verdict->message, "no such class");
  EXPECT_THAT(outcome.actions, IsEmpty());
  EXPECT_EQ(outcome.look_again, At(20));
  EXPECT_EQ(DecideAdmission(view, At(20)).actions.size(), 1u) << "the cause may no longer exist";
  Edit(view.job).meta.generation = 2;
  EXPECT_EQ(DecideAdmission(view, At(11)).actions.size(), 1u) << "the job was edited";

  view.soft_state.checked_template.check =
      TemplateCheck{.generation = 2, .unanswered = true, .message = "failed calling webhook"};
  outcome = DecideAdmission(view, At(12));
  EXPECT_EQ(outcome.verdict->reason, "TemplateUnchecked");
  EXPECT_EQ(outcome.verdict->message, "failed calling webhook");
  EXPECT_THAT(outcome.actions, ElementsAre(Action(CheckTemplate{})));
}

TEST(Admission, KeepsTheFrozenTraining) {
  JobView view{.job = Shared(AdmittedJob(0))};
  Edit(view.job).status.training->logical_shards = 8;
  view.soft_state.checked_template.check = TemplateCheck{.generation = 1, .accepted = true};
  EXPECT_EQ(DecideAdmission(view, At(1)).training->logical_shards, 8);
}

// Otherwise the text would differ from the stored one each time, and be written for ever.
TEST(Admission, TheBatchOfTheEpochIsWhatItsCoordinatorSaysIfItCanBe) {
  const struct {
    const char* what;
    std::optional<std::int64_t> max;
    std::optional<std::int64_t> told;
    std::int64_t batch;
    int shards;
  } kCases[] = {
      {"it has not grown", 256, 64, 64, 8},
      {"nobody says it", 256, {}, 64, 8},
      {"doubled", 256, 128, 128, 16},
      {"doubled twice", 256, 256, 256, 32},
      {"more than the maximum", 256, 512, 64, 8},
      {"no doubling", 256, 192, 64, 8},
      {"no multiple", 256, 100, 64, 8},
      {"less than at first", 256, 32, 64, 8},
      {"a constant batch", {}, 128, 64, 8},
      {"too many shards", INT64_MAX, 64LL << 40, 64, 8},
  };
  for (const auto& c : kCases) {
    JobView view = TrainingView(2);
    api::FrozenTraining& training = *Edit(view.job).status.training;
    training.global_batch_size = 64;
    training.logical_shards = 8;
    training.max_batch_size = c.max;
    Edit(view.coordinator.progress).batch_size = c.told;
    const auto present = PresentTrainingOf(view);
    ASSERT_TRUE(present) << c.what;
    EXPECT_EQ(present->global_batch_size, c.batch) << c.what;
    EXPECT_EQ(present->logical_shards, c.shards) << c.what;
  }
}

TEST(Conditions, ATextFromElsewhereReadsBackAsItWasWritten) {
  using nlohmann::json;
  const struct {
    const char* name;
    std::string text;
  } kCases[] = {
      {"short", "caf\u00e9"},
      {"no UTF-8", "caf\xE9"},
      {"half a character", "caf\xC3"},
      {"cut within a character as a reason", std::string(1023, 'x') + "\u00e9"},
      {"cut within a character as a message", std::string(4095, 'x') + "\u00e9"},
      {"far too long, no UTF-8", std::string(10'000, '\xE9')},
  };
  for (const auto& c : kCases) {
    api::JobStatus status;
    SetCondition(status, "Admitted", {api::ConditionStatus::kFalse, "R", c.text}, 1, At(1));
    SetReason(status, c.text);
    EXPECT_LE(status.reason.size(), 1024u) << c.name;
    for (const std::string& told : {status.conditions[0].message, status.reason}) {
      const std::string sent = json(told).dump(-1, ' ', false, json::error_handler_t::replace);
      EXPECT_EQ(json::parse(sent).get<std::string>(), told) << c.name;
    }
  }
}

TEST(Conditions, ChangeTheirTimeWithTheirStatusOnly) {
  using enum api::ConditionStatus;
  api::JobStatus status;
  SetCondition(status, "Running", {kFalse, "Queued", ""}, 1, At(1.5));
  SetCondition(status, "Admitted", {kTrue, "Admitted", ""}, 1, At(2));
  SetCondition(status, "Running", {kFalse, "Starting", "soon"}, 2, At(3));
  ASSERT_EQ(status.conditions.size(), 2u);
  EXPECT_EQ(status.conditions[0].type, "Admitted") << "sorted, so that equal states are equal";
  EXPECT_EQ(status.conditions[1].last_transition, At(1))
      << "whole seconds, as the server stores them";
  EXPECT_EQ(status.conditions[1].reason, "Starting");
  EXPECT_EQ(status.conditions[1].observed_generation, 2);
  SetCondition(status, "Running", {kTrue, "Training", ""}, 2, At(4));
  EXPECT_EQ(status.conditions[1].last_transition, At(4));
  EXPECT_TRUE(IsTrue(status, "Running"));
}

}  // namespace
}  // namespace pliant::controller
