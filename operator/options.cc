#include "operator/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "operator/controller/objects/coordinator_template.h"

namespace pliant {
namespace {

const CLI::Validator kJsonList(
    [](const std::string& text) {
      const auto list = nlohmann::json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
      return list.is_array() ? std::string() : "\"" + text + "\" is not a JSON list";
    },
    "JSON list");

const CLI::Validator kCoordinatorTemplate(
    [](const std::string& text) {
      const Status checked = controller::CheckCoordinatorTemplate(text);
      return checked ? std::string() : checked.error().message;
    },
    "JSON");

void AddSeconds(CLI::App& app, const std::string& name, std::chrono::seconds& value, int min,
                int max, const std::string& help) {
  app.add_option_function<int>(
         name, [&value](int seconds) { value = std::chrono::seconds(seconds); },
         Format("{}; by default {}", help, value.count()))
      ->check(CLI::Range(min, max));
}

// The bounds are those of the custom resource definition.
void AddJobSettings(CLI::App& app, api::JobSettings& jobs) {
  AddSeconds(app, "--job-start-timeout-seconds", jobs.start_timeout, 10, 86400,
             "startTimeoutSeconds of jobs that do not set it");
  app.add_option_function<std::int64_t>(
         "--job-ttl-seconds-after-finished",
         [&jobs](std::int64_t seconds) { jobs.ttl_after_finished = std::chrono::seconds(seconds); },
         "ttlSecondsAfterFinished of jobs that do not set it; by default finished jobs are kept")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{315'360'000}));
}

void AddReplay(CLI::App& app, replay::ReplayOptions& replay, std::string& output) {
  auto* const snapshot = app.add_option(
      "--replay", replay.snapshot_file,
      "Without a cluster: make the plan of this file (of /debug/snapshot; -: standard input) "
      "again, print it, and exit with 1 if it differs from the plan in the file");
  auto* const job = app.add_option(
      "--plan-dry-run", replay.job_file,
      "Print what would happen if the ElasticTrainingJob of this YAML file were submitted; needs "
      "--replay");
  app.add_option("--output", output, "Of --replay: text, or the plan as json")
      ->check(CLI::IsMember({"text", "json"}));
  for (auto* const option : {snapshot, job})
    option->check([](const std::string& file) {
      return file.empty() ? std::string("names no file") : std::string();
    });
}

// Tests of real processes start several operators on one machine, and do not wait for a lease of
// the usual time. An installation has no use for these.
void AddTestOptions(CLI::App& app, OperatorOptions& options) {
  constexpr const char* kGroup = "For tests";
  app.add_option("--debug-port", options.debug_port,
                 "Port of /debug/snapshot and /debug/explain, on loopback only; 0: any free port")
      ->group(kGroup);
  app.add_option("--lease-seconds", options.lease_seconds,
                 "Seconds that another replica waits for a silent leader before it takes over. A "
                 "leader that cannot renew the lease for two thirds of this time exits")
      ->check(CLI::Range(3, 3600))
      ->group(kGroup);
}

}  // namespace

OperatorOptions ParseOptionsOrExit(int argc, char** argv) {
  OperatorOptions options;
  std::string metrics_address = ":8080";
  std::string probe_address = ":8081";
  std::string format = "text";
  std::string level = "info";
  std::string transport = "cpprest";
  std::string node_requests = "placeholder-pods";
  std::string output = "text";
  CLI::App app{
      "Shares a cluster's GPUs among ElasticTrainingJobs and resizes them while they train.",
      "pliant-operator"};
  app.option_defaults()->always_capture_default();
  app.add_option(
      "--namespace", options.ns,
      "Namespace of the operator's lease and keys; by default that of its service account");
  app.add_option("--identity", options.identity,
                 "Name of this replica in the lease and in events; by default the host's name");
  app.add_option("--pod-uid", options.pod_uid,
                 "Uid of the pod --identity in which this replica runs, if it runs in one: its "
                 "placeholders are deleted with it");
  app.add_option("--coordinator-image", options.coordinator_image,
                 "Image of new jobs' coordinators, which holds pliant-coordinator; required except "
                 "with --replay");
  app.add_option("--coordinator-pull-secret", options.coordinator_pull_secrets,
                 "Secret in a job's namespace with which its coordinator's image is pulled; may be "
                 "repeated");
  app.add_option("--coordinator-pod-template", options.coordinator_template,
                 "Part of a PodTemplateSpec, as JSON, that is merged into coordinators' pods")
      ->check(kCoordinatorTemplate);
  app.add_option("--watch-namespace", options.watch_namespaces,
                 "Namespace whose jobs the operator manages; may be repeated. By default all "
                 "namespaces. If it is set, GPUs held by pods of other namespaces are not seen");
  app.add_option("--metrics-address", metrics_address, "Address of /metrics");
  auto* const authentication =
      app.add_flag("--metrics-authentication", options.metrics_authentication,
                   "Serve /metrics over TLS, and only to clients whose bearer token may get that "
                   "path (by TokenReview and SubjectAccessReview)");
  app.add_option("--metrics-tls-dir", options.metrics_tls_dir,
                 "Folder with tls.crt and tls.key for --metrics-authentication; by default a "
                 "certificate is created at each start")
      ->needs(authentication);
  app.add_option("--probe-address", probe_address, "Address of /healthz and /readyz");
  app.add_option("--timeline-port", options.timeline_port,
                 "Port of the timeline page, on loopback only; 0: nothing is recorded");
  app.add_option("--log-format", format)->check(CLI::IsMember({"text", "json"}));
  app.add_option("--log-level", level)->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  app.add_option("--learner-priority-class", options.learner_priority_class,
                 "PriorityClass of learners; by default that of the job's template");
  app.add_option("--coordinator-priority-class", options.coordinator_priority_class,
                 "PriorityClass of coordinators; by default that of learners");
  app.add_option("--node-requests", node_requests,
                 "Objects that make a node autoscaler add nodes for pools with scaleUp: Minimum: "
                 "placeholder-pods, which every autoscaler finds, or provisioning-requests of "
                 "cluster-autoscaler")
      ->check(CLI::IsMember({"placeholder-pods", "provisioning-requests"}));
  app.add_option("--placeholder-priority-class", options.placeholder_priority_class,
                 "PriorityClass of placeholder pods; of a negative value, but of at least -10 for "
                 "cluster-autoscaler");
  app.add_option("--placeholder-pull-secret", options.placeholder_pull_secrets,
                 "Secret in the operator's namespace with which placeholders' image, which is "
                 "--coordinator-image, is pulled; may be repeated");
  AddJobSettings(app, options.jobs);
  app.add_flag("--job-network-policies", options.job_network.policies,
               "Create NetworkPolicies with each job: its pods may talk to each other, to the "
               "operator, and to what the next two options allow");
  app.add_option(
         "--job-metrics-from", options.job_network.metrics_from,
         "Peers that may read the metrics of jobs' pods: a JSON list of NetworkPolicy peers")
      ->check(kJsonList);
  app.add_option("--job-learner-egress", options.job_network.learner_egress,
                 "Destinations that learners may reach besides their job: a JSON list of "
                 "NetworkPolicy egress rules; by default all")
      ->check(kJsonList);
  app.add_flag("--nccl-allowed", options.job_network.nccl_allowed,
               "Let jobs with exchange: Auto send gradients over NCCL, which neither encrypts nor "
               "authenticates");
  app.add_flag("--scrape-annotations", options.scrape_annotations,
               "Annotate learners and coordinators with prometheus.io/scrape, port and path");
  app.add_option("--kubeconfig", options.kubeconfig,
                 "By default $KUBECONFIG, or the pod's service account");
  app.add_option("--kubernetes-transport", transport,
                 "HTTP library for the API server and coordinators: cpprest, or libcurl, which "
                 "also supports HTTP/2, IPv6 addresses and proxies")
      ->check(CLI::IsMember({"cpprest", "libcurl"}));
  app.add_option("--api-requests-per-second", options.api_requests_per_second,
                 "Maximum of requests per second to the API server, without watches and the lease; "
                 "a burst may have twice as many")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--crash-notes", options.crash_notes,
                 "File that outlives the process and in which it notes the job that it processes: "
                 "a job that crashed it twice is not processed again");
  app.add_option("--resource-name", options.gpu_resource, "Extended resource that counts as GPU");
  AddTestOptions(app, options);
  AddReplay(app, options.replay, output);
  try {
    app.parse(argc, argv);
    if (options.coordinator_image.empty() && !options.replay.is_asked()) {
      throw CLI::RequiredError("--coordinator-image");
    }
    const auto address = [](const char* option, const std::string& text) {
      auto parsed = ParseHostPort(text);
      if (!parsed) throw CLI::ValidationError(option, parsed.error().message);
      return *std::move(parsed);
    };
    options.metrics_address = address("--metrics-address", metrics_address);
    options.probe_address = address("--probe-address", probe_address);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  std::ranges::sort(options.watch_namespaces);
  const auto twice = std::ranges::unique(options.watch_namespaces);
  options.watch_namespaces.erase(twice.begin(), twice.end());
  options.log_format = format == "json" ? log::Format::kJson : log::Format::kText;
  options.log_level = log::ParseLevel(level);
  options.libcurl = transport == "libcurl";
  options.provisioning_requests = node_requests == "provisioning-requests";
  options.replay.json = output == "json";
  options.replay.jobs = options.jobs;
  return options;
}

}  // namespace pliant
