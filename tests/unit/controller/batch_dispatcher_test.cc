#include "operator/controller/actions/batch_dispatcher.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"
#include "operator/kube/config.h"
#include "tests/kube/scripted_transport.h"
#include "tests/unit/controller/cluster_stores.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using kube::HttpMethod;
using kube::HttpResponse;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kCreate = "/api/v1/namespaces/team-a/pods";

class BatchDispatcherTest : public testing::Test {
 protected:
  BatchDispatcherTest() {
    const api::ElasticTrainingJob job = AdmittedJob(1);
    stores_.jobs.Put(
        {.meta = {.key = key_, .uid = kUid, .resource_version = job.meta.resource_version},
         .value = Shared(job)});
    table_.Refresh(Now());
    dispatcher_->AddJob(kUid, key_);
  }

  WallTime Now() const {
    return At(0) + std::chrono::floor<milliseconds>(loop_.Now().time_since_epoch());
  }
  const JobView& View() { return table_.Refresh(Now()).at(key_); }
  // Takes the job from the queue, which gives one batch at a time.
  void Dispatch(std::vector<Action> actions, bool held_back = false) {
    queue_.Add(key_);
    ASSERT_EQ(queue_.Take(), key_);
    dispatcher_->Dispatch(
        {.batch = std::make_shared<Batch>(
             Batch{.job = *View().job, .actions = std::move(actions), .held_back = held_back}),
         .job_before = View().job});
  }
  void Answer(HttpMethod method, const std::string& target, int status, std::string body) {
    server_.Answer(method, target,
                   HttpResponse{.status = status, .headers = {}, .body = std::move(body)});
  }
  static std::string PodJson(int number) {
    return nlohmann::json{
        {"metadata",
         {{"namespace", "team-a"},
          {"name", Name(number)},
          {"uid", "uid-of-it"},
          {"resourceVersion", "7"},
          {"labels", {{kLabelJobUid, kUid}, {kLabelRole, kRoleLearner}, {kLabelLearner, "1"}}},
          {"ownerReferences",
           {{{"apiVersion", kJobApiVersion},
             {"kind", kJobKind},
             {"name", "digits"},
             {"controller", true},
             {"uid", kUid}}}}}}}
        .dump();
  }
  bool IsQueued() {
    const auto key = queue_.Take();
    if (key) queue_.Done(*key);
    return key.has_value();
  }

  const kube::NamespacedName key_{"team-a", "digits"};
  const Action create_ = CreateLearner{.number = 1, .place = {"gpu-1"}};
  OwnStores stores_;
  JobTable table_{stores_.all()};
  SimEventLoop loop_;
  kube::WorkQueue queue_{loop_, [] {}};
  kube::ScriptedTransport server_;
  kube::KubeClient client_{server_, kube::Config{.server = "https://a"}};
  const ActionRunner runner_{client_, PodDefaults{.gpu_resource = "nvidia.com/gpu"}, MasterKeys{},
                             [this] { return loop_.Now(); }};
  int webhook_calls_ = 0;
  std::vector<BatchResult> results_;
  std::unique_ptr<BatchDispatcher> dispatcher_ = std::make_unique<BatchDispatcher>(
      BatchDispatcherParts{.loop = loop_,
                           .table = table_,
                           .queue = queue_,
                           .runner = runner_,
                           .api_calls = [this](auto task) { loop_.Post(std::move(task)); },
                           .pod_making_calls =
                               [this](auto task) {
                                 ++webhook_calls_;
                                 loop_.Post(std::move(task));
                               }},
      BatchDispatcherOptions{.first_conflict_delay = milliseconds(200),
                             .now = [this] { return Now(); },
                             .on_result = [this](const BatchOrder&, const BatchResult& result,
                                                 Duration) { results_.push_back(result); }});
};

TEST_F(BatchDispatcherTest, ActionsInFlightCountAsDoneAndTheJobIsRequeued) {
  Answer(HttpMethod::kPost, kCreate, 201, PodJson(1));
  Dispatch({create_});
  EXPECT_EQ(View().learners.size(), 1u);
  queue_.Add(key_);
  EXPECT_FALSE(IsQueued()) << "one batch at a time";
  loop_.RunFor(milliseconds(1));
  EXPECT_EQ(View().learners.size(), 1u);
  EXPECT_TRUE(IsQueued());
  EXPECT_EQ(results_.size(), 1u);
  EXPECT_FALSE(dispatcher_->RestsOf(kUid, Now()).all);
  EXPECT_FALSE(dispatcher_->RestsOf(kUid, Now()).serving);
}

TEST_F(BatchDispatcherTest, CallsThatAwaitWebhooksHaveTheirOwnThreads) {
  Answer(HttpMethod::kPost, kCreate, 201, PodJson(1));
  Dispatch({create_});
  loop_.RunFor(milliseconds(1));
  EXPECT_EQ(webhook_calls_, 1);
  EXPECT_TRUE(IsQueued());
  Answer(HttpMethod::kDelete, kCreate, 200, "{}");
  Dispatch({DeletePod{.pod = "a"}});
  loop_.RunFor(milliseconds(1));
  EXPECT_EQ(webhook_calls_, 1);
}

TEST_F(BatchDispatcherTest, AJobRestsAfterAFailure) {
  Answer(HttpMethod::kDelete, kCreate, 503, "unwell");
  Dispatch({DeletePod{.pod = "a"}});
  loop_.RunFor(milliseconds(1));
  EXPECT_EQ(dispatcher_->RestsOf(kUid, Now()).all, At(1));
  EXPECT_FALSE(IsQueued());
  loop_.RunFor(seconds(1));
  EXPECT_FALSE(dispatcher_->RestsOf(kUid, Now()).all);
  EXPECT_TRUE(IsQueued());
}

TEST_F(BatchDispatcherTest, ARefusalOfLearnersHoldsUpNothingElseOfTheJob) {
  constexpr const char* kRefusal =
      R"({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"})";
  Answer(HttpMethod::kPost, kCreate, 403, kRefusal);
  Dispatch({create_});
  loop_.RunFor(milliseconds(1));
  EXPECT_FALSE(dispatcher_->RestsOf(kUid, Now()).all);
  const auto until = dispatcher_->RestsOf(kUid, Now()).serving;
  ASSERT_TRUE(until);
  EXPECT_GE(*until, At(5));
  EXPECT_TRUE(IsQueued()) << "there may be more to do for it";
  EXPECT_FALSE(View().soft_state.refusals.message.empty());

  Answer(HttpMethod::kDelete, std::string(kCreate) + "/a", 200, "{}");
  Dispatch({DeletePod{.pod = "a"}}, /*held_back=*/true);
  loop_.RunFor(milliseconds(1));
  EXPECT_EQ(dispatcher_->RestsOf(kUid, Now()).serving, until) << "that is no success for learners";
  EXPECT_FALSE(View().soft_state.refusals.message.empty());

  Answer(HttpMethod::kDelete, std::string(kCreate) + "/a", 200, "{}");
  Dispatch({DeletePod{.pod = "a"}});
  loop_.RunFor(milliseconds(1));
  EXPECT_FALSE(dispatcher_->RestsOf(kUid, Now()).serving) << "no learner waits any longer";
  EXPECT_TRUE(View().soft_state.refusals.message.empty());
}

TEST_F(BatchDispatcherTest, AQuotaThatIsFullForAMomentIsNoRefusal) {
  constexpr const char* kFull =
      R"({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "exceeded quota: q, )"
      R"(requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=8, limited: )"
      R"(requests.nvidia.com/gpu=8"})";
  for (int second = 0; second < 15; ++second) {
    Answer(HttpMethod::kPost, kCreate, 403, kFull);
    Dispatch({create_});
    loop_.RunFor(milliseconds(1));
    EXPECT_EQ(View().soft_state.refusals.message.empty(), second < 10) << second;
    loop_.RunFor(milliseconds(999));
  }
}

TEST_F(BatchDispatcherTest, AnUnknownOutcomeIsAskedForUntilItIsKnown) {
  Answer(HttpMethod::kPost, kCreate, 503, "unwell");
  Dispatch({create_, CreateLearner{.number = 2, .place = {"gpu-1"}}});
  loop_.RunFor(milliseconds(1));
  EXPECT_EQ(View().learners.size(), 1u) << "a pod with unknown outcome counts";
  const std::string pod = std::string(kCreate) + "/" + Name(1);
  Answer(HttpMethod::kGet, pod, 503, "unwell");
  loop_.RunFor(seconds(1));
  queue_.Add(key_);
  EXPECT_FALSE(IsQueued()) << "the job is not processed";
  Answer(HttpMethod::kGet, pod, 404,
         R"({"kind": "Status", "code": 404, "reason": "NotFound", "message": "none"})");
  loop_.RunFor(seconds(2));
  EXPECT_TRUE(server_.done());
  EXPECT_TRUE(View().learners.empty());
  EXPECT_TRUE(IsQueued());
  EXPECT_EQ(results_.size(), 3u);
}

TEST_F(BatchDispatcherTest, ADeletedJobIsNotTriedAgain) {
  Answer(HttpMethod::kPost, kCreate, 503, "unwell");
  Dispatch({create_});
  stores_.jobs.Erase(key_);
  dispatcher_->ForgetJob(kUid);
  EXPECT_EQ(dispatcher_->KeyOfJob(kUid), nullptr);
  loop_.RunFor(seconds(60));
  EXPECT_EQ(results_.size(), 1u);
  EXPECT_EQ(queue_.working(), 0u);
}

TEST_F(BatchDispatcherTest, AJobThatIsMadeAgainDoesNotWaitForWhatItsPredecessorWouldHaveAsked) {
  Answer(HttpMethod::kPost, kCreate, 503, "unwell");
  Dispatch({create_});
  loop_.RunFor(milliseconds(1));
  EXPECT_EQ(View().learners.size(), 1u) << "its outcome is unknown";
  stores_.jobs.Erase(key_);
  dispatcher_->ForgetJob(kUid);
  EXPECT_EQ(queue_.working(), 0u);

  api::ElasticTrainingJob again = AdmittedJob(1);
  again.meta.uid = "another";
  stores_.jobs.Put(
      {.meta = {.key = key_, .uid = "another", .resource_version = "9"}, .value = Shared(again)});
  queue_.Add(key_);
  EXPECT_TRUE(View().learners.empty());
  dispatcher_->AddJob("another", key_);
  EXPECT_TRUE(IsQueued());
  loop_.RunFor(seconds(60));
  EXPECT_EQ(results_.size(), 1u) << "nothing more is requested for the deleted job";
}

TEST_F(BatchDispatcherTest, ResultsThatComeAfterItAreDropped) {
  Answer(HttpMethod::kPost, kCreate, 201, PodJson(1));
  Dispatch({create_});
  dispatcher_.reset();
  loop_.RunFor(seconds(1));
  EXPECT_TRUE(results_.empty());
}

}  // namespace
}  // namespace pliant::controller
