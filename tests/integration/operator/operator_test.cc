#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "operator/api/time.h"
#include "operator/controller/actions/action_runner.h"
#include "tests/integration/api_server.h"
#include "tests/integration/operator/deaf_way.h"
#include "tests/integration/operator/operator_process.h"
#include "tests/integration/test_certificates.h"
#include "tests/kube/kinds.h"
#include "tests/unit/kube/temp_folder.h"

// The operator's program against a real API server and garbage collector. There are no kubelets:
// the test writes what they would.
namespace pliant {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::HasSubstr;

// Where an operator with this log serves its metrics; "" until it does.
std::string MetricsPortIn(const std::string& log_file) {
  const std::string log = ReadFile(log_file).value_or("");
  std::smatch found;
  const std::regex port(R"(operator listens.* metricsPort=(\d+))");
  return std::regex_search(log, found, port) ? found[1].str() : "";
}

class OperatorTest : public kube::ApiServerTest {
 protected:
  void SetUp() override {
    ApiServerTest::SetUp();
    if (HasFatalFailure()) return;
    InstallOwnKinds();
    if (HasFatalFailure()) return;
    for (int i = 0; i < 2; ++i) {
      nodes_.push_back(ns() + "-" + std::to_string(i));
      // The node label keeps the jobs of other tests away.
      const auto made = client().Create(
          kube::kNodes, {{"metadata", {{"name", nodes_.back()}, {"labels", {{"test", ns()}}}}}});
      ASSERT_TRUE(made) << made.error();
    }
    heart_ = std::jthread([this](const std::stop_token& stop) { KeepNodesReady(stop); });
    StartOperator();
  }

  void TearDown() override {
    operator_.reset();
    heart_ = {};
    for (const std::string& node : nodes_) std::ignore = client().Delete(kube::kNodes, {"", node});
    ApiServerTest::TearDown();
  }

  void StartOperator() { operator_.emplace(Arguments(std::getenv("PLIANT_TEST_KUBECONFIG"))); }

  // Uses the library that $PLIANT_TEST_TRANSPORT names, as the test itself does.
  std::vector<std::string> Arguments(const std::string& kubeconfig) const {
    const char* library = std::getenv("PLIANT_TEST_TRANSPORT");
    return {"--namespace=" + ns(),
            "--coordinator-image=pliant:1",
            "--metrics-address=127.0.0.1:0",
            "--probe-address=127.0.0.1:0",
            "--debug-port=0",
            "--timeline-port=0",
            "--job-network-policies",
            "--job-learner-egress=[]",
            R"(--job-metrics-from=[{"namespaceSelector": {}}])",
            std::string("--kubernetes-transport=") + (library == nullptr ? "cpprest" : library),
            "--kubeconfig=" + kubeconfig};
  }

  void Submit(const std::string& name, const json& changes = json::object()) {
    json job = {{"metadata", Meta(name)}, {"spec", json::parse(R"({
                  "elastic": {"maxLearners": 2}, "training": {"globalBatchSize": 256},
                  "checkpoint": {"volume": {"hostPath": {"path": "/data"}}},
                  "template": {"spec": {"containers": [{"name": "learner", "image": "x:1"}]}}})")}};
    job["spec"]["template"]["spec"]["nodeSelector"] = {{"test", ns()}};
    job.merge_patch(changes);
    const auto made = client().Create(controller::kJobs, job);
    ASSERT_TRUE(made) << made.error();
  }

  json Status(const std::string& name) {
    const auto job = client().Get(controller::kJobs, Key(name));
    return job ? job->value("status", json::object()) : json::object();
  }

  std::vector<json> Pods(const std::string& role) {
    const auto pods =
        client().List(kube::kPods, ns(), {.label_selector = "pliant.dev/role=" + role});
    return pods ? pods->items : std::vector<json>();
  }

  int OpenLearners() {
    return static_cast<int>(std::ranges::count_if(Pods("learner"), [](const json& pod) {
      return pod["spec"].value("schedulingGates", json::array()).empty();
    }));
  }

  // The spec of the operator's lease.
  json Lease() {
    const auto lease = client().Get(kube::kLeases, Key("pliant-operator"));
    return lease ? lease->value("spec", json::object()) : json::object();
  }

  // All objects that an operator writes, except events.
  json Everything() {
    json everything = {{"lease", Lease()}};
    for (const kube::ResourceType& type :
         {controller::kJobs, kube::kPods, kube::kServices, kube::kSecrets}) {
      const auto page = client().List(type, ns());
      everything[std::string(type.plural)] = page ? json(page->items) : json();
    }
    return everything;
  }

  void EndLearner(const std::string& pod, int exit_code, const json& last_words) {
    const json status = {
        {"phase", exit_code == 0 ? "Succeeded" : "Failed"},
        {"containerStatuses",
         json::array(
             {{{"name", "learner"},
               {"image", "x:1"},
               {"imageID", "x"},
               {"ready", false},
               {"restartCount", 0},
               {"state",
                {{"terminated", {{"exitCode", exit_code}, {"message", last_words.dump()}}}}}}})}};
    const auto patched =
        client().Patch(kube::kPods, Key(pod), {{"status", status}}, {.subresource = "status"});
    ASSERT_TRUE(patched) << patched.error();
  }

  std::optional<OperatorProcess> operator_;

 private:
  void KeepNodesReady(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    while (!stop.stop_requested()) {
      const std::string now = api::FormatTime(
          std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()));
      const json amount = {
          {"cpu", "64"}, {"memory", "64Gi"}, {"pods", "110"}, {"nvidia.com/gpu", "2"}};
      const json condition = {{"type", "Ready"},
                              {"status", "True"},
                              {"reason", "Test"},
                              {"message", "it is said to be"},
                              {"lastHeartbeatTime", now}};
      for (const std::string& node : nodes_) {
        std::ignore = client().Patch(kube::kNodes, {"", node},
                                     {{"status",
                                       {{"allocatable", amount},
                                        {"capacity", amount},
                                        {"conditions", json::array({condition})}}}},
                                     {.subresource = "status"});
      }
      std::unique_lock lock(mutex);
      stopped.wait_for(lock, stop, seconds(3), [] { return false; });
    }
  }

  std::vector<std::string> nodes_;
  std::jthread heart_;
};

TEST_F(OperatorTest, AJobFromItsAdmissionToItsDeletion) {
  Submit("one");
  ASSERT_TRUE(kube::WaitUntil([&] { return OpenLearners() == 2; }, seconds(60))) << Status("one");
  ASSERT_TRUE(kube::WaitUntil([&] { return Status("one").value("phase", "") == "Starting"; }));
  EXPECT_EQ(Status("one").at("/training/logicalShards"_json_pointer), 4);
  EXPECT_EQ(Status("one").at("coordinatorTerm"), 1);
  ASSERT_EQ(Pods("coordinator").size(), 1u);
  const auto secrets =
      client().List(kube::kSecrets, ns(), {.label_selector = "pliant.dev/job=one"});
  ASSERT_TRUE(secrets) << secrets.error();
  ASSERT_EQ(secrets->items.size(), 2u);
  EXPECT_EQ(secrets->items[0]["data"].size() + secrets->items[1]["data"].size(), 8u);
  const auto services = client().List(kube::kServices, ns());
  ASSERT_TRUE(services) << services.error();
  ASSERT_EQ(services->items.size(), 1u);
  EXPECT_EQ(services->items[0].at("/spec/selector/pliant.dev~1term"_json_pointer), "1");

  // The next leader continues where this one was killed.
  operator_->Kill();
  StartOperator();
  const std::string first = Pods("learner")[0]["metadata"]["name"];
  EndLearner(first, 1, {{"reason", "Failed"}, {"message", "no luck"}});
  ASSERT_TRUE(
      kube::WaitUntil([&] { return Status("one").value("restarts", 0) == 1; }, seconds(60)));
  ASSERT_TRUE(kube::WaitUntil([&] { return OpenLearners() == 3; }, seconds(60)))
      << "the failed pod is kept for its logs; the new one has a new number";
  EXPECT_EQ(Status("one").at("nextLearner"), 3);
  EXPECT_EQ(Status("one").at("coordinatorTerm"), 1);

  const std::string last = Pods("learner")[2]["metadata"]["name"];
  // A completion would count only if a coordinator confirmed it, and none runs here.
  EndLearner(last, 2, {{"reason", "Failed"}, {"message", "wrong input"}});
  ASSERT_TRUE(kube::WaitUntil([&] { return Status("one").value("phase", "") == "Failed"; }));
  EXPECT_EQ(Status("one").value("parametersSha256", ""), "");
  ASSERT_TRUE(kube::WaitUntil([&] { return Pods("coordinator").empty(); }));
  EXPECT_GE(Pods("learner").size(), 2u) << "pods that ended are kept for their logs";
  EXPECT_TRUE(kube::WaitUntil([&] {
    const auto left = client().List(kube::kServices, ns());
    return left && left->items.empty();
  })) << "a job that ended needs no Service";

  ASSERT_TRUE(client().Delete(controller::kJobs, Key("one")));
  ASSERT_TRUE(kube::WaitUntil(
      [&] {
        const auto left = client().List(kube::kSecrets, ns(), {.label_selector = "pliant.dev/job"});
        const auto services_left = client().List(kube::kServices, ns());
        return Pods("learner").empty() && left && left->items.empty() && services_left &&
               services_left->items.empty();
      },
      seconds(60)));
}

TEST_F(OperatorTest, ARefusedTemplateIsReportedByConditionAndEvent) {
  Submit("bad", json::parse(R"({"spec": {"template": {"spec": {"containers": [
      {"name": "learner", "image": "x:1", "volumeMounts": [{"name": "absent", "mountPath": "/x"}]}]}}}})"));
  ASSERT_TRUE(kube::WaitUntil(
      [&] { return Status("bad").value("reason", "").find("absent") != std::string::npos; },
      seconds(60)));
  ASSERT_TRUE(kube::WaitUntil([&] {
    const auto events = client().List(kube::kEvents, ns());
    return events && std::ranges::any_of(events->items, [](const json& event) {
             return event.value("reason", "") == "TemplateRefused" &&
                    event.value("type", "") == "Warning";
           });
  }));
  EXPECT_TRUE(Pods("learner").empty());
}

TEST_F(OperatorTest, AJobInANamespaceOfRestrictedPodsHasItsNetworkToItself) {
  const auto restricted = client().Patch(
      kube::kNamespaces, {"", ns()},
      {{"metadata", {{"labels", {{"pod-security.kubernetes.io/enforce", "restricted"}}}}}});
  ASSERT_TRUE(restricted) << restricted.error();

  Submit("careless");
  EXPECT_TRUE(kube::WaitUntil(
      [&] {
        return Status("careless").value("reason", "").find("PodSecurity") != std::string::npos;
      },
      seconds(60)))
      << Status("careless");

  Submit("careful", json::parse(R"({"spec": {
      "checkpoint": {"volume": {"hostPath": null, "persistentVolumeClaim": {"claimName": "checkpoints"}}},
      "template": {"spec": {
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "learner", "image": "x:1", "securityContext": {
          "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}]}}}})"));
  ASSERT_TRUE(kube::WaitUntil([&] { return OpenLearners() == 2; }, seconds(60)))
      << Status("careful");
  EXPECT_EQ(Pods("coordinator").size(), 1u);

  const auto policies = [&] {
    const auto found =
        client().List(kube::kNetworkPolicies, ns(), {.label_selector = "pliant.dev/job=careful"});
    return found ? found->items : std::vector<json>();
  };
  ASSERT_EQ(policies().size(), 2u);
  for (const json& policy : policies()) {
    EXPECT_EQ(policy.at("/spec/policyTypes"_json_pointer), json::parse(R"(["Ingress", "Egress"])"));
    EXPECT_EQ(policy.at("/spec/ingress"_json_pointer).size(), 2u) << policy;
  }

  // The next coordinator's policies overwrite manual changes.
  const std::string name = policies().at(0).at("metadata").at("name");
  ASSERT_TRUE(client().Patch(kube::kNetworkPolicies, Key(name),
                             {{"spec", {{"ingress", json::array({json::object()})}}}}));
  ASSERT_TRUE(client().Delete(kube::kPods, Key(Pods("coordinator").at(0)["metadata"]["name"])));
  EXPECT_TRUE(kube::WaitUntil(
      [&] { return policies().at(0).at("/spec/ingress"_json_pointer).size() == 2; }, seconds(60)));

  ASSERT_TRUE(client().Delete(controller::kJobs, Key("careful")));
  EXPECT_TRUE(kube::WaitUntil([&] { return policies().empty(); }, seconds(60)));
}

TEST_F(OperatorTest, HoldsJobsAndTheirPodsToWhatItsAdministratorSays) {
  operator_->Kill();
  const auto start_with = [this](const std::string& pod_template) {
    auto arguments = Arguments(std::getenv("PLIANT_TEST_KUBECONFIG"));
    arguments.push_back("--coordinator-pod-template=" + pod_template);
    arguments.push_back("--job-start-timeout-seconds=900");
    arguments.push_back("--job-ttl-seconds-after-finished=0");
    operator_.emplace(arguments);
  };
  start_with(R"({"spec": {"volumes": []}})");
  EXPECT_TRUE(kube::WaitUntil([&] { return operator_->HasEnded(); }))
      << "the template may not set volumes";

  start_with(R"({"metadata": {"labels": {"team": "platform"}}, "spec": {
      "nodeSelector": {"pool": "system"}, "tolerations": [{"operator": "Exists"}],
      "containers": [{"name": "coordinator", "resources": {"limits": {"cpu": "1"}}}]}})");
  ASSERT_TRUE(client().Create(controller::kGpuPools,
                              {{"apiVersion", "pliant.dev/v1alpha1"},
                               {"kind", "GpuPool"},
                               {"metadata", {{"name", "default"}}},
                               {"spec", {{"bounds", {{"minRuntimeSeconds", 600}}}}}}));
  Submit("long", json::parse(R"({"spec": {"resize": {"minRuntimeSeconds": 86400}}})"));
  ASSERT_TRUE(kube::WaitUntil([&] { return OpenLearners() == 2; }, seconds(60))) << Status("long");
  ASSERT_EQ(Pods("coordinator").size(), 1u);
  const json coordinator = Pods("coordinator").at(0);
  EXPECT_EQ(coordinator.at("/metadata/labels/team"_json_pointer), "platform");
  EXPECT_EQ(coordinator.at("/spec/nodeSelector/pool"_json_pointer), "system");
  EXPECT_EQ(coordinator.at("/spec/tolerations"_json_pointer).size(), 3u);
  EXPECT_EQ(coordinator.at("/spec/containers/0/resources/limits"_json_pointer),
            json::parse(R"({"cpu": "1", "memory": "256Mi"})"));

  const json conditions = Status("long").at("conditions");
  const auto limited = std::ranges::find_if(
      conditions, [](const json& condition) { return condition.at("type") == "Limited"; });
  ASSERT_NE(limited, conditions.end()) << conditions;
  EXPECT_THAT(limited->at("message").get<std::string>(), HasSubstr("counts as 600, not as 86400"));

  EndLearner(Pods("learner").at(0)["metadata"]["name"], 2,
             {{"reason", "Failed"}, {"message", "wrong input"}});
  EXPECT_TRUE(
      kube::WaitUntil([&] { return !client().Get(controller::kJobs, Key("long")); }, seconds(60)))
      << "the default ttlSecondsAfterFinished of 0 deletes the job";
  EXPECT_TRUE(client().Delete(controller::kGpuPools, {"", "default"}));
}

TEST_F(OperatorTest, StopsQuicklyAndLeavesTheLeaseToOthers) {
  // It has led for a while: it has renewed its lease.
  ASSERT_TRUE(kube::WaitUntil([&] {
    const json held = Lease();
    return held.value("renewTime", "") != held.value("acquireTime", "");
  }));
  EXPECT_EQ(operator_->Stop(seconds(3)), 0);
  const json released = Lease();
  ASSERT_TRUE(released.contains("renewTime")) << released;
  EXPECT_EQ(released.value("holderIdentity", ""), "");
}

// The standby replica serves metrics, too.
TEST_F(OperatorTest, ShowsItsMetricsToThoseWhoMayReadThem) {
  constexpr kube::ResourceType kAccounts{"", "v1", "serviceaccounts", "ServiceAccount"};
  constexpr kube::ResourceType kTokens{"", "v1", "serviceaccounts", "TokenRequest"};
  constexpr kube::ResourceType kRoles{"rbac.authorization.k8s.io", "v1", "clusterroles",
                                      "ClusterRole", false};
  constexpr kube::ResourceType kBindings{"rbac.authorization.k8s.io", "v1", "clusterrolebindings",
                                         "ClusterRoleBinding", false};
  const auto token_of = [&](const std::string& account) {
    std::ignore = client().Create(kAccounts, {{"metadata", Meta(account)}});
    const auto token = client().Create(kTokens,
                                       {{"apiVersion", "authentication.k8s.io/v1"},
                                        {"metadata", Meta(account)},
                                        {"spec", json::object()}},
                                       {.subresource = "token"});
    EXPECT_TRUE(token) << token.error();
    return token ? token->at("/status/token"_json_pointer).get<std::string>() : "";
  };
  const std::string reader = token_of("reader");
  const std::string stranger = token_of("stranger");
  // The role as in the chart; the administrator creates the binding.
  json role = json::parse(R"({"rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]})");
  json binding = json::parse(R"({
      "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"},
      "subjects": [{"kind": "ServiceAccount", "name": "reader"}]})");
  role["metadata"]["name"] = binding["metadata"]["name"] = binding["roleRef"]["name"] = ns();
  binding["subjects"][0]["namespace"] = ns();
  ASSERT_TRUE(client().Create(kRoles, role));
  ASSERT_TRUE(client().Create(kBindings, binding));

  const kube::TestAuthority authority;
  const auto certificate = authority.Issue("metrics", {"127.0.0.1"});
  const kube::TempFolder folder;
  folder.Write("tls.crt", certificate.certificate_pem);
  folder.Write("tls.key", certificate.key_pem);
  auto arguments = Arguments(std::getenv("PLIANT_TEST_KUBECONFIG"));
  arguments.insert(arguments.end(),
                   {"--metrics-authentication", "--metrics-tls-dir=" + folder.path()});
  const auto is_led = [&] { return !Lease().value("holderIdentity", "").empty(); };
  ASSERT_TRUE(kube::WaitUntil(is_led, seconds(30)));
  const std::string log = folder.path() + "/standby.log";
  const OperatorProcess standby(arguments, log);
  ASSERT_TRUE(kube::WaitUntil([&] { return !MetricsPortIn(log).empty(); }));

  const auto metrics = Connect({.server = "https://127.0.0.1:" + MetricsPortIn(log),
                                .certificate_authority = {.text = authority.pem()}});
  ASSERT_TRUE(metrics) << metrics.error();
  const auto get = [&](const std::string& token) {
    kube::HttpRequest request{.target = "/metrics"};
    if (!token.empty()) request.headers["Authorization"] = "Bearer " + token;
    return (*metrics)->Send(request);
  };
  ASSERT_TRUE(kube::WaitUntil([&] { return get("").has_value(); }));
  EXPECT_EQ(get("")->status, 401);
  EXPECT_EQ(get("guess")->status, 401);
  EXPECT_EQ(get(stranger)->status, 403);
  ASSERT_EQ(get(reader)->status, 200) << get(reader)->body;
  EXPECT_THAT(get(reader)->body,
              HasSubstr("leader_election_master_status{name=\"pliant-operator\"} 0"));

  std::ignore = client().Delete(kBindings, {"", ns()});
  std::ignore = client().Delete(kRoles, {"", ns()});
}

// A network partition at the worst moment: the leader receives an event and writes the reaction,
// but the write arrives when another replica has long been leading.
TEST_F(OperatorTest, LateWritesOfALeaderThatWasCutOffChangeNothing) {
  const std::string server = config().server;
  DeafWay way(std::stoi(server.substr(server.rfind(':') + 1)));
  const kube::TempFolder folder;
  const std::string kubeconfig = std::getenv("PLIANT_TEST_KUBECONFIG");
  std::stringstream read;
  read << std::ifstream(kubeconfig).rdbuf();
  std::string text = read.str();
  const std::size_t at = text.find(server);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, server.size(), "https://127.0.0.1:" + std::to_string(way.port()));
  operator_.emplace(Arguments(folder.Write("kubeconfig", text)));
  Submit("one");
  ASSERT_TRUE(kube::WaitUntil([&] { return OpenLearners() == 2; }, seconds(60))) << Status("one");
  const json before = Lease();
  OperatorProcess other(Arguments(kubeconfig));

  way.set_deaf(true);
  EndLearner(Pods("learner")[0]["metadata"]["name"], 1, {{"reason", "Failed"}});
  const auto other_leads = [&, leader = before.value("holderIdentity", "")] {
    const std::string holder = Lease().value("holderIdentity", "");
    return !holder.empty() && holder != leader;
  };
  ASSERT_TRUE(kube::WaitUntil(other_leads, seconds(60)));
  EXPECT_TRUE(operator_->HasEnded()) << "before its lease ran out";
  EXPECT_EQ(Lease().value("leaseTransitions", 0), before.value("leaseTransitions", 0) + 1);
  ASSERT_TRUE(kube::WaitUntil([&] { return OpenLearners() == 3; }, seconds(60))) << Status("one");
  EXPECT_EQ(Status("one").value("restarts", 0), 1);
  EXPECT_EQ(Status("one").value("nextLearner", 0), 3);

  // No operator is left after the requests of this one have been executed.
  other.Kill();
  std::this_thread::sleep_for(seconds(1));
  const json done = Everything();
  EXPECT_GT(way.bytes_held(), 0u) << "it has written";
  way.set_deaf(false);
  ASSERT_TRUE(kube::WaitUntil([&] { return way.bytes_held() == 0; }));
  std::this_thread::sleep_for(seconds(1));
  EXPECT_EQ(Everything(), done) << json::diff(done, Everything());
}

// The highest memory use of a process so far, in MiB.
double PeakMiB(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  while (status >> word) {
    double kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib / 1024;
  }
  return 0;
}

// Tenants' templates must not stay in the operator's memory. $PLIANT_LARGE_JOBS is the number of
// jobs; the default is 100.
TEST_F(OperatorTest, LargeTemplatesDoNotFillItsMemory) {
  const char* count = std::getenv("PLIANT_LARGE_JOBS");
  const int jobs = count == nullptr ? 100 : std::atoi(count);
  const json large = {{"elastic", {{"minLearners", 64}, {"maxLearners", 64}}},
                      {"training", {{"globalBatchSize", 1024}}},
                      {"template", {{"metadata", {{"annotations", {{"note", ""}}}}}}}};
  const double before = PeakMiB(operator_->pid());
  for (int i = 0; i < jobs; ++i) {
    json spec = large;
    // Each template differs, so that each is checked.
    spec["template"]["metadata"]["annotations"]["note"] =
        std::to_string(i) + std::string(200'000, 'n');
    json env = json::array();
    for (int j = 0; j < 200; ++j) {
      env.push_back({{"name", "SETTING_" + std::to_string(j)}, {"value", std::string(1000, 'v')}});
    }
    spec["template"]["spec"]["containers"] =
        json::array({{{"name", "learner"}, {"image", "x:1"}, {"env", std::move(env)}}});
    Submit("large-" + std::to_string(i), {{"spec", spec}});
  }
  const std::string last = "large-" + std::to_string(jobs - 1);
  const auto admitted = [&](const std::string& job) {
    return Status(job).contains("admittedTemplate");
  };
  ASSERT_TRUE(
      kube::WaitUntil([&] { return admitted(last) && admitted("large-0"); }, seconds(60 + jobs)))
      << Status(last);
  const double after_watch = PeakMiB(operator_->pid());
  // A new leader lists them all.
  EXPECT_EQ(operator_->Stop(seconds(10)), 0);
  StartOperator();
  Submit("one", {{"spec", {{"elastic", {{"maxLearners", 1}}}}}});
  ASSERT_TRUE(kube::WaitUntil([&] { return admitted("one"); }, seconds(90))) << Status("one");
  const double after_list = PeakMiB(operator_->pid());
  std::cout << "peak MiB: " << before << " without jobs, " << after_watch << " with " << jobs
            << " jobs of 400 KiB, " << after_list << " after listing them\n";
  const double limit = jobs > 100 ? 300 : 120;
  EXPECT_LT(after_watch, limit);
  EXPECT_LT(after_list, limit);
}

// Anybody may create pods that ask for GPUs and that no node may take. $PLIANT_FAT_PODS is their
// number; the default is 100.
TEST_F(OperatorTest, FatPendingPodsDoNotFillItsMemory) {
  const char* count = std::getenv("PLIANT_FAT_PODS");
  const int pods = count == nullptr ? 100 : std::atoi(count);
  const auto is_known = [&](const std::string& job) {
    return kube::WaitUntil([&] { return !Status(job).empty(); }, seconds(90));
  };
  const auto made = client().Create(controller::kGpuPools, {{"metadata", {{"name", "default"}}},
                                                            {"spec", {{"yieldToPending", true}}}});
  ASSERT_TRUE(made) << made.error();
  Submit("zero");
  ASSERT_TRUE(is_known("zero"));
  const double before = PeakMiB(operator_->pid());
  for (int pod = 0; pod < pods; ++pod) {
    const std::string name = "fat-" + std::to_string(pod);
    json terms = json::array();
    for (int term = 0; term < 8; ++term) {
      json values = json::array();
      for (int value = 0; value < 256; ++value) {
        const std::string text = std::to_string(pod) + "-" + std::to_string(256 * term + value);
        values.push_back(text + std::string(60 - text.size(), 'v'));
      }
      terms.push_back(
          {{"matchExpressions",
            json::array({{{"key", "zone"}, {"operator", "In"}, {"values", std::move(values)}}})}});
    }
    json spec = json::parse(R"({"containers": [{"name": "main", "image": "x:1", "resources":
                                {"limits": {"nvidia.com/gpu": "64"}}}]})");
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = {
        {"nodeSelectorTerms", std::move(terms)}};
    ASSERT_TRUE(client().Create(kube::kPods, {{"metadata", Meta(name)}, {"spec", spec}}));
    // As the scheduler writes it.
    const json status = {{"conditions", json::array({{{"type", "PodScheduled"},
                                                      {"status", "False"},
                                                      {"reason", "Unschedulable"}}})}};
    ASSERT_TRUE(
        client().Patch(kube::kPods, Key(name), {{"status", status}}, {.subresource = "status"}));
  }
  Submit("one");
  ASSERT_TRUE(is_known("one"));
  const double after_watch = PeakMiB(operator_->pid());
  // A new leader lists them all.
  EXPECT_EQ(operator_->Stop(seconds(10)), 0);
  StartOperator();
  Submit("two");
  ASSERT_TRUE(is_known("two"));
  const double after_list = PeakMiB(operator_->pid());
  std::cout << "peak MiB: " << before << " without pods, " << after_watch << " with " << pods
            << " pods of 2048 values, " << after_list << " after listing them\n";
  EXPECT_LT(after_watch - before, 150);
  EXPECT_LT(after_list - before, 150);
  std::ignore = client().Delete(controller::kGpuPools, {"", "default"});
}

}  // namespace
}  // namespace pliant
