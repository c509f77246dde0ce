#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <deque>
#include <functional>
#include <iostream>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/check.h"
#include "base/format.h"
#include "base/real_event_loop.h"
#include "operator/controller/model/names.h"
#include "operator/controller/model/queue_book.h"
#include "operator/history/observe.h"
#include "operator/web/servers.h"
#include "operator/web/timeline_feed.h"
#include "tests/bench/operator/rows.h"
#include "tests/unit/raw_client.h"

// Measures what the timeline costs the operator: processor time, memory, and the size of what its
// page loads. Times are processor time, so that they are comparable on a busy machine.
namespace pliant {
namespace {
using namespace std::chrono_literals;
using history::WallTime;

constexpr int kRunning = 1000;
constexpr int kJobs = 10'000;
constexpr int kNodes = 1000;
constexpr int kGpusOfNode = 8;
constexpr int kReaders = 4;
constexpr Duration kChangeEvery = 100ms;
constexpr std::uint16_t kPort = 18'820;
constexpr double kMiB = 1 << 20;

double CpuMs(clockid_t clock) {
  timespec used{};
  clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) / 1e6;
}

double HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

WallTime Now() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

// The stores of a cluster in which a tenth of the jobs run.
class Cluster {
 public:
  Cluster() {
    pools_.OnChange([this](const auto& change) { book_.SetPool(change.key.name, change.after); });
    for (int node = 0; node < kNodes; ++node) Put(nodes_, Node(node));
    for (int job = 0; job < kJobs; ++job) {
      Put(jobs_, Job(job, /*step=*/job));
      if (job < kRunning) SetPods(job, 1 + job % kGpusOfNode);
    }
    for (int queue = 0; queue < 20; ++queue) {
      api::TrainingQueue made;
      made.meta.name = made.meta.uid = Format("team-{:02}", queue);
      made.spec.guaranteed = 400;
      made.status.allocated = 225;
      Put(queues_, made);
    }
    jobs_.ReplaceAll(ItemsOf(jobs_));
    pods_.ReplaceAll(ItemsOf(pods_));
    nodes_.ReplaceAll(ItemsOf(nodes_));
    queues_.ReplaceAll(ItemsOf(queues_));
    pools_.ReplaceAll({});
  }

  // One write of a status in most cases, and the start or the end of a learner in the others.
  void Change() {
    const int job = static_cast<int>(++changes_ * 37 % kRunning);
    if (changes_ % 4 == 0) {
      SetPods(job, 1 + static_cast<int>(changes_ % kGpusOfNode));
    } else {
      Put(jobs_, Job(job, static_cast<int>(changes_)));
    }
  }

  std::vector<history::Observation> Observe(WallTime now) { return observer_.Take(now); }

 private:
  template <typename T>
  static kube::Store<T>::Item ItemOf(std::shared_ptr<const T> object) {
    return {.meta = {.key = {object->meta.name_space, object->meta.name},
                     .uid = object->meta.uid,
                     .resource_version = object->meta.resource_version},
            .value = std::move(object)};
  }
  template <typename T>
  static std::vector<typename kube::Store<T>::Item> ItemsOf(const kube::Store<T>& store) {
    std::vector<typename kube::Store<T>::Item> items;
    for (auto& object : store.All()) items.push_back(ItemOf(std::move(object)));
    return items;
  }
  template <typename T>
  void Put(kube::Store<T>& store, T object) {
    object.meta.resource_version = std::to_string(++version_);
    store.Put(ItemOf(std::make_shared<const T>(std::move(object))));
  }

  static api::ElasticTrainingJob Job(int number, int step) {
    api::ElasticTrainingJob job;
    job.meta.name_space = Format("team-{:02}", number % 20);
    job.meta.name = Format("language-model-{:05}", number);
    job.meta.uid = Format("5f0e3a52-9d7c-4c1b-8a51-{:012}", number);
    job.meta.created = Now();
    job.spec.queue = job.meta.name_space;
    job.spec.elastic = {.min_learners = 1, .max_learners = 16, .gpus_per_learner = 1};
    const bool runs = number < kRunning;
    job.status.phase = runs ? api::JobPhase::kRunning : api::JobPhase::kQueued;
    if (runs) {
      job.status.learners = 1 + number % kGpusOfNode;
      job.status.share.desired_learners = job.status.learners;
      job.status.reason = Format("{} learners: its part of the queue's {} GPUs, by its priority",
                                 job.status.learners, 225 + number % 7);
      job.status.progress.step = step;
      job.status.progress.total_steps = 100'000;
      job.status.progress.loss = 2.0 + 1.0 / (1 + step % 1009);
      job.status.progress.samples_per_second = 1234.5 + step % 317;
    } else {
      job.status.reason = Format("{} jobs of its queue are before it", number / 20);
    }
    return job;
  }

  static api::Node Node(int number) {
    api::Node node;
    node.meta.name = node.meta.uid = Format("gpu-node-{:04}", number);
    node.ready = true;
    node.allocatable.gpus = kGpusOfNode;
    return node;
  }

  // The job's learners are on the node of its number.
  void SetPods(int number, int count) {
    const api::ElasticTrainingJob job = Job(number, 0);
    for (int learner = 0; learner < kGpusOfNode; ++learner) {
      api::Pod pod;
      pod.meta.name_space = job.meta.name_space;
      pod.meta.name = controller::LearnerPodName(job.meta, learner);
      if (learner >= count) {
        pods_.Erase({pod.meta.name_space, pod.meta.name});
        continue;
      }
      pod.meta.uid = pod.meta.name;
      pod.meta.owner_uid = job.meta.uid;
      pod.meta.owner_name = job.meta.name;
      pod.meta.labels = {{std::string(controller::kLabelJobUid), job.meta.uid},
                         {std::string(controller::kLabelRole), "learner"},
                         {std::string(controller::kLabelLearner), std::to_string(learner)}};
      pod.requests.gpus = 1;
      pod.node_name = Format("gpu-node-{:04}", number % kNodes);
      pod.phase = api::PodPhase::kRunning;
      Put(pods_, pod);
    }
  }

  kube::Store<api::ElasticTrainingJob> jobs_;
  kube::Store<api::Pod> pods_;
  kube::Store<api::Node> nodes_;
  kube::Store<api::TrainingQueue> queues_;
  kube::Store<api::GpuPool> pools_;
  controller::QueueBook book_;
  history::Observer observer_{{jobs_, pods_, nodes_, queues_, pools_}, book_};
  std::int64_t version_ = 0;
  std::int64_t changes_ = 0;
};

std::size_t Compressed(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  const int result = compress(reinterpret_cast<Bytef*>(out.data()), &size,
                              reinterpret_cast<const Bytef*>(text.data()), text.size());
  CHECK(result == Z_OK, "zlib has enough room");
  return size;
}

void ReportFrame(const web::TimelineFeed& feed, std::vector<bench::Row>& rows) {
  std::vector<double> times;
  std::string body;
  for (int i = 0; i < 9; ++i) {
    const double began = CpuMs(CLOCK_THREAD_CPUTIME_ID);
    body = feed.Answer({}).body;
    times.push_back(CpuMs(CLOCK_THREAD_CPUTIME_ID) - began);
  }
  bench::Report({.name = "timeline: a frame of 10,000 jobs, of which 1,000 run, p50",
                 .value = bench::Quantile(times, 0.5),
                 .unit = "ms",
                 .aim = 50},
                rows);
  bench::Report(
      {.name = "timeline: its size", .value = static_cast<double>(body.size()) / 1e3, .unit = "kB"},
      rows);
  bench::Report({.name = "timeline: its size, compressed",
                 .value = static_cast<double>(Compressed(body)) / 1e3,
                 .unit = "kB",
                 .aim = 500},
                rows);
}

// Fills the timeline until it drops changes.
void ReportMemory(Cluster& cluster, std::vector<bench::Row>& rows) {
  const double before = HeapBytes();
  const auto feed = std::make_unique<web::TimelineFeed>("replica-0_1f");
  WallTime now = Now();
  feed->Take(now, cluster.Observe(now));
  CHECK(feed->timeline().refused() == 0, "the whole cluster is recorded");
  ReportFrame(*feed, rows);
  std::uint64_t changes = 0;
  const double began = CpuMs(CLOCK_THREAD_CPUTIME_ID);
  while (feed->timeline().dropped() < 30'000) {
    cluster.Change();
    now += 100ms;
    feed->Take(now, cluster.Observe(now));
    ++changes;
  }
  const double took = CpuMs(CLOCK_THREAD_CPUTIME_ID) - began;
  bench::Report({.name = "timeline: heap of a full timeline",
                 .value = (HeapBytes() - before) / kMiB,
                 .unit = "MiB",
                 .aim = 20},
                rows);
  bench::Report({.name = "timeline: its own count of its memory",
                 .value = static_cast<double>(feed->timeline().bytes()) / kMiB,
                 .unit = "MiB",
                 .aim = 12},
                rows);
  bench::Report(
      {.name = "timeline: time that a full timeline covers, at 10 changes a second",
       .value = std::chrono::duration<double>(now - *feed->timeline().begin()).count() / 60,
       .unit = "min",
       .more_is_better = true},
      rows);
  bench::Report({.name = "timeline: a change, from the store to the encoded event",
                 .value = took * 1e3 / static_cast<double>(changes),
                 .unit = "us"},
                rows);
}

// Readers in a process of their own, whose time does not count. It waits for a byte first.
class Readers {
 public:
  Readers() {
    CHECK(pipe(go_) == 0, "a pipe");
    child_ = fork();
    if (child_ != 0) return;
    char byte = 0;
    if (read(go_[0], &byte, 1) != 1) _exit(1);
    std::list<RawClient> clients;
    std::list<std::jthread> threads;
    for (int i = 0; i < kReaders; ++i) {
      RawClient& client = clients.emplace_back(kPort);
      client.Send("GET /timeline/stream?from=0 HTTP/1.1\r\nHost: localhost\r\n\r\n");
      threads.emplace_back([&client] {
        for (;;) client.ReadUntil("\n\n");
      });
      std::this_thread::sleep_for(200ms);
    }
    pause();
    _exit(0);
  }
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;
  ~Readers() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

  void Go() { CHECK(write(go_[1], "g", 1) == 1, "the readers wait"); }

 private:
  int go_[2] = {};
  pid_t child_ = 0;
};

// The processor time of the whole process, in percent of one core.
double ServedPercent(Cluster& cluster, Readers* readers, int seconds) {
  RealEventLoop control;
  web::ServersOptions options{.probes = {.host = "127.0.0.1"}, .metrics = {.host = "127.0.0.1"}};
  if (readers != nullptr) {
    options.timeline_port = kPort;
    options.replica = "replica-0_1f";
  }
  const auto servers =
      web::Servers::Start(control, options,
                          {.metrics = [] { return [] { return std::string(); }; },
                           .snapshot = [] { return [] { return std::string(); }; },
                           .explainer = [] { return web::Explainer(); },
                           .not_ready = [] { return std::string(); },
                           .observe = [&](WallTime now) { return cluster.Observe(now); },
                           .now = Now});
  CHECK(servers, "the port is free");
  if (readers != nullptr) readers->Go();
  std::function<void()> change = [&] {
    cluster.Change();
    control.PostAfter(kChangeEvery, change);
  };
  control.PostAfter(kChangeEvery, change);
  double began = 0;
  control.PostAfter(3s, [&] { began = CpuMs(CLOCK_PROCESS_CPUTIME_ID); });
  control.PostAfter(3s + std::chrono::seconds(seconds), [&] { control.Stop(); });
  control.Run();
  return (CpuMs(CLOCK_PROCESS_CPUTIME_ID) - began) / (10.0 * seconds);
}

int Run(int seconds, const std::string& json) {
  Readers readers;
  std::vector<bench::Row> rows;
  Cluster cluster;
  ReportMemory(cluster, rows);
  Cluster fresh;
  const double with = ServedPercent(fresh, &readers, seconds);
  const double without = ServedPercent(fresh, nullptr, seconds);
  bench::Report({.name = "timeline: of one core, with 10 changes a second and 4 readers",
                 .value = with - without,
                 .unit = "%",
                 .aim = 1},
                rows);
  bench::Report(
      {.name = "timeline: of one core, the same process without it", .value = without, .unit = "%"},
      rows);
  if (!json.empty()) bench::Write(rows, json);
  return 0;
}

}  // namespace
}  // namespace pliant

int main(int argc, char** argv) {
  CLI::App app{"Measures the timeline."};
  int seconds = 30;
  std::string json;
  app.add_option("--seconds", seconds, "Length of the measurement of processor time")
      ->check(CLI::Range(1, 3600));
  app.add_option("--json", json, "File for the rows");
  CLI11_PARSE(app, argc, argv);
  return pliant::Run(seconds, json);
}
