#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/format.h"
#include "operator/controller/model/names.h"
#include "operator/controller/model/queue_book.h"
#include "operator/history/observe.h"
#include "operator/history/record.h"
#include "operator/history/timeline.h"

// The timeline shows what the stores held. rapidcheck prints the seed and the smallest failing
// case.
namespace pliant::history {
namespace {
using namespace std::chrono_literals;

int Draw(int from, int to_inclusive) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(from, to_inclusive + 1));
}
bool DrawOneIn(int times) { return Draw(1, times) == 1; }

constexpr WallTime kStart{std::chrono::milliseconds{1'800'000'000'000}};
constexpr const char* kResources[] = {"", "nvidia.com/mig-1g.10gb"};

api::Resources DrawGpus() {
  api::Resources gpus{.gpus = Draw(0, 4)};
  if (DrawOneIn(3)) gpus.others[kResources[1]] = Draw(1, 7);
  return gpus;
}

// The stores of a small cluster that changes at random, and the timeline that observes them.
class World {
 public:
  explicit World(std::size_t max_bytes) : timeline_("replica-1", max_bytes) {
    queues_.OnChange([this](const auto& change) { book_.SetQueue(change.key.name, change.after); });
    pools_.OnChange([this](const auto& change) { book_.SetPool(change.key.name, change.after); });
    // The lists of the informers arrive in any order.
    for (int steps = Draw(0, 10); steps > 0; --steps) ChangeSomething();
    Step();
    RC_ASSERT(!timeline_.begin());
    if (DrawOneIn(2)) pods_.SetBehind(false);
    List(jobs_);
    List(pods_);
    List(nodes_);
    List(queues_);
    Step();
    RC_ASSERT(!timeline_.begin());
    List(pools_);
    Step();
  }

  void Step() {
    for (const Observation& observation : observer_.Take(now_))
      timeline_.Append(now_, observation.subject, observation.values);
    was_.emplace_back(now_, StateOfStores());
  }

  void ChangeSomething() {
    now_ += std::chrono::milliseconds(DrawOneIn(4) ? Draw(0, 20'000) : Draw(0, 900));
    switch (Draw(0, 11)) {
      case 0:
        return PutOrErase(nodes_, DrawNode(), 6);
      case 1:
        return PutOrErase(pools_, DrawPool(), 3);
      case 2:
        return PutOrErase(queues_, DrawQueue(), 4);
      case 3:
      case 4:
        return PutOrErase(jobs_, DrawJob(), 8);
      case 5:
      case 6:
        return ReportStatistics();
      case 7:
        return pods_.Hide(DrawOneIn(3) ? std::set<std::string>{"a"} : std::set<std::string>{});
      default:
        return PutOrErase(pods_, DrawPod(), 4);
    }
  }

  const Timeline& timeline() const { return timeline_; }
  const std::vector<std::pair<WallTime, Frame>>& was() const { return was_; }

 private:
  template <typename T>
  void List(kube::Store<T>& store) {
    std::vector<typename kube::Store<T>::Item> items;
    for (const auto& object : store.All()) items.push_back(ItemOf(*object));
    store.ReplaceAll(std::move(items));
  }

  template <typename T>
  typename kube::Store<T>::Item ItemOf(const T& object) {
    return {.meta = {.key = {object.meta.name_space, object.meta.name},
                     .uid = object.meta.uid,
                     .resource_version = object.meta.resource_version},
            .value = std::make_shared<const T>(object)};
  }

  template <typename T>
  void PutOrErase(kube::Store<T>& store, T object, int erase_one_in) {
    const kube::NamespacedName key{object.meta.name_space, object.meta.name};
    if (DrawOneIn(erase_one_in)) return store.Erase(key);
    object.meta.resource_version = std::to_string(++version_);
    store.Put(ItemOf(object));
  }

  api::ElasticTrainingJob DrawJob() {
    api::ElasticTrainingJob job;
    job.meta.name_space = DrawOneIn(2) ? "a" : "b";
    job.meta.name = Format("job-{}", Draw(0, 2));
    // Sometimes it is another job of the same name.
    job.meta.uid = Format("{}-{}-{}", job.meta.name_space, job.meta.name, DrawOneIn(5) ? 1 : 0);
    job.meta.created = kStart;
    job.spec.elastic.gpus_per_learner = Draw(1, 2);
    job.status.phase = api::JobPhase(Draw(0, 9));
    job.status.learners = Draw(0, 3);
    job.status.reason = std::string(static_cast<std::size_t>(Draw(0, 400)), 'x');
    job.status.progress.step = Draw(0, 100);
    return job;
  }

  void ReportStatistics() {
    const auto jobs = jobs_.All();
    if (jobs.empty()) return;
    api::ElasticTrainingJob job = *jobs[std::size_t(Draw(0, int(jobs.size()) - 1))];
    job.status.progress.step = job.status.progress.step.value_or(0) + Draw(0, 3);
    job.status.progress.loss = Draw(0, 100) / 100.0;
    job.meta.resource_version = std::to_string(++version_);
    jobs_.Put(ItemOf(job));
  }

  api::Pod DrawPod() {
    api::Pod pod;
    pod.meta.name_space = DrawOneIn(2) ? "a" : "b";
    api::ObjectMeta job{.name_space = pod.meta.name_space, .name = Format("job-{}", Draw(0, 2))};
    job.uid = Format("{}-{}-{}", job.name_space, job.name, DrawOneIn(5) ? 1 : 0);
    const int number = Draw(0, 4);
    pod.meta.name = controller::LearnerPodName(job, number);
    pod.meta.uid = pod.meta.name;
    if (!DrawOneIn(3)) {
      pod.meta.owner_uid = job.uid;
      pod.meta.owner_name = job.name;
      pod.meta.labels = {{std::string(controller::kLabelJobUid), job.uid},
                         {std::string(controller::kLabelRole), "learner"},
                         {std::string(controller::kLabelLearner), std::to_string(number)}};
    }
    pod.requests = DrawGpus();
    if (!DrawOneIn(4)) pod.node_name = Format("node-{}", Draw(0, 2));
    pod.phase = api::PodPhase(DrawOneIn(4) ? Draw(2, 3) : Draw(0, 1));
    return pod;
  }

  api::Node DrawNode() {
    api::Node node;
    node.meta.name = Format("node-{}", Draw(0, 2));
    node.meta.uid = node.meta.name;
    node.meta.labels = {{"pool", Format("{}", Draw(0, 2))}};
    node.ready = !DrawOneIn(4);
    node.allocatable = DrawGpus();
    return node;
  }

  api::GpuPool DrawPool() {
    api::GpuPool pool;
    const int number = Draw(0, 1);
    pool.meta.name = pool.meta.uid = Format("pool-{}", number);
    pool.spec.node_selector.match_labels = {{"pool", Format("{}", Draw(0, 2))}};
    pool.spec.resource_name = kResources[Draw(0, 1)];
    pool.status.yielded_gpus = Draw(0, 2);
    return pool;
  }

  api::TrainingQueue DrawQueue() {
    api::TrainingQueue queue;
    queue.meta.name = queue.meta.uid = Format("queue-{}", Draw(0, 1));
    queue.spec.guaranteed = Draw(0, 4);
    queue.status.allocated = Draw(0, 4);
    return queue;
  }

  // The model: everything again from the beginning, without indexes and without what changed.
  Frame StateOfStores() const {
    Frame frame;
    for (const auto& job : jobs_.All())
      frame[{Kind::kJob, job->meta.name_space + "/" + job->meta.name, ""}] = RecordOf(*job);
    for (const auto& queue : queues_.All())
      frame[{Kind::kQueue, queue->meta.name, ""}] = RecordOf(*queue);
    for (const auto& pool : pools_.All())
      frame[{Kind::kPool, pool->meta.name, ""}] = RecordOf(*pool);
    std::map<std::string, std::string> resources;
    for (const auto& node : nodes_.All())
      resources[node->meta.name] = book_.ResourceOf(book_.PoolOf(node->meta.labels));
    std::map<std::string, std::int64_t> used;
    std::map<Subject, std::int64_t> held;
    for (const auto& pod : pods_.All()) {
      if (pod->node_name.empty() || pod->ended()) continue;
      const std::int64_t gpus = pod->requests.GpusOf(resources[pod->node_name]);
      used[pod->node_name] += gpus;
      for (const auto& job : jobs_.All()) {
        if (!controller::IsLearnerOf(*pod, job->meta)) continue;
        held[{Kind::kHeld, job->meta.name_space + "/" + job->meta.name, pod->node_name}] += gpus;
      }
    }
    for (const auto& [subject, gpus] : held)
      if (gpus > 0) frame[subject] = {{Field::kGpus, gpus}};
    for (const auto& node : nodes_.All()) {
      const std::string& name = node->meta.name;
      const std::int64_t gpus = node->allocatable.GpusOf(resources[name]);
      if (gpus == 0 && used[name] == 0) continue;
      frame[{Kind::kNode, name, ""}] =
          RecordOf(*node, book_.PoolOf(node->meta.labels), gpus, used[name]);
    }
    return frame;
  }

  kube::Store<api::ElasticTrainingJob> jobs_;
  kube::Store<api::Pod> pods_;
  kube::Store<api::Node> nodes_;
  kube::Store<api::TrainingQueue> queues_;
  kube::Store<api::GpuPool> pools_;
  controller::QueueBook book_;
  Observer observer_{{jobs_, pods_, nodes_, queues_, pools_}, book_};
  Timeline timeline_;
  WallTime now_ = kStart;
  int version_ = 0;
  std::vector<std::pair<WallTime, Frame>> was_;  // what the stores held since then
};

Frame WithoutStatistics(Frame frame) {
  for (auto& [subject, values] : frame)
    if (subject.kind == Kind::kJob) values = WithoutStatistics(std::move(values));
  return frame;
}

// The last moment of `was` that is not after `t`.
std::size_t IndexAt(const std::vector<std::pair<WallTime, Frame>>& was, WallTime t) {
  const auto after =
      std::ranges::upper_bound(was, t, {}, [](const auto& moment) { return moment.first; });
  return static_cast<std::size_t>(after - was.begin()) - 1;
}

void CheckEachMoment(const World& world) {
  const Timeline& timeline = world.timeline();
  for (const auto& [t, ignored] : world.was()) {
    if (t < *timeline.begin()) continue;
    const std::size_t index = IndexAt(world.was(), t);
    // Some changes at begin() itself are dropped, so the state just before it is not known.
    const Moment moment = timeline.At(t);
    RC_ASSERT(WithoutStatistics(moment.frame) == WithoutStatistics(world.was()[index].second));
  }
}

// The statistics shown are those of some moment of the last 31 seconds: one more than
// kStatisticsSeconds, because moments are within a second.
void CheckStatistics(const World& world) {
  for (const auto& [t, ignored] : world.was()) {
    if (t < *world.timeline().begin()) continue;
    const Moment moment = world.timeline().At(t);
    for (const auto& [subject, values] : moment.frame) {
      if (subject.kind != Kind::kJob) continue;
      bool found = false;
      for (std::size_t index = IndexAt(world.was(), t) + 1; index-- > 0 && !found;) {
        const Frame& frame = world.was()[index].second;
        found = frame.contains(subject) && frame.at(subject) == values;
        if (world.was()[index].first < t - 31s) break;
      }
      RC_ASSERT(found);
    }
  }
}

RC_GTEST_PROP(TimelineProperty, ShowsWhatTheStoresHeld, ()) {
  World world(Timeline::kMaxBytes);
  for (int steps = Draw(0, 60); steps > 0; --steps) {
    // Some observations see several changes at once.
    for (int changes = Draw(1, 3); changes > 0; --changes) world.ChangeSomething();
    world.Step();
  }
  RC_ASSERT(world.timeline().dropped() == 0);
  CheckEachMoment(world);
  CheckStatistics(world);
}

RC_GTEST_PROP(TimelineProperty, WithLittleMemoryShowsTheNewestMoments, ()) {
  constexpr std::size_t kBytes = 24 << 10;
  World world(kBytes);
  const auto drops = static_cast<std::uint64_t>(Draw(1, 100));
  for (int steps = 0; steps < 2000 && world.timeline().dropped() < drops; ++steps) {
    world.ChangeSomething();
    world.Step();
    RC_ASSERT(world.timeline().bytes() <= kBytes);
  }
  RC_ASSERT(world.timeline().dropped() >= drops);
  RC_ASSERT(world.timeline().refused() == 0);
  CheckEachMoment(world);
}

RC_GTEST_PROP(TimelineProperty, TheChangesSinceAMomentLeadToTheNextOnes, ()) {
  World world(static_cast<std::size_t>(Draw(24, 64)) << 10);
  std::vector<Cursor> cursors;
  for (int steps = Draw(10, 100); steps > 0; --steps) {
    world.ChangeSomething();
    world.Step();
    cursors.push_back(world.timeline().cursor());
  }
  const Timeline& timeline = world.timeline();
  const Moment last = timeline.At(world.was().back().first);
  RC_ASSERT(last.cursor == timeline.cursor());
  for (const auto& [t, ignored] : world.was()) {
    if (t < *timeline.begin()) continue;
    Moment moment = timeline.At(t);
    const auto changes = timeline.Since(moment.cursor);
    RC_ASSERT(changes);
    std::uint64_t sequence = moment.cursor.sequence;
    for (const Change& change : *changes) {
      RC_ASSERT(change.sequence == ++sequence);
      Apply(change, moment.frame);
    }
    RC_ASSERT(moment.frame == last.frame);
  }
  for (const Cursor& cursor : cursors) {
    const bool held = cursor.sequence >= timeline.dropped();
    RC_ASSERT(timeline.Since(cursor).has_value() == held);
    RC_ASSERT(!timeline.Since({"replica-2", cursor.sequence}));
  }
}

}  // namespace
}  // namespace pliant::history
