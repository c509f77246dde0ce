#include "operator/controller/rounds/orphans.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"
#include "tests/kube/scripted_transport.h"
#include "tests/unit/controller/cluster_stores.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using std::chrono::seconds;

// As it is after the garbage collector has removed the reference to its job.
api::Pod Orphaned(api::Pod pod) {
  pod.meta.owner_uid.clear();
  pod.meta.owner_name.clear();
  pod.meta.labels[std::string(kLabelJob)] = "digits";
  pod.mounts_token = false;
  return pod;
}

class OrphansTest : public testing::Test {
 protected:
  OrphansTest() {
    server_.AnswerRest([this](const kube::HttpRequest& request) -> Result<kube::HttpResponse> {
      const bool of_jobs = request.target.contains("elastictrainingjobs");
      if (request.method == kube::HttpMethod::kDelete) {
        deleted_.push_back(request.target.substr(request.target.rfind('/') + 1));
        return kube::HttpResponse{.status = 200, .body = "{}"};
      }
      EXPECT_TRUE(of_jobs) << request.target;
      return request.target.contains("?limit=") ? list_ : get_;
    });
  }

  void See(const api::Pod& pod) {
    const auto seen = Shared(pod);
    auto& known = pods_[pod.meta.name];
    orphans_.See(kube::Store<api::Pod>::Change{{"team-a", pod.meta.name}, known, seen});
    known = seen;
  }
  void See(const api::Service& service) {
    orphans_.See(
        kube::Store<api::Service>::Change{{"team-a", service.meta.name}, nullptr, Shared(service)});
  }
  // Runs the rounds until then.
  void RunUntil(double until) {
    for (; now_ <= until; ++now_) {
      table_.Refresh(At(now_));
      again_at_ = orphans_.Reconcile(At(now_));
      loop_.RunFor(std::chrono::milliseconds(1));
    }
  }
  std::vector<std::string> DeletedAfter(double until) {
    RunUntil(until);
    std::ranges::sort(deleted_);
    return deleted_;
  }

  using Names = std::vector<std::string>;
  const kube::HttpResponse not_found_{.status = 404, .body = R"({"kind": "Status", "code": 404})"};
  kube::HttpResponse get_ = not_found_;
  kube::HttpResponse list_{.status = 200,
                           .body = R"({"metadata": {"resourceVersion": "1"}, "items": []})"};
  OwnStores stores_;
  JobTable table_{stores_.all()};
  SimEventLoop loop_;
  kube::ScriptedTransport server_;
  kube::KubeClient client_{
      server_, kube::Config{.server = "https://a"}, {.requests_per_second = 0}};
  std::vector<std::string> deleted_;
  std::map<std::string, std::shared_ptr<const api::Pod>> pods_;
  std::optional<api::WallTime> again_at_;
  double now_ = 0;
  Orphans orphans_{{.loop = loop_,
                    .client = client_,
                    .api_calls = [this](auto task) { loop_.Post(std::move(task)); },
                    .request_round = [] {}},
                   table_};
};

TEST_F(OrphansTest, GoWhenTheirJobIsMissedTwiceAMinuteApart) {
  const api::Pod learner = Orphaned(Learner(0, Life::kRunning));
  const api::Pod coordinator = Orphaned(Coordinator(1));
  See(learner);
  See(coordinator);
  api::Service service = ServiceFor(1);
  service.meta.labels = coordinator.meta.labels;
  service.meta.owner_uid.clear();
  See(service);
  RunUntil(0);
  ASSERT_EQ(orphans_.Stats().size(), 1u);
  EXPECT_EQ(orphans_.Stats()[0].name_space, "team-a");
  EXPECT_EQ(orphans_.Stats()[0].gpus, 1);
  EXPECT_EQ(again_at_, At(30)) << "no event announces it";
  EXPECT_EQ(DeletedAfter(89), Names{});
  Names all{coordinator.meta.name, service.meta.name, learner.meta.name};
  std::ranges::sort(all);
  EXPECT_EQ(DeletedAfter(91), all);
}

TEST_F(OrphansTest, StayWhileTheServerDoesNotSayThatTheirJobIsGone) {
  const struct {
    const char* what;
    kube::HttpResponse get;
    kube::HttpResponse list;
  } kCases[] = {
      {"it is there", {.status = 200, .body = R"({"metadata": {"uid": "1a2b3c4d-0000"}})"}, list_},
      {"we may not read it", {.status = 403, .body = "{}"}, list_},
      {"the server is unwell", {.status = 503, .body = "{}"}, list_},
      {"there is no such kind", not_found_, not_found_},
      {"jobs cannot be listed", not_found_, {.status = 500, .body = "{}"}},
  };
  See(Orphaned(Learner(0, Life::kRunning)));
  double until = 0;
  for (const auto& c : kCases) {
    get_ = c.get;
    list_ = c.list;
    EXPECT_EQ(DeletedAfter(until += 600), Names{}) << c.what;
  }
}

TEST_F(OrphansTest, OneErrorBetweenStartsAgain) {
  See(Orphaned(Learner(0, Life::kRunning)));
  RunUntil(31);
  get_ = {.status = 503, .body = "{}"};
  RunUntil(91);
  get_ = not_found_;
  EXPECT_EQ(DeletedAfter(200), Names{});
  EXPECT_EQ(DeletedAfter(215).size(), 1u);
}

// The new job keeps what it has, and gets nothing of the old one.
TEST_F(OrphansTest, AnotherJobOfTheNameIsNotTheirs) {
  api::ElasticTrainingJob next = NewJob();
  next.meta.uid = "another";
  stores_.jobs.Put(
      {.meta = {.key = {"team-a", "digits"}, .uid = "another"}, .value = Shared(next)});
  get_ = {.status = 200, .body = R"({"metadata": {"name": "digits", "uid": "another"}})"};
  See(Orphaned(Learner(0, Life::kRunning)));
  api::Pod of_next = Learner(0, Life::kRunning);
  of_next.meta.name = LearnerPodName(next.meta, 0);
  of_next.meta.labels[std::string(kLabelJobUid)] = of_next.meta.owner_uid = "another";
  See(of_next);
  EXPECT_EQ(DeletedAfter(100), Names{Name(0)});
}

TEST_F(OrphansTest, OnlyWhatIsAsTheOperatorMakesItGoes) {
  const struct {
    const char* what;
    std::function<void(api::Pod& pod)> change;
  } kCases[] = {
      {"it has another owner", [](api::Pod& pod) { pod.meta.has_other_owner = true; }},
      {"another job owns it", [](api::Pod& pod) { pod.meta.owner_uid = "another"; }},
      {"it has a token", [](api::Pod& pod) { pod.mounts_token = true; }},
      {"it has another name", [](api::Pod& pod) { pod.meta.name += "x"; }},
      {"it has another number",
       [](api::Pod& pod) { pod.meta.labels[std::string(kLabelLearner)] = "7"; }},
      {"it has no role", [](api::Pod& pod) { pod.meta.labels.erase(std::string(kLabelRole)); }},
      {"it names no job", [](api::Pod& pod) { pod.meta.labels.erase(std::string(kLabelJob)); }},
      {"its job may have a longer name",
       [](api::Pod& pod) { pod.meta.labels[std::string(kLabelJob)] = std::string(63, 'j'); }},
      {"it is leaving", [](api::Pod& pod) { pod.meta.deleted = At(5000); }},
  };
  double until = 0;
  for (const auto& c : kCases) {
    api::Pod pod = Orphaned(Learner(0, Life::kRunning));
    c.change(pod);
    See(pod);
    EXPECT_EQ(DeletedAfter(until += 600), Names{}) << c.what;
    orphans_.See(
        kube::Store<api::Pod>::Change{{"team-a", pod.meta.name}, pods_[pod.meta.name], nullptr});
    pods_.clear();
  }
  api::Pod coordinator = Orphaned(Coordinator(1));
  coordinator.has_own_account = true;
  See(coordinator);
  EXPECT_EQ(DeletedAfter(until += 600), Names{});
}

TEST_F(OrphansTest, PodsOfAJobThatIsThereAreNotLookedFor) {
  stores_.jobs.Put(
      {.meta = {.key = {"team-a", "digits"}, .uid = kUid}, .value = Shared(AdmittedJob(1))});
  See(Orphaned(Learner(0, Life::kRunning)));
  RunUntil(600);
  EXPECT_TRUE(server_.requests().empty());
  EXPECT_TRUE(orphans_.Stats().empty());
  EXPECT_EQ(again_at_, std::nullopt);
}

}  // namespace
}  // namespace pliant::controller
