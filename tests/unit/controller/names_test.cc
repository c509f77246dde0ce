#include "operator/controller/model/names.h"

#include <cstdint>
#include <functional>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

TEST(Names, FollowFromTheJob) {
  const api::ObjectMeta job = NewJob().meta;
  EXPECT_EQ(CoordinatorName(job), "digits-1a2b3-coordinator");
  EXPECT_EQ(LearnerSecretName(job, 2), "digits-1a2b3-learner-2");
  EXPECT_EQ(CoordinatorSecretName(job, 2), "digits-1a2b3-coordinator-2");
  EXPECT_EQ(CoordinatorPodName(job, 12), "digits-1a2b3-coordinator-12");
  EXPECT_EQ(LearnerPodName(job, 4), "digits-1a2b3-4");
  EXPECT_EQ(JobLabel(job), "digits");
  EXPECT_EQ(LearnerSelector(job), "pliant.dev/job-uid=1a2b3c4d-0000,pliant.dev/role=learner");
}

TEST(Names, LongOnesAreCutAndStayDistinct) {
  std::set<std::string> names;
  for (const std::string ending : {"a", "b"}) {
    api::ObjectMeta job = NewJob().meta;
    job.name = std::string(80, 'x') + ending;
    for (const std::string& name : {CoordinatorName(job), LearnerSecretName(job, 123456),
                                    CoordinatorPodName(job, 123456), LearnerPodName(job, 9999)}) {
      EXPECT_LE(name.size(), 63u);
      EXPECT_TRUE(names.insert(name).second) << name;
    }
    EXPECT_EQ(JobLabel(job).size(), 63u);
    EXPECT_TRUE(names.insert(JobLabel(job)).second);
  }
}

TEST(Names, APodThatOnlyWearsTheLabelsIsNotOurs) {
  api::Pod pod = Learner(3, Life::kRunning);
  const api::ObjectMeta job = NewJob().meta;
  EXPECT_TRUE(IsLearnerOf(pod, job));
  EXPECT_FALSE(IsCoordinatorOf(pod, job));
  EXPECT_TRUE(IsCoordinatorOf(Coordinator(2), job));
  EXPECT_FALSE(IsLearnerOf(Coordinator(2), job));
  EXPECT_EQ(LearnerNumber(pod), 3);

  const std::pair<const char*, std::function<void(api::Pod&)>> kForgeries[] = {
      {"another namespace", [](api::Pod& p) { p.meta.name_space = "evil"; }},
      {"another owner", [](api::Pod& p) { p.meta.owner_uid = "somebody else"; }},
      {"an owner of another name", [](api::Pod& p) { p.meta.owner_name = "letters"; }},
      {"another name", [](api::Pod& p) { p.meta.name = "digits-1a2b3-03"; }},
      {"another number", [](api::Pod& p) { p.meta.labels[std::string(kLabelLearner)] = "4"; }},
      {"no number", [](api::Pod& p) { p.meta.labels.erase(std::string(kLabelLearner)); }},
      {"another job's label", [](api::Pod& p) { p.meta.labels[std::string(kLabelJobUid)] = "u"; }},
      {"a number at the end of all",
       [](api::Pod& p) {
         p.meta.labels[std::string(kLabelLearner)] = "2147483647";
         p.meta.name = LearnerPodName(NewJob().meta, INT32_MAX);
       }},
  };
  for (const auto& [what, forge] : kForgeries) {
    api::Pod forged = pod;
    forge(forged);
    EXPECT_FALSE(IsLearnerOf(forged, job)) << what;
  }
}

TEST(Names, ALabelThatIsNoNumberIsNone) {
  for (const char* text : {"", "x", "-1", "3x", "99999999999999999999"}) {
    api::Pod pod = Learner(3, Life::kRunning);
    pod.meta.labels[std::string(kLabelLearner)] = text;
    EXPECT_EQ(LearnerNumber(pod), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace pliant::controller
