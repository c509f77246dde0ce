#include "tests/simulation/operator/seeds.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "tests/simulation/operator/objects.h"
#include "tests/simulation/operator/world.h"

namespace pliant::operator_sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kRound = 250ms;

// The timeouts that answer the faults.
constexpr Duration kLease = 15s;
constexpr Duration kSilentCoordinator = 30s;
constexpr Duration kQuotaLag = 10s;
constexpr Duration kStart = 120s;
constexpr Duration kUnreachableNode = 50s;

enum class End { kSucceeds, kFails, kSucceedsOrFails, kSuspended, kQueued, kGone };

// The rates of faults. Each seed has its own mixture: all faults at high rates would leave no time
// for training.
struct Mixture {
  double api = 0;  // probability per request
  double watch = 0;
  double forget = 0;  // this one and the rest: rates per second
  double kill_operator = 0;
  double kill_at_write = 0;
  double stop_operator = 0;
  double release = 0;
  double partition = 0;
  double freeze_watches = 0;
  double step_clock = 0;
  double cut_coordinators = 0;
  double crash_learner = 0;
  double crash_coordinator = 0;
  double delete_pod = 0;
  double remove_pod = 0;
  double power = 0;
  double remove_node = 0;
  double cordon = 0;
  double unhealthy = 0;
  double refuse_start = 0;
  double edit = 0;
  double suspend = 0;
  double delete_job = 0;
  double out_of_memory = 0;
  double refuse_pods = 0;
  double lose_images = 0;
  // Actions of another tenant, which has a job of its own.
  double forge_pod = 0;
  double spoil_template = 0;
  double flood = 0;
  // Deeds that leave something behind, in a part of the seeds.
  double orphan = 0;
  double hold = 0;
  double phantom = 0;
  double fat_pods = 0;
  double raise = 0;   // minLearners of a job, up to all GPUs
  double starve = 0;  // a job is refused what it lost, and must give back
  double quota = 0;   // a ResourceQuota of a namespace of jobs is made, changed or deleted
};

// The faults that the owner of that job may put into its coordinator.
const TrainingOptions kLiars[] = {{.has_no_coordinator = true},
                                  {.refuses_plans = true},
                                  {.flaps = true},
                                  {.ignores_stop_signal = true}};
constexpr const char* kLiar = "liar";
constexpr const char* kEvil = "evil";  // a namespace

// Templates that the CRD no longer accepts, but may have accepted once.
const char* const kSpoilt[] = {R"({"template": {"spec": {"nodeSelector": {"gpu": true}}}})",
                               R"({"template": {"spec": {"nodeSelector": null, "containers": [
        {"name": "learner", "image": "x", "resources": {"limits": {"memory": "64GB"}}}]}}})",
                               R"({"template": {"spec": {"nodeSelector": null, "containers": [
        {"name": "learner", "image": "x", "resources": {"requests": {"cpu": "0e400"}}}]}}})",
                               R"({"priority": "high"})",
                               R"({"priority": 7000, "template": {"spec": {"nodeSelector": null,
        "containers": [{"name": "learner", "image": "y"}]}}})"};

// Two sevenths of the seeds have jobs of the same names in a second namespace, which was added
// later. The other seeds, among them all kept ones, stay the same.
bool HasSecondNamespace(std::uint64_t seed) { return seed % 7 >= 5; }

// Three elevenths of the seeds have deeds that leave something behind, which were added later
// still.
bool HasLeftovers(std::uint64_t seed) { return seed % 11 == 0 || seed % 11 == 1 || seed % 11 == 5; }

class Story {
 public:
  explicit Story(std::uint64_t seed)
      : world_(seed),
        has_second_namespace_(HasSecondNamespace(seed)),
        has_leftovers_(HasLeftovers(seed)),
        length_(has_leftovers_ ? 4 : 1) {
    const int nodes = 1 + Pick(3);
    for (int i = 0; i < nodes; ++i) {
      const int gpus = (has_leftovers_ ? 3 : 1) + Pick(4);
      gpus_ += gpus;
      world_.cluster.AddNode(Format("node-{}", i), gpus);
    }
    mix_ = DrawMixture();
    has_liar_ = Pick(4) == 0;
    if (has_leftovers_) DrawLeftovers();
    world_.faults = {.cut = mix_.api,
                     .cut_done = mix_.api,
                     .throttle = mix_.api,
                     .server = mix_.api,
                     .watch = mix_.watch};
    world_.cluster.refuse_start = [this] { return Chance(world_.random, mix_.refuse_start); };
    world_.StartReplicas();
  }

  void Unsafe() {
    const int jobs = 1 + Pick(4);
    const int rounds = (60 + Pick(240)) * length_;
    for (int i = 0; i < rounds && !world_.faulty(); ++i) {
      if (static_cast<int>(wanted_.size()) < jobs && Pick(8) == 0) SubmitOne();
      Round();
      world_.loop.RunFor(kRound);
    }
    while (static_cast<int>(wanted_.size()) < jobs) SubmitOne();
  }

  void Live() {
    if (world_.faulty()) return Complain("something was broken");
    is_live_ = true;
    world_.Mend();
    world_.SetQuota({});
    world_.Delete(kLiar);
    // Pods of DaemonSets stay: they are in nobody's way.
    for (const auto& [path, pod] : world_.server.All(Format("/api/v1/namespaces/{}/pods", kEvil))) {
      if (!IsDaemon(*pod)) world_.server.Remove(path);
    }
    for (auto& [job, end] : wanted_) {
      if (end == End::kSuspended && Pick(2) == 0) {
        world_.Edit(job, {{"suspend", false}});
        end = End::kSucceeds;
      }
    }
    if (!world_.RunUntil([&] { return AllEnded(); }, 60min)) {
      return Complain("not every job comes to its end");
    }
    // From then on nothing happens.
    if (!world_.RunUntil([&] { return world_.PodsOf("", "learner").empty(); }, 5min)) {
      return Complain("some learners stay");
    }
    // A silent watch is detected within two minutes; orphans are looked at twice after it.
    world_.loop.RunFor(has_leftovers_ ? 5min : 2min);
    const int before = world_.writes_besides_lease();
    world_.loop.RunFor(2min);
    if (world_.writes_besides_lease() != before) {
      return Complain(
          Format("{} writes while nothing changed", world_.writes_besides_lease() - before));
    }
    if (!AllEnded()) Complain("an ended job did not stay as it was");
    CheckWhatIsLeft();
  }

  std::string Describe() const {
    return Format("{} jobs, {:.0f} s, {} writes, {} deaths of the operator, trace {:016x}",
                  wanted_.size(), ToSeconds(world_.loop.Now().time_since_epoch()), world_.writes(),
                  world_.deaths(), world_.digest());
  }

 private:
  int Pick(int count) { return static_cast<int>(world_.random() % static_cast<unsigned>(count)); }

  template <typename T>
  const T& One(const std::vector<T>& of) {
    return of[static_cast<std::size_t>(Pick(static_cast<int>(of.size())))];
  }

  // How long a fault lasts: in seeds with leftovers from half to four times the timeout that
  // answers it, so that some faults outlive it.
  Duration Lasting(Duration most, Duration timeout) {
    return has_leftovers_ ? Between(world_.random, timeout / 2, 4 * timeout)
                          : Between(world_.random, 1s, most);
  }

  Mixture DrawMixture() {
    // Among many faults few deeds of tenants come to their end: half of those seeds have no others.
    const double odds = has_leftovers_ && Pick(2) == 0 ? 0 : 0.35;
    const auto maybe = [&](double most) {
      return Chance(world_.random, odds) ? most * (1 + Pick(100)) / 100 : 0;
    };
    return {.api = maybe(0.05),
            .watch = maybe(0.2),
            .forget = maybe(0.3),
            .kill_operator = maybe(0.1),
            .kill_at_write = maybe(0.2),
            .stop_operator = maybe(0.05),
            .release = maybe(0.05),
            .partition = maybe(0.05),
            .freeze_watches = maybe(0.05),
            .step_clock = maybe(0.03),
            .cut_coordinators = maybe(0.05),
            .crash_learner = maybe(0.2),
            .crash_coordinator = maybe(0.1),
            .delete_pod = maybe(0.2),
            .remove_pod = maybe(0.1),
            .power = maybe(0.05),
            .remove_node = maybe(0.03),
            .cordon = maybe(0.1),
            .unhealthy = maybe(0.1),
            .refuse_start = maybe(0.3),
            .edit = maybe(0.5),
            .suspend = maybe(0.1),
            .delete_job = maybe(0.05),
            .out_of_memory = maybe(0.1),
            .refuse_pods = maybe(0.05),
            .lose_images = maybe(0.03),
            .forge_pod = maybe(0.2),
            .spoil_template = maybe(0.2),
            .flood = maybe(0.1)};
  }

  void DrawLeftovers() {
    const auto maybe = [&](double most) {
      return Chance(world_.random, 0.5) ? most * (1 + Pick(100)) / 100 : 0;
    };
    mix_.orphan = maybe(0.05);
    mix_.hold = maybe(0.05);
    mix_.phantom = maybe(0.1);
    mix_.fat_pods = maybe(0.05);
    mix_.raise = maybe(0.3);
    mix_.starve = maybe(0.2);
    mix_.quota = maybe(0.1);
    world_.server.quota_lag = Between(world_.random, 0s, kQuotaLag / 2);
  }

  void SubmitOne() {
    const std::string name = Format("job-{}", names_++);
    Submit(name);
    if (has_second_namespace_ && Pick(2) == 0) Submit(Format("{}/{}", kSecondNamespace, name));
  }

  void Submit(const std::string& job) {
    TrainingOptions training{.steps = (40 + Pick(200)) * length_,
                             .step_time = std::chrono::milliseconds(100 + Pick(400)),
                             .exit_code = {},
                             .ignores_stop_signal = Pick(6) == 0};
    End end = End::kSucceeds;
    const int most = (has_leftovers_ ? 3 : 1) + Pick(6);
    const int least = 1 + Pick(has_leftovers_ ? 3 : most);
    if (least > gpus_) {
      end = End::kQueued;
    } else if (Pick(8) == 0) {
      training.exit_code = Pick(2) == 0 ? 2 : 1;
      end = End::kFails;
    }
    Json spec = {{"priority", 1 + Pick(10'000)},
                 {"elastic", {{"minLearners", least}, {"maxLearners", most}}},
                 {"failurePolicy", {{"maxFailures", end == End::kFails ? 3 : 1000}}},
                 {"resize", {{"cooldownSeconds", Pick(3) == 0 ? 20 : 0}}}};
    if (end == End::kSucceeds && Pick(8) == 0) {
      spec["activeDeadlineSeconds"] = 10 + Pick(100);
      end = End::kSucceedsOrFails;
    } else if ((end == End::kSucceeds || end == End::kFails) && Pick(8) == 0) {
      spec["ttlSecondsAfterFinished"] = Pick(60);
      end = End::kGone;
    }
    wanted_[job] = end;
    world_.Submit(job, training, spec);
  }

  void Round() {
    const auto now = [&](double rate) { return Chance(world_.random, rate * ToSeconds(kRound)); };
    const auto replica = static_cast<std::size_t>(Pick(2));
    if (now(mix_.forget)) world_.server.ForgetHistory();
    if (now(mix_.kill_operator)) world_.Kill(replica);
    if (now(mix_.kill_at_write)) world_.KillAtWrite(1 + Pick(10), Pick(2) == 0);
    if (now(mix_.stop_operator)) world_.Stop(replica, Lasting(30s, kLease));
    if (now(mix_.release)) world_.Release(replica);
    if (now(mix_.partition)) world_.Partition(replica, Lasting(30s, kLease));
    // A watch that is silent for longer is opened again.
    if (now(mix_.freeze_watches)) world_.FreezeWatches(replica, Between(world_.random, 1s, 75s));
    if (now(mix_.step_clock)) {
      const int seconds = Pick(2 * 180) - 180;
      world_.StepClock(replica, std::chrono::seconds(seconds));
    }
    if (now(mix_.cut_coordinators)) {
      world_.coordinators_cut = true;
      world_.loop.PostAfter(Lasting(60s, kSilentCoordinator),
                            [this] { world_.coordinators_cut = false; });
    }
    if (now(mix_.refuse_pods)) RefusePods();
    if (now(mix_.lose_images)) {
      world_.cluster.has_images = false;
      world_.loop.PostAfter(Lasting(3min, kStart), [this] { world_.cluster.has_images = true; });
    }
    PodFaults(now);
    NodeFaults(now);
    UserDeeds(now);
    TenantDeeds(now);
    if (has_leftovers_) Leave(now);
  }

  template <typename Now>
  void TenantDeeds(const Now& now) {
    if (now(mix_.forge_pod)) ForgePod();
    if (!has_liar_) return;
    const std::string path = PathOf(kLiar);
    if (world_.server.Find(path) == nullptr) {
      world_.Submit(kLiar, kLiars[Pick(static_cast<int>(std::size(kLiars)))],
                    {{"elastic", {{"minLearners", 1}, {"maxLearners", 1 + Pick(4)}}}});
    }
    if (now(mix_.spoil_template)) {
      world_.server.Change(path, [&](Json& job) {
        job["spec"].merge_patch(Json::parse(kSpoilt[Pick(static_cast<int>(std::size(kSpoilt)))]));
        job["metadata"]["generation"] = job["metadata"].value("generation", 1) + 1;
      });
    }
    if (now(mix_.flood)) {
      for (int i = 0; i < 50; ++i) world_.Edit(kLiar, {{"suspend", Pick(2) == 0}});
    }
  }

  template <typename Now>
  void Leave(const Now& now) {
    if (now(mix_.phantom)) world_.CreateDaemonSet(kEvil, Format("phantom-{}", Pick(4)), 1000);
    if (now(mix_.fat_pods)) world_.CreateFatPods(kEvil, Format("fat-{}", Pick(3)), 5, 512);
    if (now(mix_.starve)) StarveOne();
    if (now(mix_.quota)) ChangeQuota();
    if (wanted_.empty()) return;
    const auto entry = std::next(wanted_.begin(), Pick(static_cast<int>(wanted_.size())));
    const std::string& job = entry->first;
    if (entry->second == End::kGone) return;
    if (now(mix_.raise)) Raise(job);
    if (now(mix_.orphan)) {
      world_.DeleteAndOrphan(job, Between(world_.random, 1ms, 3s));
      entry->second = End::kGone;
    } else if (now(mix_.hold)) {
      world_.Hold(job);
      world_.Delete(job);
      world_.loop.PostAfter(Between(world_.random, 1s, 8min), [this, job] { world_.LetGo(job); });
      entry->second = End::kGone;
    }
  }

  // spec.elastic of a job that exists.
  Json ElasticOf(const std::string& job) const {
    return world_.server.Find(PathOf(job))->at("spec").at("elastic");
  }

  void ChangeQuota() {
    world_.SetQuota(Pick(3) == 0 ? std::nullopt : std::optional(1 + Pick(gpus_)));
  }

  // Patches spec.elastic of a job, if it still exists and faults are allowed.
  void EditElastic(const std::string& job, const char* field, int value) {
    if (is_live_ || world_.server.Find(PathOf(job)) == nullptr) return;
    world_.Edit(job, {{"elastic", {{field, value}}}});
  }

  // A job that could be admitted still can be.
  void Raise(const std::string& job) {
    const Json elastic = ElasticOf(job);
    const int least = elastic.at("minLearners");
    const int most = std::min(elastic.at("maxLearners").get<int>(), gpus_);
    if (least >= most) return;
    EditElastic(job, "minLearners", least + 1 + Pick(most - least));
    world_.loop.PostAfter(Between(world_.random, 10s, 2min),
                          [this, job, least] { EditElastic(job, "minLearners", least); });
  }

  // A job that runs with two learners more than it needs loses one, is refused another one, and
  // must still give one back.
  void StarveOne() {
    for (const auto& [job, end] : wanted_) {
      if (world_.Phase(job) != "Running") continue;
      const Json elastic = ElasticOf(job);
      const auto learners = world_.PodsOf(job, "learner");
      const int kept = static_cast<int>(learners.size()) - 2;
      if (kept < elastic.at("minLearners").get<int>()) continue;
      RefusePods();
      world_.cluster.EndProgram(One(learners), 1, Json());
      const int most = elastic.at("maxLearners");
      world_.loop.PostAfter(Between(world_.random, 1s, 15s),
                            [this, job, kept] { EditElastic(job, "maxLearners", kept); });
      world_.loop.PostAfter(Between(world_.random, 30s, 1min),
                            [this, job, most] { EditElastic(job, "maxLearners", most); });
      return;
    }
  }

  void RefusePods() {
    if (!world_.refusal.empty()) return;
    world_.refusal = Pick(2) == 0 ? "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1"
                                  : "violates PodSecurity \"restricted:latest\"";
    world_.loop.PostAfter(Lasting(1min, kQuotaLag), [this] { world_.refusal.clear(); });
  }

  // A copy of another tenant's pod in the forger's own namespace, with arbitrary content.
  void ForgePod() {
    const auto pods = world_.PodsOf("", Pick(3) == 0 ? "coordinator" : "learner");
    if (pods.empty()) return;
    Json pod = *world_.server.Find(One(pods));
    pod["metadata"]["namespace"] = "evil";
    pod["metadata"].erase("uid");
    pod["metadata"].erase("deletionTimestamp");
    pod["spec"].erase("schedulingGates");
    for (Json& container : pod["spec"]["containers"]) container.erase("resources");
    const Json state =
        Pick(3) == 0
            ? Json{{"running", Json::object()}}
            : Json{{"terminated",
                    {{"exitCode", Pick(3)},
                     {"message", R"({"reason":"Completed","parametersSha256":"deadbeef"})"}}}};
    pod["status"] = {
        {"phase", Pick(2) == 0   ? "Succeeded"
                  : Pick(2) == 0 ? "Failed"
                                 : "Running"},
        {"podIP", "10.9.9.9"},
        {"containerStatuses",
         Json::array({{{"name", pod["spec"]["containers"][0]["name"]}, {"state", state}}})}};
    world_.server.Put(
        Format("/api/v1/namespaces/evil/pods/{}", pod["metadata"]["name"].get<std::string>()), pod);
  }

  template <typename Now>
  void PodFaults(const Now& now) {
    const auto with_one = [&](const char* role, const auto& act) {
      const auto pods = world_.PodsOf("", role);
      if (!pods.empty()) act(One(pods));
    };
    const char* either = Pick(3) == 0 ? "coordinator" : "learner";
    if (now(mix_.crash_learner)) {
      with_one("learner",
               [&](const std::string& pod) { world_.cluster.EndProgram(pod, 1, Json()); });
    }
    if (now(mix_.out_of_memory)) {
      with_one("learner", [&](const std::string& pod) {
        world_.cluster.EndProgram(pod, 137, Json(), "OOMKilled");
      });
    }
    if (now(mix_.crash_coordinator)) {
      with_one("coordinator", [&](const std::string& pod) { world_.cluster.CrashProgram(pod); });
    }
    if (now(mix_.delete_pod)) with_one(either, [&](const std::string& pod) { DeletePod(pod); });
    if (now(mix_.remove_pod)) {
      with_one(either, [&](const std::string& pod) { world_.server.Remove(pod); });
    }
  }

  // As kubectl deletes it.
  void DeletePod(const std::string& pod) {
    std::ignore = world_.server.Send({.method = kube::HttpMethod::kDelete, .target = pod});
  }

  template <typename Now>
  void NodeFaults(const Now& now) {
    const std::string node = One(world_.cluster.NodeNames());
    const auto later = [&](Duration most, auto act) {
      world_.loop.PostAfter(Lasting(most, kUnreachableNode), act);
    };
    Cluster& cluster = world_.cluster;
    if (now(mix_.power)) {
      cluster.PowerOff(node);
      later(2min, [&cluster, node] { cluster.PowerOn(node); });
    }
    if (now(mix_.remove_node)) {
      cluster.RemoveNode(node);
      later(2min, [&cluster, node] { cluster.PowerOn(node); });
    }
    if (now(mix_.cordon)) {
      cluster.SetCordoned(node, true);
      later(1min, [&cluster, node] { cluster.SetCordoned(node, false); });
    }
    if (now(mix_.unhealthy)) {
      cluster.SetUnhealthyGpus(node, 1 + Pick(2));
      later(1min, [&cluster, node] { cluster.SetUnhealthyGpus(node, 0); });
    }
  }

  template <typename Now>
  void UserDeeds(const Now& now) {
    if (wanted_.empty()) return;
    const auto entry = std::next(wanted_.begin(), Pick(static_cast<int>(wanted_.size())));
    auto& [job, end] = *entry;
    if (end == End::kGone) return;
    if (now(mix_.edit)) world_.Edit(job, {{"priority", 1 + Pick(10'000)}});
    if (now(mix_.edit) && end == End::kSucceeds) {
      const int least = ElasticOf(job).at("minLearners");
      world_.Edit(job, {{"elastic", {{"maxLearners", least + Pick(4)}}}});
    }
    if (now(mix_.suspend) && (end == End::kSucceeds || end == End::kSuspended)) {
      const bool suspend = end == End::kSucceeds;
      world_.Edit(job, {{"suspend", suspend}});
      end = suspend ? End::kSuspended : End::kSucceeds;
    }
    if (now(mix_.delete_job)) {
      world_.Delete(job);
      end = End::kGone;
      if (Pick(2) == 0) Submit(job);  // another job with the same name
    }
  }

  bool HasEnded(const std::string& job, End end) const {
    const std::string phase = world_.Phase(job);
    switch (end) {
      case End::kSucceeds:
        return phase == "Succeeded";
      case End::kFails:
        return phase == "Failed";
      case End::kSucceedsOrFails:  // depending on its deadline
        return phase == "Succeeded" || phase == "Failed";
      case End::kSuspended:  // unless it completed before
        return phase == "Suspended" || phase == "Succeeded";
      case End::kQueued:
        return phase == "Queued";
      case End::kGone:
        return !std::ranges::contains(world_.Jobs(), job);
    }
    return false;
  }

  bool AllEnded() const {
    return std::ranges::all_of(
        wanted_, [&](const auto& entry) { return HasEnded(entry.first, entry.second); });
  }

  // Deleted jobs leave no object behind. Jobs that ended leave only the objects that tell how.
  void CheckWhatIsLeft() {
    std::set<std::string> uids;
    for (const auto& [path, job] : world_.server.All(kAllJobs)) {
      uids.insert(job->at("metadata").at("uid"));
    }
    for (const char* collection : {"/api/v1/pods", "/api/v1/services", "/api/v1/secrets"}) {
      for (const auto& [path, object] : world_.server.All(collection)) {
        const std::string owner = LabelOf(*object, "pliant.dev/job-uid");
        if (!owner.empty() && !uids.contains(owner)) Complain(path + " has outlived its job");
      }
    }
    if (!world_.PodsOf("", "coordinator").empty()) Complain("a coordinator without a job remains");
  }

  void Complain(const std::string& what) { ADD_FAILURE() << what << "\n" << world_.Describe(); }

  World world_;
  const bool has_second_namespace_;
  const bool has_leftovers_;
  const int length_;  // of the story: longer if its faults last longer
  Mixture mix_;
  int gpus_ = 0;
  int names_ = 0;  // job names used
  bool has_liar_ = false;
  bool is_live_ = false;  // no more faults and edits: all jobs come to their end
  std::map<std::string, End> wanted_;
};

// Runs two jobs that make room for one another. `kill` arranges the leader's death, `dies` says
// whether it dies. Returns the value of `count` when both jobs have ended.
int RunDeath(World& world, const std::function<void()>& kill, bool dies,
             const std::function<int()>& count) {
  world.cluster.AddNode("node-0", 2);
  world.cluster.AddNode("node-1", 3);
  world.invariants.DemandMinimums();
  world.StartReplicas();
  const TrainingOptions training{.steps = 60, .step_time = 200ms};
  const Json elastic = {{"minLearners", 2}};
  world.Submit("one", training, {{"elastic", elastic}});
  kill();
  world.loop.RunFor(6s);
  world.Submit("two", training, {{"priority", 10'000}, {"elastic", elastic}});
  world.loop.RunFor(4s);
  world.Edit("two", {{"priority", 1}});
  const bool ended = world.RunUntil(
      [&] {
        return world.Phase("one") == "Succeeded" && world.Phase("two") == "Succeeded" &&
               world.PodsOf("", "learner").empty() && world.PodsOf("", "coordinator").empty();
      },
      10min);
  const int counted = count();
  world.loop.RunFor(1s);  // the last write may have killed a process
  EXPECT_TRUE(ended && !world.faulty()) << world.Describe();
  EXPECT_EQ(world.deaths() > 0, dies);
  return counted;
}

}  // namespace

std::string RunSeed(std::uint64_t seed) {
  Story story(seed);
  story.Unsafe();
  story.Live();
  return story.Describe();
}

int RunDeathAtWrite(std::optional<int> write, bool after) {
  World world(7);
  const auto kill = [&] {
    if (write) world.KillAtWrite(*write, after);
  };
  return RunDeath(world, kill, write.has_value(), [&] { return world.writes(); });
}

void RunFailingNeighbours(std::uint64_t seed) {
  World world(seed);
  world.cluster.AddNode("node-0", 2);
  world.cluster.AddNode("node-1", 2);
  world.invariants.DemandMinimums();
  world.StartReplicas();
  world.Submit("good", {.steps = 1500, .step_time = 200ms},
               {{"elastic", {{"minLearners", 2}, {"maxLearners", 2}}}});
  EXPECT_TRUE(world.RunUntil([&] { return world.Status("good").value("learners", 0) == 2; }, 2min));
  const std::vector<std::string> bad = {"bad-0", "bad-1", "bad-2"};
  for (const std::string& job : bad) {
    world.Submit(job, {.exit_code = job == "bad-1" ? 2 : 1},
                 {{"priority", 10'000}, {"failurePolicy", {{"maxFailures", 3}}}});
  }
  std::string harm;
  const auto look = [&] {
    const Json status = world.Status("good");
    const bool trains = status.value("phase", "") != "Succeeded";
    const bool whole = status.value("desiredLearners", 0) == 2 &&
                       status.value("restarts", 0) == 0 && status.value("coordinatorTerm", 0) == 1;
    if (trains && !whole) harm = status.dump();
  };
  const bool ended = world.RunUntil(
      [&] {
        look();
        return world.Phase("good") == "Succeeded" &&
               std::ranges::all_of(
                   bad, [&](const std::string& job) { return world.Phase(job) == "Failed"; });
      },
      30min);
  EXPECT_TRUE(ended) << world.Describe();
  EXPECT_EQ(harm, "");
}

int RunDeathAtPlan(std::optional<int> plan, bool after) {
  World world(7);
  const auto kill = [&] {
    if (plan) world.KillAtPlan(*plan, after);
  };
  return RunDeath(world, kill, plan.has_value(), [&] { return world.plans(); });
}

}  // namespace pliant::operator_sim
