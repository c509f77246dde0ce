#include "operator/controller/actions/action_runner.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/kube/config.h"
#include "tests/kube/scripted_transport.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using kube::HttpMethod;
using kube::HttpResponse;
using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kPodsPath = "/api/v1/namespaces/team-a/pods";

// An HTTP library may send a write twice (http_transport.h): the second one fails because the name
// is taken, namely by the object that the first one created.
class SentTwiceTest : public testing::Test {
 protected:
  struct SentCase {
    Action action;
    std::string pod;
  };

  // The server has the pod, owned by `owner_uid`.
  BatchResult Run(const SentCase& sent, const std::string& owner_uid) {
    server_.Answer(HttpMethod::kPost, kPodsPath, Taken("AlreadyExists"));
    Has(sent.pod, owner_uid);
    Batch batch{.job = job_};
    batch.actions.push_back(sent.action);
    return runner_.Run(batch);
  }

  static HttpResponse Taken(const std::string& reason) {
    return {.status = 409,
            .headers = {},
            .body = R"({"kind": "Status", "status": "Failure", "code": 409, "message": "taken",
                        "reason": ")" +
                    reason + R"("})"};
  }

  void Has(const std::string& name, const std::string& owner_uid) {
    json owner = {{"apiVersion", kJobApiVersion},
                  {"kind", kJobKind},
                  {"name", "digits"},
                  {"controller", true},
                  {"uid", owner_uid}};
    json metadata = {{"namespace", "team-a"},
                     {"name", name},
                     {"uid", "uid-of-the-first"},
                     {"resourceVersion", "7"},
                     {"ownerReferences", json::array()}};
    metadata["ownerReferences"].push_back(owner);
    json pod;
    pod["metadata"] = metadata;
    server_.Answer(HttpMethod::kGet, std::string(kPodsPath) + "/" + name,
                   HttpResponse{.status = 200, .headers = {}, .body = pod.dump()});
  }

  const api::ElasticTrainingJob job_ = AdmittedJob(1);
  const std::vector<SentCase> cases_ = {
      {CreateLearner{.number = 0, .place = {"gpu-1"}, .coordinator_ip = "10.0.0.1"},
       LearnerPodName(job_.meta, 0)},
      {CreateCoordinator{.term = 1}, CoordinatorPodName(job_.meta, 1)}};
  kube::ScriptedTransport server_;
  kube::KubeClient client_{server_, kube::Config{.server = "https://a"}};
  const ActionRunner runner_{client_, PodDefaults{.gpu_resource = "nvidia.com/gpu"}, MasterKeys{},
                             MonotonicNow};
};

TEST_F(SentTwiceTest, ThePodThatIsThereAlreadyIsTheOneThatWasMade) {
  for (const SentCase& sent : cases_) {
    const BatchResult result = Run(sent, kUid);
    ASSERT_FALSE(result.error) << result.error->message;
    ASSERT_EQ(result.created.size(), 1u);
    EXPECT_EQ(result.created[0].meta.name, sent.pod);
    EXPECT_EQ(result.created[0].meta.uid, "uid-of-the-first");
    EXPECT_TRUE(server_.done());
  }
}

TEST_F(SentTwiceTest, AnotherOnesPodIsNot) {
  for (const SentCase& sent : cases_) {
    const BatchResult result = Run(sent, "another");
    ASSERT_TRUE(result.error);
    EXPECT_EQ(result.error->code, ErrorCode::kInvalid);
    EXPECT_THAT(result.error->message, HasSubstr("does not belong to the job"));
    EXPECT_TRUE(result.created.empty());
  }
}

TEST_F(SentTwiceTest, APodIsLookedForByNameUidAndOwner) {
  struct Case {
    const char* uid;
    const char* owner;
    bool is_it;
  };
  const std::string name = LearnerPodName(job_.meta, 0);
  for (const Case& c : {Case{"", kUid, true}, Case{"uid-of-the-first", kUid, true},
                        Case{"uid-of-another", kUid, false}, Case{"", "another", false}}) {
    SCOPED_TRACE(testing::Message() << c.uid << " of " << c.owner);
    const LookForPod look{.pod = name, .uid = c.uid};
    Has(name, c.owner);
    const BatchResult result = runner_.Run({.job = job_, .actions = {look}});
    ASSERT_FALSE(result.error) << result.error->message;
    EXPECT_EQ(result.found.size(), c.is_it ? 1u : 0u);
    EXPECT_EQ(result.gone, c.is_it ? std::vector<LookForPod>{} : std::vector{look});
  }
}

TEST_F(SentTwiceTest, AnUnansweredLookDoesNotMarkAPodAsGone) {
  const std::string name = LearnerPodName(job_.meta, 0);
  server_.Answer(HttpMethod::kGet, std::string(kPodsPath) + "/" + name,
                 HttpResponse{.status = 503, .headers = {}, .body = "unwell"});
  const BatchResult result = runner_.Run({.job = job_, .actions = {LookForPod{.pod = name}}});
  EXPECT_TRUE(result.error);
  EXPECT_TRUE(result.gone.empty());
}

// After an answer that does not say whether the pod was created.
class UnknownOutcomeTest : public SentTwiceTest {
 protected:
  static HttpResponse No(int status) { return {.status = status, .headers = {}, .body = "no"}; }
  static HttpResponse Unwell() { return No(503); }
  static HttpResponse NotFound() {
    return {.status = 404,
            .headers = {},
            .body = R"({"kind": "Status", "code": 404, "reason": "NotFound", "message": "none"})"};
  }
  BatchResult Resolve(const Action& action) {
    return runner_.ResolveUnknownOutcome({.job = job_, .actions = {action}});
  }
};

TEST_F(UnknownOutcomeTest, ItIsUnknownOnlyWhereThePlanDependsOnIt) {
  server_.Answer(HttpMethod::kPost, kPodsPath, Unwell());
  EXPECT_TRUE(runner_.Run({.job = job_, .actions = {cases_[0].action}}).outcome_unknown);
  server_.Answer(HttpMethod::kDelete, kPodsPath, Unwell());
  const BatchResult deletion = runner_.Run({.job = job_, .actions = {DeletePod{.pod = "a"}}});
  EXPECT_TRUE(deletion.error);
  EXPECT_FALSE(deletion.outcome_unknown);
}

TEST_F(UnknownOutcomeTest, APodThatIsThereWasMade) {
  for (const SentCase& sent : cases_) {
    Has(sent.pod, kUid);
    const BatchResult result = Resolve(sent.action);
    EXPECT_FALSE(result.error);
    ASSERT_EQ(result.created.size(), 1u);
    EXPECT_EQ(result.created[0].meta.name, sent.pod);
  }
}

TEST_F(UnknownOutcomeTest, APodThatIsNotThereIsNotMadeAgain) {
  for (const SentCase& sent : cases_) {
    server_.Answer(HttpMethod::kGet, std::string(kPodsPath) + "/" + sent.pod, NotFound());
    const BatchResult result = Resolve(sent.action);
    EXPECT_FALSE(result.error);
    EXPECT_FALSE(result.outcome_unknown);
    EXPECT_TRUE(result.created.empty());
    EXPECT_TRUE(server_.done());
  }
}

TEST_F(UnknownOutcomeTest, ItStaysUnknownWhileNobodyAnswers) {
  const std::string path = std::string(kPodsPath) + "/" + cases_[0].pod;
  for (const int status : {503, 429, 401, 403, 400}) {
    server_.Answer(HttpMethod::kGet, path, No(status));
    EXPECT_TRUE(Resolve(cases_[0].action).outcome_unknown) << status;
  }
}

TEST_F(UnknownOutcomeTest, AnotherOnesPodIsAnAnswer) {
  Has(cases_[0].pod, "another");
  const BatchResult result = Resolve(cases_[0].action);
  EXPECT_TRUE(result.error);
  EXPECT_FALSE(result.outcome_unknown);
}

// A gate is opened on the version of the pod that was read, here 6. A webhook's error for the
// second try says nothing about the first: only the pod itself tells.
TEST_F(UnknownOutcomeTest, ThePodShowsWhetherItsGateWasOpened) {
  const std::string gated = R"("spec": {"schedulingGates": [{"name": "pliant.dev/gate"}]})";
  const auto pod = [](const std::string& version, const std::string& spec) {
    return HttpResponse{.status = 200,
                        .headers = {},
                        .body = R"({"metadata": {"namespace": "team-a", "name": "a", "uid": "u",
                                    "resourceVersion": ")" +
                                version + R"("}, )" + spec + "}"};
  };
  const struct {
    const char* name;
    HttpResponse patched;
    std::optional<HttpResponse> shown;  // nullopt: the pod is not read
    bool opened;
    bool unknown;
    std::optional<ErrorCode> error;
  } kCases[] = {
      {"it is open now", pod("7", R"("spec": {})"), {}, true, false, {}},
      {"another version", Taken("Conflict"), {}, false, false, ErrorCode::kConflict},
      {"the pod is deleted", NotFound(), {}, false, false, ErrorCode::kNotFound},
      {"unwell", Unwell(), {}, false, true, ErrorCode::kUnavailable},
      {"throttled", No(429), {}, false, true, ErrorCode::kThrottled},
      {"a webhook fails, opened before", No(500), pod("7", R"("spec": {})"), true, false, {}},
      {"a webhook fails, not opened", No(500), pod("6", gated), false, false, {}},
      {"a webhook fails, changed", No(500), pod("7", gated), false, false, ErrorCode::kConflict},
      {"a webhook fails, no look", No(500), Unwell(), false, true, ErrorCode::kUnavailable},
      {"refused, opened before", No(403), pod("7", R"("spec": {})"), true, false, {}},
      {"refused, not opened", No(403), pod("6", gated), false, false, ErrorCode::kDenied},
      {"refused, changed", No(422), pod("7", gated), false, false, ErrorCode::kConflict},
      {"refused, deleted", No(403), NotFound(), false, false, ErrorCode::kNotFound},
      {"reading is forbidden", No(403), No(403), false, true, ErrorCode::kDenied},
      {"the operator is not authenticated", No(401), No(401), false, true, ErrorCode::kDenied},
  };
  const OpenGate open{.pod = "a", .uid = "u", .resource_version = "6"};
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    server_.Answer(HttpMethod::kPatch, std::string(kPodsPath) + "/a", c.patched);
    if (c.shown) server_.Answer(HttpMethod::kGet, std::string(kPodsPath) + "/a", *c.shown);
    const BatchResult result = Resolve(open);
    EXPECT_EQ(result.opened.size(), c.opened ? 1u : 0u);
    EXPECT_EQ(result.outcome_unknown, c.unknown);
    EXPECT_EQ(result.error ? std::optional(result.error->code) : std::nullopt, c.error);
    EXPECT_TRUE(!c.opened || result.unanswered.empty());
    EXPECT_TRUE(server_.done());
  }
}

class TemplateCheckTest : public SentTwiceTest {
 protected:
  static HttpResponse Ok(const json& body) {
    return {.status = 200, .headers = {}, .body = body.dump()};
  }
  static json AdmittedPod(int gpus_of_sidecar) {
    return json::parse(R"({"metadata": {"name": "x"}, "spec": {
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "containers": [{"name": "learner", "resources": {"requests": {"nvidia.com/gpu": "1", "cpu": "4"}}},
                       {"name": "sidecar", "resources": {"requests": {"nvidia.com/gpu": ")" +
                       std::to_string(gpus_of_sidecar) + R"("}}}]}})");
  }
};

TEST_F(TemplateCheckTest, TheAdmittedPodShowsTheNeedsOfALearner) {
  server_.Answer(HttpMethod::kPost, kPodsPath, Ok(AdmittedPod(0)));
  const BatchResult result = runner_.Run({.job = job_, .actions = {CheckTemplate{}}});
  EXPECT_EQ(result.template_refusal, "");
  ASSERT_TRUE(result.admitted_needs);
  EXPECT_EQ(result.admitted_needs->resources,
            (planner::Resources{.gpus = 1, .cpu_millis = 4000, .memory_bytes = 0}));
  EXPECT_EQ(result.admitted_needs->tolerations.size(), 1u);
  EXPECT_THAT(server_.requests().at(0).target, HasSubstr("dryRun=All&fieldValidation=Strict"));
}

TEST_F(TemplateCheckTest, GpusOfOtherContainersAreRefused) {
  server_.Answer(HttpMethod::kPost, kPodsPath, Ok(AdmittedPod(1)));
  const BatchResult result = runner_.Run({.job = job_, .actions = {CheckTemplate{}}});
  EXPECT_EQ(result.template_refusal,
            "a learner's pod would take 2 of nvidia.com/gpu, and spec.elastic.gpusPerLearner is 1: "
            "only the container \"learner\" may ask for it");
  EXPECT_FALSE(result.admitted_needs);
}

TEST_F(TemplateCheckTest, ALargeTemplateIsFetchedOnceForAllLearners) {
  const json pod_template = {
      {"metadata", {{"annotations", {{"note", std::string(20'000, 'x')}}}}},
      {"spec", {{"containers", json::array({{{"name", "learner"}, {"image", "large:1"}}})}}}};
  api::ElasticTrainingJob job = job_;
  SetTemplate(pod_template.dump(), job.spec);
  ASSERT_EQ(job.spec.learner_template.json, "");
  json object = {{"metadata", {{"namespace", "team-a"}, {"name", "digits"}, {"uid", kUid}}},
                 {"spec",
                  {{"elastic", {{"minLearners", 1}, {"maxLearners", 8}}},
                   {"training", {{"globalBatchSize", 256}}},
                   {"checkpoint", {{"volume", json::parse(job.spec.checkpoint.volume_json)}}},
                   {"template", pod_template}}}};
  const std::string path = "/apis/pliant.dev/v1alpha1/namespaces/team-a/elastictrainingjobs/digits";
  const Batch batch{.job = job,
                    .actions = {CreateLearner{.number = 0, .place = {"gpu-1"}},
                                CreateLearner{.number = 1, .place = {"gpu-1"}}}};
  server_.Answer(HttpMethod::kGet, path, Ok(object));
  for (int i = 0; i < 2; ++i) {
    server_.Answer(HttpMethod::kPost, kPodsPath, Ok({{"metadata", {{"name", "x"}}}}));
  }
  BatchResult result = runner_.Run(batch);
  EXPECT_FALSE(result.error) << result.error->message;
  EXPECT_EQ(result.created.size(), 2u);
  for (const int request : {1, 2}) {
    EXPECT_THAT(server_.requests().at(request).body, HasSubstr("large:1"));
  }
  // The job was edited in the meantime.
  object["spec"]["template"]["spec"]["containers"][0]["image"] = "large:2";
  server_.Answer(HttpMethod::kGet, path, Ok(object));
  result = runner_.Run(batch);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, ErrorCode::kConflict);
  EXPECT_EQ(result.failed, 0u);
  EXPECT_TRUE(result.created.empty());
}

// Until the store shows the write, the job counts as in the server's answer.
TEST(ActionRunner, AppliesTheAdministratorsSettingsToTheServersAnswer) {
  kube::ScriptedTransport server;
  kube::KubeClient client(server, kube::Config{.server = "https://a"});
  const std::string path =
      "/apis/pliant.dev/v1alpha1/namespaces/team-a/elastictrainingjobs/digits/status";
  const json job = json::parse(R"({
      "metadata": {"namespace": "team-a", "name": "digits", "uid": "1a2b3c4d-0000"},
      "spec": {"elastic": {"maxLearners": 8}, "training": {"globalBatchSize": 256},
               "checkpoint": {"volume": {"hostPath": {"path": "/data"}}},
               "template": {"spec": {"containers": [{"name": "learner"}]}}}})");
  server.Answer(HttpMethod::kPatch, path,
                HttpResponse{.status = 200, .headers = {}, .body = job.dump()});
  PodDefaults defaults;
  defaults.jobs.start_timeout = std::chrono::seconds(900);
  const ActionRunner runner(client, defaults, MasterKeys{}, MonotonicNow);
  const BatchResult result = runner.Run({.job = AdmittedJob(1), .write_status = true});
  ASSERT_TRUE(result.job);
  EXPECT_EQ(result.job->spec.start_timeout, std::chrono::seconds(900));
}

// A webhook takes seconds for each pod: the rest of the job must not wait for all of them.
TEST_F(SentTwiceTest, LearnersThatWouldTakeLongAreLeftToTheNextDecision) {
  TimePoint now{};
  const ActionRunner slow(client_, PodDefaults{.gpu_resource = "nvidia.com/gpu"}, MasterKeys{},
                          [&] { return now += std::chrono::seconds(3); });
  Batch batch{.job = job_};
  for (int number = 0; number < 3; ++number) {
    batch.actions.emplace_back(
        CreateLearner{.number = number, .place = {"gpu-1"}, .coordinator_ip = "10.0.0.1"});
  }
  json pod = {{"metadata",
               {{"namespace", "team-a"},
                {"name", LearnerPodName(job_.meta, 0)},
                {"uid", "uid-of-it"},
                {"resourceVersion", "7"}}}};
  server_.Answer(HttpMethod::kPost, kPodsPath,
                 HttpResponse{.status = 201, .headers = {}, .body = pod.dump()});
  const BatchResult result = slow.Run(batch);
  EXPECT_FALSE(result.error);
  EXPECT_EQ(result.created.size(), 1u) << "one is always tried";
  EXPECT_TRUE(server_.done());
}

TEST(ActionRunner, WhenAllIsDone) {
  const struct {
    const char* name;
    BatchResult result;
    bool unanswered_before;
    bool all_done;
  } kCases[] = {
      {"no error", {}, false, true},
      {"an error", {.error = kube::KubeError(ErrorCode::kUnavailable, "unwell")}, false, false},
      {"after no answer it was not there", {}, true, false},
      {"after no answer it was there", {.created = {Learner(0, Life::kGated)}}, true, true},
      {"a gate that the server does not answer for", {.unanswered = "webhook"}, false, false},
      {"a gate that is open after all",
       {.opened = {Learner(0, Life::kStarting)}, .unanswered = "webhook"},
       false,
       true},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(IsAllDone(c.result, c.unanswered_before), c.all_done) << c.name;
  }
}

}  // namespace
}  // namespace pliant::controller
