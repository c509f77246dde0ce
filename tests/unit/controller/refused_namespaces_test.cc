#include "operator/controller/process/refused_namespaces.h"

#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/controller/cluster_stores.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

class RefusedNamespacesTest : public testing::Test, protected OwnStores {
 protected:
  RefusedNamespacesTest() {
    const api::ElasticTrainingJob job = AdmittedJob(2);
    jobs.Put({.meta = {.key = key, .uid = job.meta.uid, .resource_version = "1"},
              .value = std::make_shared<const api::ElasticTrainingJob>(job)});
    const api::Pod pod = Learner(1, Life::kRunning);
    pods.Put({.meta = {.key = pod_key, .uid = pod.meta.uid, .resource_version = "1"},
              .value = std::make_shared<const api::Pod>(pod)});
  }

  const kube::NamespacedName key{"team-a", "digits"};
  const kube::NamespacedName pod_key{"team-a", Name(1)};
  RefusedNamespaces refused{all()};
};

TEST_F(RefusedNamespacesTest, AJobIsLeftAloneUntilAllThatBelongsToItIsFollowed) {
  EXPECT_TRUE(refused.names().empty());
  pods.SetRefused(true, "team-a");
  EXPECT_EQ(jobs.Find(key), nullptr);
  EXPECT_NE(pods.Find(pod_key), nullptr) << "it may still hold GPUs";
  EXPECT_EQ(refused.names(), std::set<std::string>{"team-a"});
  jobs.SetRefused(true, "team-a");
  pods.SetRefused(false, "team-a");
  EXPECT_EQ(jobs.Find(key), nullptr);
  services.SetRefused(true, "team-b");
  EXPECT_EQ(refused.names(), (std::set<std::string>{"team-a", "team-b"}));
  jobs.SetRefused(false, "team-a");
  EXPECT_NE(jobs.Find(key), nullptr);
  EXPECT_EQ(refused.names(), std::set<std::string>{"team-b"});
}

}  // namespace
}  // namespace pliant::controller
