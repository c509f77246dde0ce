#include "operator/controller/rounds/accepted_templates.h"

#include <functional>

#include <gtest/gtest.h>

#include "base/format.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

TEST(AcceptedTemplates, AreKnownByWhatTenantsSay) {
  struct Case {
    const char* what;
    std::function<void(api::ElasticTrainingJob&)> change;
    bool known;
  };
  const Case kCases[] = {
      {"the same job", [](auto&) {}, true},
      {"another job", [](auto& job) { job.meta.name = "letters", job.meta.uid = "other"; }, true},
      {"another priority", [](auto& job) { job.spec.priority += 1; }, true},
      {"another namespace", [](auto& job) { job.meta.name_space = "team-b"; }, false},
      {"another template", [](auto& job) { SetTemplate("{}", job.spec); }, false},
      {"another volume",
       [](auto& job) {
         job.spec.checkpoint.volume_json = "{}";
         SetTemplate(job.spec.learner_template.json, job.spec);
       },
       false},
      {"more GPUs", [](auto& job) { job.spec.elastic.gpus_per_learner = 2; }, false},
      {"another grace", [](auto& job) { job.spec.resize.grace_period *= 2; }, false},
  };
  AcceptedTemplates accepted;
  EXPECT_EQ(accepted.Find(NewJob(), At(0)), nullptr);
  accepted.Add(NewJob(), nullptr, At(0));
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.what);
    api::ElasticTrainingJob job = NewJob();
    c.change(job);
    EXPECT_EQ(accepted.Find(job, At(1)) != nullptr, c.known);
  }
}

TEST(AcceptedTemplates, AreForgottenAfterAMinute) {
  AcceptedTemplates accepted;
  accepted.Add(NewJob(), nullptr, At(0));
  EXPECT_NE(accepted.Find(NewJob(), At(59)), nullptr);
  EXPECT_EQ(accepted.Find(NewJob(), At(60)), nullptr);
  accepted.Add(NewJob(), nullptr, At(90));
  EXPECT_NE(accepted.Find(NewJob(), At(100)), nullptr);
}

TEST(AcceptedTemplates, AreFew) {
  AcceptedTemplates accepted;
  api::ElasticTrainingJob job = NewJob();
  for (std::size_t i = 0; i < 2 * AcceptedTemplates::kMax; ++i) {
    SetTemplate(Format(R"({{"number":{}}})", i), job.spec);
    accepted.Add(job, nullptr, At(static_cast<double>(i) / 100));
  }
  EXPECT_EQ(accepted.size(), AcceptedTemplates::kMax);
  EXPECT_NE(accepted.Find(job, At(6)), nullptr) << "the oldest are dropped first";
}

}  // namespace
}  // namespace pliant::controller
