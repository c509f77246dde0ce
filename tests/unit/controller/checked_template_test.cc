#include "operator/controller/model/checked_template.h"

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

TEST(CheckedTemplate, ARefusedOneIsAskedAboutLessAndLess) {
  const api::ElasticTrainingJob job = NewJob();
  CheckedTemplate known;
  double now = 100;
  for (const double delay : {10, 20, 40, 80, 160, 300, 300}) {
    OnTemplateRefused(job, "quota", At(now), known);
    EXPECT_EQ(known.check->again_at, At(now + delay));
    now += delay;
  }
  EXPECT_FALSE(known.check->accepted);
  EXPECT_EQ(known.check->message, "quota");
}

TEST(CheckedTemplate, AnotherGenerationIsAnotherTemplate) {
  api::ElasticTrainingJob job = NewJob();
  CheckedTemplate known;
  for (int i = 0; i < 3; ++i) OnTemplateRefused(job, "quota", At(100), known);
  ++job.meta.generation;
  OnTemplateRefused(job, "quota", At(100), known);
  EXPECT_EQ(known.check->refusals, 1);
}

TEST(CheckedTemplate, AnUncheckedTemplateIsReportedUnlessItWasRefused) {
  const api::ElasticTrainingJob job = NewJob();
  CheckedTemplate known;
  OnTemplateUnchecked(job, "webhook", known);
  EXPECT_TRUE(known.check->unanswered);
  EXPECT_EQ(known.check->message, "webhook");
  OnTemplateRefused(job, "quota", At(100), known);
  OnTemplateUnchecked(job, "webhook", known);
  EXPECT_FALSE(known.check->unanswered);
  EXPECT_EQ(known.check->message, "quota");
}

TEST(CheckedTemplate, AnAcceptedOneTellsWhatALearnerNeedsIfThatWasShown) {
  const api::ElasticTrainingJob job = NewJob();
  const auto needs = Shared(planner::PodNeeds{.resources = {.gpus = 1, .cpu_millis = 300}});
  CheckedTemplate known;
  OnTemplateAccepted(job, needs, known);
  OnTemplateAccepted(job, nullptr, known);
  EXPECT_TRUE(known.check->accepted);
  EXPECT_EQ(known.admitted_needs->needs, needs) << "the needs that were known before";
  EXPECT_EQ(known.admitted_needs->template_hash, job.spec.learner_template.hash);
}

}  // namespace
}  // namespace pliant::controller
