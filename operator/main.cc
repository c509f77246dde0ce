// The operator: a parts list. Decisions are made elsewhere.

#include <atomic>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <malloc.h>
#include <unistd.h>

#include "base/format.h"
#include "base/log.h"
#include "base/real_event_loop.h"
#include "base/self_signed.h"
#include "base/workers.h"
#include "operator/controller/process/clock_check.h"
#include "operator/controller/process/leadership.h"
#include "operator/controller/process/refused_namespaces.h"
#include "operator/controller/process/slewed_clock.h"
#include "operator/controller/rounds/crash_notes.h"
#include "operator/history/observe.h"
#include "operator/kube/client.h"
#include "operator/kube/config.h"
#include "operator/kube/event_recorder.h"
#include "operator/kube/informer.h"
#include "operator/kube/lease_elector.h"
#include "operator/kube/transports.h"
#include "operator/metrics/metrics.h"
#include "operator/options.h"
#include "operator/replay/debug_snapshot.h"
#include "operator/replay/explain.h"
#include "operator/replay/replay.h"
#include "operator/web/access_review.h"
#include "operator/web/servers.h"

namespace pliant {
namespace {

constexpr const char* kLease = "pliant-operator";
constexpr std::chrono::seconds kLastEvents{1};

// Makes glibc return freed memory. Lists of all pods and the text of all metrics allocate in
// bursts. By default glibc keeps what was freed, per thread, and after the first large blocks were
// freed it keeps large ones too.
void GiveBurstsBack() {
  constexpr int kLargeBlock = 8 << 20;  // larger than what a plan allocates: those pages are kept
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, kLargeBlock);
  mallopt(M_TRIM_THRESHOLD, kLargeBlock);
}

// Bytes allocated now: small blocks, and blocks with their own mapping.
std::size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// One clock for the whole process.
controller::WallTime Now() {
  static controller::SlewedClock clock;
  const auto system =
      std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  return clock.Now(system, MonotonicNow());
}

// Unique per process: a restarted process in the same pod must not look like the old one to the
// lease.
std::string ProcessIdentity(const std::string& name) {
  return Format("{}_{:08x}", name, std::random_device{}());
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "pliant-operator";
}

std::optional<controller::JobNetwork> NetworkOf(const OperatorOptions& options) {
  if (!options.job_network.policies) return std::nullopt;
  return controller::JobNetwork{.operator_namespace = options.ns,
                                .metrics_from = options.job_network.metrics_from,
                                .learner_egress = options.job_network.learner_egress};
}

controller::PlaceholderDefaults PlaceholdersOf(const OperatorOptions& options) {
  return {.ns = options.ns,
          .owner_name = options.identity,
          .owner_uid = options.pod_uid,
          .image = options.coordinator_image,
          .pull_secrets = options.placeholder_pull_secrets,
          .priority_class = options.placeholder_priority_class,
          .gpu_resource = options.gpu_resource};
}

// Clients that read metrics send a token, so authentication needs TLS.
Result<web::ServersOptions> ServersFor(const OperatorOptions& options, kube::KubeClient& reviews) {
  web::ServersOptions servers{.probes = options.probe_address,
                              .metrics = options.metrics_address,
                              .debug_port = options.debug_port,
                              .replica = ProcessIdentity(options.identity)};
  if (options.timeline_port != 0) servers.timeline_port = options.timeline_port;
  if (!options.metrics_authentication) return servers;
  servers.review_metrics = [&reviews](const std::string& token) {
    return web::ReviewAccess(reviews, token, "/metrics");
  };
  if (const std::filesystem::path folder = options.metrics_tls_dir; !folder.empty()) {
    servers.metrics_tls = TlsFiles{.certificate = folder / "tls.crt", .key = folder / "tls.key"};
  } else {
    ASSIGN_OR_RETURN(servers.metrics_tls,
                     MakeSelfSigned(HostName(), std::chrono::floor<std::chrono::seconds>(Now())));
  }
  return servers;
}

replay::DebugSnapshot LastPlan(const controller::PlanningLoop& planning) {
  return {.snapshot = planning.snapshot(), .policy = planning.policy(), .plan = planning.plan()};
}

int Run(OperatorOptions options) {
  const auto config = kube::LoadConfig(options.kubeconfig);
  if (!config) {
    log::Error("cannot reach the API server: check --kubeconfig or the service account",
               {{"error", config.error().message}});
    return 1;
  }
  if (options.ns.empty()) options.ns = config->default_namespace;
  if (options.identity.empty()) options.identity = HostName();

  const auto library =
      options.libcurl ? kube::TransportKind::kLibcurl : kube::TransportKind::kCpprest;
  auto transport = kube::MakeTransport(library, *config);
  auto lease_transport = kube::MakeTransport(library, *config);
  if (!transport || !lease_transport) {
    log::Error("cannot reach the API server: check --kubeconfig or the service account",
               {{"error", (!transport ? transport : lease_transport).error().message}});
    return 1;
  }

  RealEventLoop loop;
  metrics::Metrics metrics;
  int exit_code = 0;

  // The elector is asked before each write whether this process may write. It does not exist yet
  // when the client is created.
  std::atomic<const kube::LeaseElector*> elector_if_any{nullptr};
  controller::ClockCheck clock_check(Now);
  const auto on_request = [&metrics, &clock_check](const kube::RequestReport& report) {
    metrics.OnRequest(kube::ToString(report.method), report.code, report.took);
    clock_check.OnDate(report.date, report.took);
  };
  kube::ClientOptions lease_client_options = kube::LeaseElector::OptionsOfClient();
  lease_client_options.on_request = on_request;
  kube::KubeClient lease_client(**lease_transport, *config, std::move(lease_client_options));
  kube::KubeClient client(
      **transport, *config,
      {.requests_per_second = static_cast<double>(options.api_requests_per_second),
       .burst = 2 * options.api_requests_per_second,
       .may_write =
           [&elector_if_any] {
             const kube::LeaseElector* elector = elector_if_any;
             return elector != nullptr && elector->MayWrite();
           },
       .on_request = on_request});

  kube::EventRecorder recorder(client, {.instance = options.identity});
  kube::Informer<api::ElasticTrainingJob> jobs(
      loop,
      [settings = options.jobs](const nlohmann::json& o) { return api::DecodeJob(o, settings); });
  api::NeedsCache needs;
  kube::Informer<api::Pod> pods(loop,
                                [&needs, resource = options.gpu_resource](const nlohmann::json& o) {
                                  return api::DecodePod(o, resource, &needs);
                                });
  kube::Informer<api::Node> nodes(loop, [resource = options.gpu_resource](const nlohmann::json& o) {
    return api::DecodeNode(o, resource);
  });
  kube::Informer<api::Service> services(loop, api::DecodeService);
  kube::Informer<api::ResourceQuota> quotas(
      loop, [resource = options.gpu_resource](const nlohmann::json& o) {
        return api::DecodeResourceQuota(o, resource);
      });
  kube::Informer<api::TrainingQueue> queues(loop, api::DecodeTrainingQueue);
  kube::Informer<api::GpuPool> pools(loop, api::DecodeGpuPool);
  kube::Informer<api::Namespace> namespaces(loop, api::DecodeNamespace);
  const bool reads_queues = options.watch_namespaces.empty();
  if (!reads_queues) {
    queues.store().ExpectLists(0);
    pools.store().ExpectLists(0);
    namespaces.store().ExpectLists(0);
  }
  const controller::ClusterStores stores{.jobs = jobs.store(),
                                         .pods = pods.store(),
                                         .nodes = nodes.store(),
                                         .services = services.store(),
                                         .quotas = quotas.store(),
                                         .queues = queues.store(),
                                         .pools = pools.store(),
                                         .namespaces = namespaces.store()};

  const controller::RefusedNamespaces refused_namespaces(stores);
  controller::JobTable table(
      stores, reads_queues ? controller::QueueRights::kAll : controller::QueueRights::kNone,
      options.gpu_resource);
  std::unique_ptr<controller::CrashNotes> crash_notes;
  if (!options.crash_notes.empty()) {
    auto opened = controller::CrashNotes::Open(options.crash_notes);
    if (opened) {
      crash_notes = *std::move(opened);
    } else {
      log::Warning(
          "cannot open --crash-notes: a job that crashes this process will not be quarantined",
          {{"error", opened.error().message}});
    }
  }
  // Destroyed before what their tasks use: the leadership's parts live in this function.
  Workers api_workers("calls to the API server", 16);
  const controller::FairCallsOptions pod_making_calls;
  Workers pod_making_workers("calls that make pods", pod_making_calls.at_a_time);
  // The number of concurrent calls in CoordinatorMonitorOptions.
  Workers coordinator_workers("calls to coordinators", 12);
  controller::Leadership leadership(
      {.loop = loop,
       .table = table,
       .client = client,
       .api_calls = controller::ExecutorOf(api_workers),
       .pod_making_calls = controller::ExecutorOf(pod_making_workers),
       .coordinator_calls = controller::ExecutorOf(coordinator_workers),
       .metrics = metrics,
       .crash_notes = crash_notes.get()},
      {.ns = options.ns,
       .pods = {.gpu_resource = options.gpu_resource,
                .priority_class = options.learner_priority_class,
                .coordinator_priority_class = options.coordinator_priority_class,
                .coordinator_pull_secrets = options.coordinator_pull_secrets,
                .coordinator_template = options.coordinator_template,
                .network = NetworkOf(options),
                .scrape_annotations = options.scrape_annotations,
                .nccl_allowed = options.job_network.nccl_allowed,
                .jobs = options.jobs},
       .planning = {.lifecycle = {.coordinator_image = options.coordinator_image},
                    .node_requests = options.provisioning_requests
                                         ? controller::NodeRequestKind::kProvisioning
                                         : controller::NodeRequestKind::kPlaceholders,
                    .placeholders = PlaceholdersOf(options),
                    .pod_making_calls = pod_making_calls,
                    .now = Now,
                    .clock_agrees = [&clock_check] { return clock_check.Agrees(); },
                    .on_event =
                        [&recorder](const kube::ResourceType& type, const api::ObjectMeta& object,
                                    const controller::ObjectEvent& event) {
                          recorder.Record(
                              {.regarding = {.type = type,
                                             .meta = {.key = {object.name_space, object.name},
                                                      .uid = object.uid,
                                                      .resource_version = object.resource_version}},
                               .type = event.warning ? kube::EventType::kWarning
                                                     : kube::EventType::kNormal,
                               .reason = event.reason,
                               .action = "Plan",
                               .note = event.note});
                        }},
       .connect = controller::ConnectBy(kube::TransportsToMany(library))});

  // A client of its own: standbys review tokens too. A low rate suffices, because decisions are
  // cached.
  kube::KubeClient reviews(**transport, *config,
                           {.requests_per_second = 10,
                            .burst = 20,
                            .max_answer_bytes = 1 << 20,
                            .on_request = on_request});
  auto servers_options = ServersFor(options, reviews);
  if (!servers_options) {
    log::Error("cannot serve probes, metrics and debug view",
               {{"error", servers_options.error().message}});
    return 1;
  }
  std::optional<history::Observer> observer;
  if (options.timeline_port != 0) {
    observer.emplace(history::Stores{.jobs = jobs.store(),
                                     .pods = pods.store(),
                                     .nodes = nodes.store(),
                                     .queues = queues.store(),
                                     .pools = pools.store()},
                     table.book());
  }
  const auto servers = web::Servers::Start(
      loop, *std::move(servers_options),
      {.metrics =
           [&] {
             if (auto* planning = leadership.planning()) planning->Report();
             metrics.SetEventsDropped(recorder.dropped());
             metrics.SetNamespacesRefused(refused_namespaces.names().size());
             metrics.SetClockAhead(ToSeconds(clock_check.ahead()));
             metrics.SetHeap(HeapBytes());
             return [&metrics] { return metrics.Text(); };
           },
       .snapshot = [&leadership]() -> std::function<std::string()> {
         const auto* planning = leadership.planning();
         if (planning == nullptr) return [] { return std::string(); };
         return [seen = LastPlan(*planning)] { return replay::WriteSnapshot(seen); };
       },
       .explainer = [&leadership]() -> web::Explainer {
         const auto* planning = leadership.planning();
         if (planning == nullptr) return nullptr;
         return [seen = std::make_shared<const replay::DebugSnapshot>(LastPlan(*planning))](
                    std::string_view job) { return replay::Explain(*seen, job); };
       },
       .not_ready =
           [&stores] { return std::string(stores.synced() ? "" : "still listing objects"); },
       .observe = [&observer](history::WallTime now) { return observer->Take(now); },
       .now = Now});
  if (!servers) {
    log::Error("cannot serve probes, metrics and debug view", {{"error", servers.error().message}});
    return 1;
  }
  log::Info("operator listens", {{"probePort", (*servers)->probes_port()},
                                 {"metricsPort", (*servers)->metrics_port()},
                                 {"debugPort", (*servers)->debug_port()},
                                 {"timelinePort", (*servers)->timeline_port()}});

  const auto restarts_of = [&metrics](std::string kind) {
    return [&metrics, kind](std::string_view why) { metrics.OnReflectorRestart(kind, why); };
  };
  const std::vector<std::string>& watched = options.watch_namespaces;
  jobs.Start(client, controller::kJobs, {}, restarts_of("ElasticTrainingJob"), watched);
  pods.Start(client, kube::kPods, {}, restarts_of("Pod"), watched);
  nodes.Start(client, kube::kNodes, {}, restarts_of("Node"));
  services.Start(client, kube::kServices, {.label_selector = "app.kubernetes.io/managed-by=pliant"},
                 restarts_of("Service"), watched);

  quotas.Start(client, kube::kResourceQuotas, {}, restarts_of("ResourceQuota"), watched);
  if (reads_queues) {
    const kube::ReflectorOptions optional{.kind_is_optional = true};
    queues.Start(client, controller::kTrainingQueues, optional, restarts_of("TrainingQueue"));
    pools.Start(client, controller::kGpuPools, optional, restarts_of("GpuPool"));
    namespaces.Start(client, kube::kNamespaces, optional, restarts_of("Namespace"));
  }

  metrics.SetLeader(kLease, false);
  kube::LeaseElector elector(
      lease_client, loop,
      {.lease = {options.ns, kLease},
       .identity = ProcessIdentity(options.identity),
       .timing = kube::LeaseTiming::Of(std::chrono::seconds(options.lease_seconds)),
       .on_elected =
           [&](int transitions) {
             metrics.SetLeader(kLease, true);
             leadership.Begin(transitions);
           },
       .on_lost =
           [&] {
             log::Error("the lease is lost");
             metrics.SetLeader(kLease, false);
             exit_code = 1;
             loop.Stop();
           }});
  elector_if_any = &elector;

  boost::asio::signal_set signals(loop.context(), SIGTERM, SIGINT);
  signals.async_wait([&](const boost::system::error_code& error, int signal) {
    if (error) return;
    log::Info("stopping", {{"signal", signal}});
    loop.Stop();
  });
  log::Info("started", {{"identity", options.identity}, {"namespace", options.ns}});
  loop.Run();

  if (exit_code == 0) {
    recorder.Flush(kLastEvents);
    elector.Release();
  }
  log::Info("stopped", {{"exit_code", exit_code}});
  // Requests may still be in flight on the library's threads, and a leader that stops must exit
  // quickly: no cleanup is worth the wait.
  std::_Exit(exit_code);
}

}  // namespace
}  // namespace pliant

int main(int argc, char** argv) {
  pliant::GiveBurstsBack();       // before there are threads
  std::signal(SIGPIPE, SIG_IGN);  // a peer that has gone is an error of the write
  pliant::OperatorOptions options = pliant::ParseOptionsOrExit(argc, argv);
  pliant::log::Configure(options.log_format, options.log_level);
  if (options.replay.is_asked()) {
    return pliant::replay::Replay(options.replay, std::cin, std::cout, std::cerr);
  }
  return pliant::Run(std::move(options));
}
