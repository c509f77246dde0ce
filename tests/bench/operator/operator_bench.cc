// Measures the operator at the size of a large cluster, against a real API server (named by
// $PLIANT_TEST_KUBECONFIG) and simulated nodes.
//
//   operator_bench [--json FILE] [--quick] [--churn-seconds N] [--cpu-seconds FILE]
//
// The FILE of --cpu-seconds has a line "NAME SECONDS" for each other process, such as etcd: its
// processor time so far. The result shows them in rows, because all processes share one machine,
// and so they explain what the operator waits for. The operator runs with its default options.

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <tuple>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "operator/controller/actions/action_runner.h"
#include "operator/controller/process/key_store.h"
#include "operator/kube/config.h"
#include "operator/kube/cpprest_transport.h"
#include "tests/bench/operator/fake_cluster.h"
#include "tests/bench/operator/processes.h"
#include "tests/bench/operator/rows.h"
#include "tests/integration/operator/operator_process.h"
#include "tests/kube/kinds.h"
#include "tests/kube/yaml_objects.h"

namespace pliant::bench {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr const char* kNamespace = "bench";
constexpr const char* kSystem = "bench-system";
constexpr int kThreads = 8;
constexpr int kElasticJobs = 8;
// An edit that has no visible effect within this time is counted with this time.
constexpr std::chrono::seconds kMaxEdit{20};

struct Sizes {
  int queues = 30;  // 5 cohorts of 6
  // Per queue: the number of jobs, the pause before each, and the GPUs that it needs, as in Kueue's
  // configs/baseline/generator.yaml.
  int small = 350;
  int medium = 100;
  int large = 50;
  int pods = 40'000;
  int edits = 40;
  std::chrono::seconds idle{60};
  int churned_before = 5'000;
  std::chrono::seconds churn{60};
};

Sizes QuickSizes() {
  return {.queues = 6,
          .small = 35,
          .medium = 10,
          .large = 5,
          .pods = 2'000,
          .edits = 10,
          .idle = 20s,
          .churned_before = 1'000,
          .churn = 20s};
}

bool WaitUntil(const std::function<bool()>& done, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

// Runs `act` for each number below `count`, on kThreads threads.
void ForEach(int count, const std::function<void(int)>& act) {
  std::atomic<int> next = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int at = next++; at < count; at = next++) act(at);
    });
  }
}

class Bench {
 public:
  Bench(kube::Config config, Sizes sizes, std::string cpu_seconds)
      : sizes_(sizes),
        config_(std::move(config)),
        cpu_seconds_(std::move(cpu_seconds)),
        transport_(*kube::CpprestTransport::Make(config_)),
        client_(*transport_, config_, {.requests_per_second = 0, .write_deadline = 30s}) {}

  std::vector<Row> Run() {
    Prepare();
    MeasureServer();
    Start(0);
    RunElasticJobs();
    MeasureAdmission();
    MeasureEdits();
    MeasureColdStart();
    MeasureFailover();
    MeasureIdle();
    MeasureChurn();
    for (auto& replica : replicas_) replica.reset();
    return rows_;
  }

 private:
  void Prepare() {
    for (const char* ns : {kNamespace, kSystem}) {
      std::ignore = client_.Create(kube::kNamespaces, {{"metadata", {{"name", ns}}}});
    }
    const auto definitions = kube::LoadDefinitions();
    for (const json& definition : definitions.value()) {
      std::ignore = kube::PutDefinition(client_, definition);
    }
    CHECK(WaitUntil([&] { return client_.List(controller::kJobs, kNamespace).has_value(); }, 30s),
          "the API server serves jobs");
    const auto keys = controller::LoadOrMakeKeys(
        client_, kSystem,
        std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()));
    CHECK(keys.has_value(), "there are keys");
    folder_ = std::filesystem::temp_directory_path() / Format("operator-bench-{}", getpid());
    cluster_.emplace(client_, *keys, folder_);
    cluster_->AddNodes("elastic", 4, 8);
    cluster_->AddNodes("queue", 2, 8);
    std::this_thread::sleep_for(2s);
  }

  // The limit that the API server itself sets, for comparison.
  void MeasureServer() {
    const int count = 1'000;
    const double began = Elapsed();
    ForEach(count, [&](int i) {
      std::ignore =
          client_.Create(kube::kConfigMaps,
                         {{"metadata", {{"namespace", kNamespace}, {"name", Format("c-{}", i)}}}});
    });
    Report({.name = "API server alone: objects created by 8 clients",
            .value = count / (Elapsed() - began),
            .unit = "1/s"},
           rows_);
  }

  void Start(int replica) {
    replicas_[replica].emplace(std::vector<std::string>{
        Format("--namespace={}", kSystem), "--coordinator-image=pliant:1",
        Format("--identity=replica-{}", replica),
        Format("--metrics-address=127.0.0.1:{}", kPort + replica), "--probe-address=127.0.0.1:0",
        "--debug-port=0", Format("--timeline-port={}", TimelinePort(replica)),
        "--log-level=warning",
        std::string("--kubeconfig=") + std::getenv("PLIANT_TEST_KUBECONFIG")});
  }

  void Submit(const std::string& name, const std::string& label, int least, int most) {
    json job = {{"metadata", {{"namespace", kNamespace}, {"name", name}}}, {"spec", json::parse(R"({
                  "training": {"globalBatchSize": 1024, "logicalShards": 64},
                  "checkpoint": {"volume": {"hostPath": {"path": "/data"}}},
                  "resize": {"cooldownSeconds": 0},
                  "template": {"spec": {"containers": [{"name": "learner", "image": "x:1"}]}}})")}};
    job["spec"]["elastic"] = {{"minLearners", least}, {"maxLearners", most}};
    job["spec"]["template"]["spec"]["nodeSelector"] = {{"bench", label}};
    const auto made = client_.Create(controller::kJobs, job);
    if (!made) log::Warning("job not made", {{"error", made.error().message}});
  }

  void RunElasticJobs() {
    for (int i = 0; i < kElasticJobs; ++i) Submit(Format("elastic-{}", i), "elastic", 1, 16);
    CHECK(WaitUntil([&] { return cluster_->running_learners() == 32; }, 120s),
          "the elastic jobs get all GPUs of their nodes");
    std::this_thread::sleep_for(3s);
  }

  void MeasureAdmission() {
    struct Due {
      double at;
      std::string name;
      int gpus;
    };
    std::vector<Due> jobs;
    for (int queue = 0; queue < sizes_.queues; ++queue) {
      const auto add = [&](const char* kind, int count, double pause, int gpus) {
        for (int i = 0; i < count; ++i) {
          jobs.push_back({(i + 1) * pause, Format("{}-{}-{}", kind, queue, i), gpus});
        }
      };
      add("small", sizes_.small, 0.1, 1);
      add("medium", sizes_.medium, 0.5, 5);
      add("large", sizes_.large, 1.2, 20);
    }
    std::ranges::sort(jobs, {}, &Due::at);
    const int before = cluster_->admitted();
    const CpuTimes cpu_before = ReadCpuTimes();
    const double began = Elapsed();
    std::jthread creator([&] {
      ForEach(static_cast<int>(jobs.size()), [&](int i) {
        const Due& job = jobs[static_cast<std::size_t>(i)];
        while (Elapsed() - began < job.at) std::this_thread::sleep_for(1ms);
        Submit(job.name, "queue", job.gpus, job.gpus);
      });
    });
    const auto count = static_cast<int>(jobs.size());
    const bool done = WaitUntil([&] { return cluster_->admitted() - before >= count; }, 240s);
    const double took = Elapsed() - began;
    // Kueue's value is for the same jobs under quota, each run to its end, too.
    Report({.name = Format("admission (template checked, status written) of {} jobs, Kueue's "
                           "baseline generator",
                           count),
            .value = (cluster_->admitted() - before) / took,
            .unit = "jobs/s",
            .rival = 42.7,
            .aim = 100,
            .more_is_better = true},
           rows_);
    if (!done) std::printf("  only %d were admitted in time\n", cluster_->admitted() - before);
    ReportCpuTimes("the admission", cpu_before);
  }

  void MeasureEdits() {
    cluster_->CountEvents(true);
    CHECK(WaitUntil([&] { return cluster_->counts_events(); }, 60s), "the events are listed");
    std::vector<double> to_plan;
    std::vector<double> to_coordinator;
    const Histogram plans_before = ReadHistogram(kPlans);
    const Histogram waits_before = ReadHistogram(kWaits);
    const Histogram patches_before = ReadHistogram(kPatches);
    const double rss_before = Resident(0);
    std::int64_t changes = 0;
    std::int64_t resized = 0;
    int without_effect = 0;
    Settle();
    const std::optional<double> writes_before = Writes();
    const CpuTimes cpu_before = ReadCpuTimes();
    const double began_all = Elapsed();
    const std::int64_t pod_writes_before = cluster_->pod_writes();
    const std::int64_t event_writes_before = cluster_->event_writes();
    for (int edit = 0; edit < sizes_.edits; ++edit) {
      Settle();
      const std::int64_t changes_before = cluster_->job_changes();
      const std::int64_t sizes_before = cluster_->size_changes();
      const double began = Elapsed();
      const bool up = edit % 2 == 0;
      const auto patched = client_.Patch(
          controller::kJobs, {kNamespace, Format("elastic-{}", edit / 2 % kElasticJobs)},
          {{"spec", {{"priority", up ? 10'000 : 5'000}}}});
      const bool planned =
          patched && WaitUntil([&] { return cluster_->last_size_change() > began; }, kMaxEdit);
      to_plan.push_back(1000 * (planned ? cluster_->last_size_change() - began
                                        : static_cast<double>(kMaxEdit.count())));
      const bool told =
          patched && WaitUntil([&] { return cluster_->last_plan() > began; }, kMaxEdit);
      to_coordinator.push_back(
          1000 * (told ? cluster_->last_plan() - began : static_cast<double>(kMaxEdit.count())));
      if (!planned || !told) ++without_effect;
      Settle();
      changes += cluster_->job_changes() - changes_before - (patched ? 1 : 0);
      resized += cluster_->size_changes() - sizes_before;
    }
    const double took = Elapsed() - began_all;
    const CpuTimes cpu_after = ReadCpuTimes();
    const std::optional<double> writes = Writes();
    const auto pod_writes = static_cast<double>(cluster_->pod_writes() - pod_writes_before);
    const auto event_writes = static_cast<double>(cluster_->event_writes() - event_writes_before);
    cluster_->CountEvents(false);
    const Histogram plans = ReadHistogram(kPlans);
    const Histogram waits = ReadHistogram(kWaits);
    const Histogram patches = ReadHistogram(kPatches);
    const auto report_parts = [&](const std::string& what, const Histogram& before,
                                  const Histogram& after) {
      for (const auto& [name, quantile] : {std::pair("p50", 0.5), std::pair("p99", 0.99)}) {
        const std::optional<double> seconds = QuantileOf(before, after, quantile);
        Report({.name = Format("{}, {}", what, name),
                .value = seconds ? std::optional(1000 * *seconds) : std::nullopt,
                .unit = "ms"},
               rows_);
      }
    };
    report_parts("a plan for all of them", plans_before, plans);
    report_parts("a job waits for its turn", waits_before, waits);
    report_parts("the API server takes a patch", patches_before, patches);
    // The planning thread gathers the metrics at most this often.
    std::this_thread::sleep_for(kMetricsLife);
    const double reading = Elapsed();
    std::ignore = Get(0, "/metrics");
    Report({.name = "the metrics of all jobs are read",
            .value = 1000 * (Elapsed() - reading),
            .unit = "ms"},
           rows_);
    Report({.name = "priority edit to new plan written, p50",
            .value = Quantile(to_plan, 0.5),
            .unit = "ms"},
           rows_);
    Report({.name = "priority edit to new plan written, p99",
            .value = Quantile(to_plan, 0.99),
            .unit = "ms",
            .rival = 3900,
            .aim = 100},
           rows_);
    Report({.name = "priority edit to first coordinator told, p99",
            .value = Quantile(to_coordinator, 0.99),
            .unit = "ms",
            .rival = 3900,
            .aim = 200},
           rows_);
    Report({.name = Format("priority edits without effect within {} s, each counted as such",
                           kMaxEdit.count()),
            .value = without_effect,
            .unit = "",
            .aim = 0},
           rows_);
    const auto per_resize = [resized](double sum) {
      return resized > 0 ? std::optional(sum / static_cast<double>(resized)) : std::nullopt;
    };
    Report({.name = "writes of a job's status per resize",
            .value = per_resize(static_cast<double>(changes)),
            .unit = "",
            .aim = 2},
           rows_);
    Report({.name = "all writes per resize: pods, events, and what changes nothing, too",
            .value = writes && writes_before ? per_resize(*writes - *writes_before) : std::nullopt,
            .unit = ""},
           rows_);
    Report({.name = "writes per resize besides those of pods and events",
            .value = writes && writes_before
                         ? per_resize(*writes - *writes_before - pod_writes - event_writes)
                         : std::nullopt,
            .unit = "",
            .aim = 2},
           rows_);
    Report({.name = "writes of events per resize", .value = per_resize(event_writes), .unit = ""},
           rows_);
    Report({.name = "growth of memory by these resizes",
            .value = Resident(0) - rss_before,
            .unit = "MiB"},
           rows_);
    ReportCpuTimes(Format("{:.0f} s of edits", took), cpu_before, cpu_after);
  }

  // Waits until no job has changed for a while.
  void Settle() {
    std::int64_t seen = -1;
    while (seen != cluster_->job_changes()) {
      seen = cluster_->job_changes();
      std::this_thread::sleep_for(1500ms);
    }
    MustRun();
  }

  // A replica that has ended would look as if it wrote nothing and needed no memory.
  void MustRun() {
    // A possible cause: on a stalled machine the lease could not be renewed in time.
    CHECK(!replicas_[0]->HasEnded(), "the operator still runs; what ended it is above");
  }

  void MeasureColdStart() {
    ForEach(sizes_.pods, [&](int i) {
      std::ignore = client_.Create(
          kube::kPods, {{"metadata", {{"namespace", kNamespace}, {"name", Format("other-{}", i)}}},
                        {"spec",
                         {{"nodeName", "bench-elsewhere"},
                          {"containers", json::array({{{"name", "c"}, {"image", "x:1"}}})}}}});
    });
    replicas_[0]->Kill();
    const std::int64_t pods_before = cluster_->pods_made_or_gone();
    const double began = Elapsed();
    Start(0);
    const CpuTimes cpu_before = ReadCpuTimes();
    CHECK(WaitUntil([&] { return Get(0, "/readyz").has_value(); }, 120s), "the operator is ready");
    const CpuTimes cpu_after = ReadCpuTimes();
    Report({.name = Format("cold start with all jobs and {} pods: synced", sizes_.pods),
            .value = Elapsed() - began,
            .unit = "s",
            .aim = 5},
           rows_);
    ReportCpuTimes("the cold start", cpu_before, cpu_after);
    std::this_thread::sleep_for(30s);
    MustRun();
    Report({.name = "pods created or deleted by mistake then",
            .value = static_cast<double>(cluster_->pods_made_or_gone() - pods_before),
            .unit = "",
            .aim = 0},
           rows_);
    Report({.name = "memory of the operator at that size",
            .value = Resident(0),
            .unit = "MiB",
            .aim = 200},
           rows_);
    Report({.name = "of that allocated and not freed", .value = HeapMiB(0), .unit = "MiB"}, rows_);
  }

  void MeasureFailover() {
    Start(1);
    CHECK(WaitUntil([&] { return Get(1, "/readyz").has_value(); }, 120s), "the second is ready");
    std::this_thread::sleep_for(5s);
    double began = Elapsed();
    replicas_[0]->Kill();
    Report({.name = "failover after a crash of the leader, until the other leads",
            .value = SecondsUntil(1, began, Leads),
            .unit = "s",
            .aim = 17},
           rows_);
    Report({.name = "failover after a crash of the leader, until the other has made a plan",
            .value = SecondsUntil(1, began, HasPlanned),
            .unit = "s",
            .aim = 17},
           rows_);
    Start(0);
    CHECK(WaitUntil([&] { return Get(0, "/readyz").has_value(); }, 120s), "the first is ready");
    std::this_thread::sleep_for(5s);
    began = Elapsed();
    std::ignore = replicas_[1]->Stop(10s);
    Report({.name = "failover after SIGTERM, likewise",
            .value = SecondsUntil(0, began, Leads),
            .unit = "s",
            .aim = 3},
           rows_);
    Report({.name = "failover after SIGTERM, until the other has made a plan",
            .value = SecondsUntil(0, began, HasPlanned),
            .unit = "s",
            .aim = 3},
           rows_);
  }

  static bool Leads(const std::string& metrics) {
    return metrics.find("leader_election_master_status{name=\"pliant-operator\"} 1") !=
           std::string::npos;
  }

  static bool HasPlanned(const std::string& metrics) {
    std::istringstream text(metrics);
    for (std::string line; std::getline(text, line);) {
      if (!line.starts_with("pliant_plan_duration_seconds_count")) continue;
      return std::stod(line.substr(line.rfind(' '))) > 0;
    }
    return false;
  }

  // Seconds from `began` until the replica's metrics satisfy `says`, up to one second late; nullopt
  // if they never do.
  std::optional<double> SecondsUntil(int replica, double began,
                                     bool (*says)(const std::string& metrics)) {
    const bool said = WaitUntil(
        [&] {
          const auto text = Get(replica, "/metrics");
          return text && says(*text);
        },
        60s);
    return said ? std::optional(Elapsed() - began) : std::nullopt;
  }

  // The coordinators of training jobs report no new step, so no progress is due.
  void MeasureIdle() {
    const std::string what = Format("writes in {} s in which nothing changes", sizes_.idle.count());
    std::this_thread::sleep_for(45s);  // delayed writes: progress may wait for 40 s
    ReportIdle(Format("{} while {} jobs train, besides the lease", what, kElasticJobs));
    for (int i = 0; i < kElasticJobs; ++i) cluster_->Complete(Format("elastic-{}", i));
    std::this_thread::sleep_for(30s);
    ReportIdle(what + ", besides the lease");
  }

  void ReportIdle(const std::string& name) {
    Settle();
    const std::optional<double> before = Writes();
    std::this_thread::sleep_for(sizes_.idle);
    const std::optional<double> after = Writes();
    Report({.name = name,
            .value = before && after ? std::optional(*after - *before) : std::nullopt,
            .unit = "",
            .aim = 0},
           rows_);
  }

  // Jobs and pods come and go, in the same numbers each time. Memory grows without a leak until
  // everything bounded is full (the record of a thousand events, the allocator's caches). The
  // objects before the measured ones fill it.
  void MeasureChurn() {
    std::int64_t objects = 0;
    while (objects < sizes_.churned_before) ChurnOnce(objects);
    const double end = Elapsed() + static_cast<double>(sizes_.churn.count());
    std::vector<std::pair<double, double>> resident;  // KiB, by the number of objects so far in
                                                      // thousands
    std::vector<std::pair<double, double>> heap;
    const CpuTimes cpu_before = ReadCpuTimes();
    double next_sample = Elapsed();
    while (Elapsed() < end || heap.size() < 2) {
      ChurnOnce(objects);
      if (Elapsed() < next_sample) continue;
      next_sample = Elapsed() + 5;
      MustRun();
      std::this_thread::sleep_for(1s);  // the last deletions are processed, too
      const double thousands = static_cast<double>(objects) / 1000;
      resident.emplace_back(thousands, 1024 * Resident(0));
      heap.emplace_back(thousands, 1024 * HeapMiB(0));
    }
    MustRun();
    const CpuTimes cpu_after = ReadCpuTimes();
    const std::string what =
        Format("{} jobs and pods that came and went, after {:.0f} before them",
               objects - std::llround(1000 * heap.front().first), 1000 * heap.front().first);
    Report({.name = "growth of what is allocated by " + what,
            .value = SlopeOf(heap),
            .unit = "KiB per 1,000",
            .aim = 20},
           rows_);
    Report({.name = "growth of memory by them",
            .value = SlopeOf(resident),
            .unit = "KiB per 1,000",
            .aim = 20},
           rows_);
    ReportCpuTimes("this coming and going", cpu_before, cpu_after);
  }

  void ChurnOnce(std::int64_t& objects) {
    constexpr int kCount = 100;
    const std::int64_t made = objects;
    const auto name = [made](int i) { return Format("churn-{}-{}", made, i); };
    ForEach(kCount, [&](int i) {
      Submit(name(i), "nowhere", 1, 1);
      std::ignore = client_.Create(
          kube::kPods, {{"metadata", {{"namespace", kNamespace}, {"name", name(i)}}},
                        {"spec",
                         {{"nodeName", "bench-queue-0000"},
                          {"containers", json::array({{{"name", "c"}, {"image", "x:1"}}})}}}});
    });
    ForEach(kCount, [&](int i) {
      std::ignore = client_.Delete(controller::kJobs, {kNamespace, name(i)});
      std::ignore = client_.Delete(kube::kPods, {kNamespace, name(i)},
                                   {.grace_period = std::chrono::seconds(0)});
    });
    objects += 2 * kCount;
  }

  // Processor time so far in seconds, by participating process.
  using CpuTimes = std::map<std::string, double>;

  CpuTimes ReadCpuTimes() const {
    CpuTimes times{{"the bench itself", CpuSeconds(getpid()).value_or(0)}};
    double& operators = times["the operator"];
    for (const auto& replica : replicas_) {
      if (replica) operators += CpuSeconds(replica->pid()).value_or(0);
    }
    times.merge(ReadCpuSeconds(cpu_seconds_));
    return times;
  }

  void ReportCpuTimes(const std::string& during, const CpuTimes& before) {
    ReportCpuTimes(during, before, ReadCpuTimes());
  }
  void ReportCpuTimes(const std::string& during, const CpuTimes& before, const CpuTimes& after) {
    for (const auto& [name, seconds] : after) {
      if (!before.contains(name)) continue;
      Report({.name = Format("processor time in {}: {}", during, name),
              .value = seconds - before.at(name),
              .unit = "s"},
             rows_);
    }
  }

  // The number of values up to each bound.
  using Histogram = std::map<double, double>;

  static constexpr std::string_view kPlans = "pliant_plan_duration_seconds_bucket{";
  static constexpr std::string_view kWaits = "workqueue_queue_duration_seconds_bucket{";
  static constexpr std::string_view kPatches =
      "rest_client_request_duration_seconds_bucket{verb=\"PATCH\",";

  Histogram ReadHistogram(std::string_view series) {
    Histogram counts;
    constexpr std::string_view kBound = "le=\"";
    std::istringstream text(PresentMetrics(0).value_or(""));
    for (std::string line; std::getline(text, line);) {
      if (!line.starts_with(series)) continue;
      const std::string bound = line.substr(line.find(kBound) + kBound.size());
      counts[bound.starts_with("+Inf") ? HUGE_VAL : std::stod(bound)] =
          std::stod(line.substr(line.rfind(' ')));
    }
    return counts;
  }

  // Estimates as Prometheus does: evenly within a bucket. nullopt if there were no values.
  static std::optional<double> QuantileOf(const Histogram& before, const Histogram& after,
                                          double quantile) {
    if (after.empty() || before.size() != after.size()) return std::nullopt;
    const double all = after.rbegin()->second - before.rbegin()->second;
    if (all <= 0) return std::nullopt;
    double from = 0;
    double counted = 0;
    for (const auto& [bound, count] : after) {
      const double now = count - before.at(bound);
      if (now >= quantile * all) {
        if (std::isinf(bound) || now == counted) return from;
        return from + (bound - from) * (quantile * all - counted) / (now - counted);
      }
      from = bound;
      counted = now;
    }
    return from;
  }

  std::optional<std::string> Get(int replica, const std::string& path) {
    const kube::Config config{.server = Format("http://127.0.0.1:{}", kPort + replica)};
    const auto transport = kube::CpprestTransport::Make(config);
    if (!transport) return std::nullopt;
    const auto answer = (*transport)->Send({.target = path, .deadline = 5s});
    if (!answer || answer->status != 200) return std::nullopt;
    return answer->body;
  }

  // Waits first, so that the metrics are not those gathered for an earlier request.
  std::optional<std::string> PresentMetrics(int replica) {
    std::this_thread::sleep_for(kMetricsLife);
    return Get(replica, "/metrics");
  }

  // Number of writes that the first replica has sent, by its metrics. Lease renewals are not among
  // them: only they use PUT.
  std::optional<double> Writes() {
    const std::optional<std::string> metrics = PresentMetrics(0);
    if (!metrics) return std::nullopt;
    double sum = 0;
    std::istringstream text(*metrics);
    for (std::string line; std::getline(text, line);) {
      if (!line.starts_with("rest_client_requests_total{")) continue;
      for (const char* method : {"method=\"POST\"", "method=\"PATCH\"", "method=\"DELETE\""}) {
        if (line.find(method) != std::string::npos) sum += std::stod(line.substr(line.rfind(' ')));
      }
    }
    return sum;
  }

  double Resident(int replica) const { return ResidentMiB(replicas_[replica]->pid()); }

  // Bytes allocated and not freed, as the operator reports them.
  double HeapMiB(int replica) {
    std::istringstream text(PresentMetrics(replica).value_or(""));
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("pliant_heap_bytes ")) {
        return std::stod(line.substr(line.rfind(' '))) / (1 << 20);
      }
    }
    return 0;
  }

  static constexpr int kPort = 18'790;
  static int TimelinePort(int replica) { return kPort + 10 + replica; }
  static constexpr std::chrono::milliseconds kMetricsLife{1'050};

  const Sizes sizes_;
  const kube::Config config_;
  const std::string cpu_seconds_;  // a file with the processor times of other processes
  const std::unique_ptr<kube::HttpTransport> transport_;
  kube::KubeClient client_;
  std::string folder_;
  std::optional<FakeCluster> cluster_;
  std::optional<OperatorProcess> replicas_[2];
  std::vector<Row> rows_;
};

int Run(int argc, char** argv) {
  Sizes sizes;
  std::string file;
  std::string cpu_seconds;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--quick") sizes = QuickSizes();
    if (argument == "--json" && i + 1 < argc) file = argv[++i];
    if (argument == "--churn-seconds" && i + 1 < argc) {
      sizes.churn = std::chrono::seconds(std::stoi(argv[++i]));
    }
    if (argument == "--cpu-seconds" && i + 1 < argc) cpu_seconds = argv[++i];
  }
  const char* kubeconfig = std::getenv("PLIANT_TEST_KUBECONFIG");
  const auto config = kube::LoadKubeconfig(kubeconfig == nullptr ? "" : kubeconfig);
  if (!config) {
    std::cerr << "PLIANT_TEST_KUBECONFIG: " << config.error().message << "\n";
    return 1;
  }
  Bench bench(*config, sizes, std::move(cpu_seconds));
  const std::vector<Row> rows = bench.Run();
  if (!file.empty()) Write(rows, file);
  std::fflush(stdout);
  std::_Exit(0);  // does not wait for the library's threads
}

}  // namespace
}  // namespace pliant::bench

int main(int argc, char** argv) {
  pliant::log::Configure(pliant::log::Format::kText, pliant::log::Level::kWarning);
  return pliant::bench::Run(argc, argv);
}
