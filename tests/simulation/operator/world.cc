#include "tests/simulation/operator/world.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include "base/format.h"
#include "operator/controller/actions/action_runner.h"
#include "operator/controller/model/names.h"
#include "tests/kube/kinds.h"
#include "tests/kube/yaml_objects.h"
#include "tests/simulation/operator/objects.h"

namespace pliant::operator_sim {
namespace {

using namespace std::chrono_literals;

Json Spec() {
  return Json::parse(R"({
    "elastic": {"minLearners": 1, "maxLearners": 4},
    "training": {"globalBatchSize": 256, "logicalShards": 32},
    "checkpoint": {"volume": {"hostPath": {"path": "/data"}}},
    "resize": {"gracePeriodSeconds": 10, "cooldownSeconds": 0},
    "template": {"spec": {"containers": [{"name": "learner", "image": "x"}]}}})");
}

const std::vector<Json>& Definitions() {
  static const std::vector<Json> definitions = [] {
    const auto loaded = kube::LoadDefinitions();
    EXPECT_TRUE(loaded) << loaded.error();
    return loaded.value_or(std::vector<Json>{});
  }();
  return definitions;
}

kube::HttpResponse Throttled() {
  return {.status = 429, .headers = {{"Retry-After", "1"}}, .body = "too many requests"};
}

kube::HttpResponse Unwell() {
  return {.status = 503, .headers = {}, .body = "the server is unwell"};
}

// "https://10.1.0.7:8443"
std::string HostOf(const std::string& server) {
  const std::size_t begin = server.find("//") + 2;
  return server.substr(begin, server.rfind(':') - begin);
}

}  // namespace

World::World(std::uint64_t seed)
    : random(seed),
      server({.token = {},
              .watches_wait = false,
              .collects_garbage = false,
              .now = [this] { return Now(); }}),
      cluster(loop, server, random),
      trainings(loop, server, cluster, random),
      invariants(server, [this](const std::string& node) { return cluster.GpusOf(node); }),
      admin_(server, kube::Config{.server = "https://memory"}, {.requests_per_second = 0}),
      told_in_time_(loop, trainings,
                    [this](const std::string& what) { invariants.Violated(what); }) {
  LookWhetherAllAreTold();
  cluster.has_image = [this](const Json& pod) {
    return IsLearner(pod) || !trainings.HasNoCoordinator(JobOf(pod));
  };
  cluster.on_start = [this](const std::string& pod) { trainings.OnStart(pod); };
  cluster.on_stop_signal = [this](const std::string& pod) { trainings.OnStopSignal(pod); };
  cluster.on_end = [this](const std::string& pod) { trainings.OnEnd(pod); };
  trainings.on_violation = [this](const std::string& what) { invariants.Violated(what); };
  for (const Json& definition : Definitions()) {
    const auto installed = admin_.Create(kube::kCustomResourceDefinitions, definition);
    EXPECT_TRUE(installed) << installed.error();
  }
  server.refuse = [this](const std::string& path, const Json&) {
    return kube::IsIn(kPods, path) ? refusal : "";
  };
  server.on_change = [this](const std::string& path, const kube::MemoryApiServer::Object& object) {
    OnChange(path, object);
  };
}

World::~World() {
  loop.Cancel(look_timer_);
  server.on_change = nullptr;
  server.refuse = nullptr;
}

api::WallTime World::Now() const {
  return api::FromUnixSeconds(1'800'000'000) +
         std::chrono::floor<std::chrono::milliseconds>(loop.Now().time_since_epoch());
}

void World::OnChange(const std::string& path, const kube::MemoryApiServer::Object& object) {
  invariants.OnChange(path, object);
  cluster.OnChange(path, object);
  for (Slot& slot : slots_) {
    if (slot.replica) slot.replica->OnServerChange(path);
  }
  if (object == nullptr && !std::exchange(collecting_, true)) {
    loop.PostAfter(Between(random, 50ms, 3s), [this] {
      collecting_ = false;
      server.CollectGarbage();
    });
  }
}

void World::Submit(const std::string& job, const TrainingOptions& training,
                   const Json& spec_changes) {
  trainings.Define(job, training);
  Json spec = Spec();
  spec.merge_patch(spec_changes);
  const auto [ns, name] = KeyOf(job);
  const auto made =
      admin_.Create(controller::kJobs,
                    {{"metadata", {{"namespace", ns}, {"name", name}}}, {"spec", std::move(spec)}});
  EXPECT_TRUE(made) << made.error();
}

void World::Apply(const kube::ResourceType& type, const std::string& name, const Json& spec) {
  const bool exists = server.Find(kube::CollectionPath(type, "") + "/" + name) != nullptr;
  const auto applied = exists
                           ? admin_.Patch(type, {"", name}, {{"spec", spec}})
                           : admin_.Create(type, {{"metadata", {{"name", name}}}, {"spec", spec}});
  EXPECT_TRUE(applied) << applied.error();
}

void World::Remove(const kube::ResourceType& type, const std::string& name) {
  EXPECT_TRUE(admin_.Delete(type, {"", name}));
}

Json World::StatusOf(const kube::ResourceType& type, const std::string& name) const {
  const auto object = server.Find(kube::CollectionPath(type, "") + "/" + name);
  return object == nullptr ? Json::object() : object->value("status", Json::object());
}

void World::Edit(const std::string& job, const Json& spec_changes) {
  std::ignore = admin_.Patch(controller::kJobs, KeyOf(job), {{"spec", spec_changes}});
}

void World::Delete(const std::string& job) {
  std::ignore = admin_.Delete(controller::kJobs, KeyOf(job));
}

void World::DeleteAndOrphan(const std::string& job, Duration after) {
  std::ignore = server.Send({.method = kube::HttpMethod::kDelete,
                             .target = PathOf(job),
                             .body = R"({"propagationPolicy": "Orphan"})"});
  if (after == Duration::zero()) {
    server.CollectGarbage();
  } else {
    loop.PostAfter(after, [this] { server.CollectGarbage(); });
  }
}

constexpr const char* kHold = "example.com/hold";

void World::Hold(const std::string& job) {
  server.Change(PathOf(job),
                [](Json& object) { object["metadata"]["finalizers"] = Json::array({kHold}); });
}

void World::LetGo(const std::string& job) {
  server.Change(PathOf(job), [](Json& object) { object["metadata"].erase("finalizers"); });
}

void World::SetQuota(std::optional<int> gpus) {
  constexpr const char* kPath = "/api/v1/namespaces/team-a/resourcequotas/gpus";
  if (!gpus) return server.Remove(kPath);
  server.Put(kPath, {{"metadata", {{"namespace", "team-a"}, {"name", "gpus"}}},
                     {"spec", {{"hard", {{"requests.nvidia.com/gpu", std::to_string(*gpus)}}}}}});
}

void World::CreateFatPods(const std::string& ns, const std::string& name, int count, int values) {
  for (int number = 0; number < count; ++number) {
    Json expression = {{"key", "zone"}, {"operator", "NotIn"}, {"values", Json::array()}};
    for (int value = 0; value < values; ++value) {
      expression["values"].push_back(Format("{}-{:050}", number, value));
    }
    Json pod = {{"metadata", {{"namespace", ns}, {"name", Format("{}-{}", name, number)}}}};
    pod["spec"]["containers"] = Json::array({{{"name", "main"}}});
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "64";
    Json& affinity = pod["spec"]["affinity"]["nodeAffinity"];
    affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
        Json::array({{{"matchExpressions", Json::array({std::move(expression)})}}});
    server.Put(Format("/api/v1/namespaces/{}/pods/{}-{}", ns, name, number), std::move(pod));
  }
}

void World::CreateDaemonSet(const std::string& ns, const std::string& name, int cpus) {
  for (const std::string& node : cluster.NodeNames()) {
    Json pod = {{"metadata",
                 {{"namespace", ns},
                  {"name", Format("{}-{}", name, node)},
                  {"ownerReferences", Json::array({{{"apiVersion", "apps/v1"},
                                                    {"kind", "DaemonSet"},
                                                    {"name", name},
                                                    {"uid", name},
                                                    {"controller", true}}})}}}};
    pod["spec"]["containers"] = Json::array(
        {{{"name", "main"}, {"resources", {{"requests", {{"cpu", std::to_string(cpus)}}}}}}});
    // As the DaemonSet controller pins it.
    Json& affinity = pod["spec"]["affinity"]["nodeAffinity"];
    affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
        Json::array({{{"matchFields", Json::array({{{"key", "metadata.name"},
                                                    {"operator", "In"},
                                                    {"values", Json::array({node})}}})}}});
    server.Put(Format("/api/v1/namespaces/{}/pods/{}-{}", ns, name, node), std::move(pod));
  }
}

Json World::Status(const std::string& job) const {
  const auto object = server.Find(PathOf(job));
  return object == nullptr ? Json::object() : object->value("status", Json::object());
}

std::string World::Phase(const std::string& job) const { return Status(job).value("phase", ""); }

std::vector<std::string> World::Jobs() const {
  std::vector<std::string> names;
  for (const auto& [path, job] : server.All(kAllJobs)) {
    names.push_back(JobOf(*job));
  }
  return names;
}

std::vector<std::string> World::PodsOf(const std::string& job, std::string_view role) const {
  std::vector<std::string> paths;
  for (const auto& [path, pod] : server.All(kPods)) {
    if (!IsAmongJobs(*pod) || HasEnded(*pod)) continue;
    if (LabelOf(*pod, controller::kLabelRole) != role) continue;
    if (job.empty() || JobOf(*pod) == job) paths.push_back(path);
  }
  return paths;
}

void World::StartReplicas() {
  for (std::size_t i = 0; i < slots_.size(); ++i) Start(i);
}

void World::Start(std::size_t index) {
  Slot& slot = slots_[index];
  slot.ending = false;
  slot.replica = std::make_unique<Replica>(
      Format("replica-{}-{}", index, ++slot.starts),
      ReplicaParts{.loop = loop,
                   .server = server,
                   .now = [this, index] { return Now() + slots_[index].clock_ahead; },
                   .random = [this] { return std::uniform_real_distribution()(random); },
                   .fault = [this, index](const kube::HttpRequest& r) { return Decide(index, r); },
                   .coordinator_fault =
                       [this](const kube::HttpRequest& r) { return DecideOnCoordinator(r); },
                   .on_exchange = std::bind_front(&World::NoteExchange, this, index),
                   .webhooks_hang = [this] { return webhooks_hang; },
                   .on_event = std::bind_front(&World::OnEvent, this, index),
                   .connect = [this](const std::string& to, const std::string&)
                       -> Result<std::unique_ptr<kube::HttpTransport>> {
                     return std::make_unique<CoordinatorConnection>(trainings, HostOf(to));
                   },
                   .crash_notes = crash_notes,
                   .node_requests = node_requests,
                   .on_end = [this, index] { loop.Post([this, index] { End(index); }); }});
}

// Secrets hold random keys, so their content is left out.
void World::NoteExchange(std::size_t index, const kube::HttpRequest& request,
                         const Result<kube::HttpResponse>& answer) {
  const bool secret = request.target.contains("/secrets");
  const auto digest = [&](std::string_view body) { return secret ? 0 : sim::DigestOf(body); };
  const std::string came =
      answer ? Format("{} {:016x}", answer->status, digest(answer->body)) : answer.error().message;
  trace_.Note(loop.Now(), Format("replica-{}", index),
              Format("{} {} {:016x}: {}", ToString(request.method), request.target,
                     digest(request.body), came));
}

void World::OnEvent(std::size_t index, const kube::ResourceType& type,
                    const api::ObjectMeta& object, const controller::ObjectEvent& event) {
  const std::string name = type == controller::kJobs ? JobNamed({object.name_space, object.name})
                                                     : Format("{} {}", type.kind, object.name);
  events.push_back(name + ": " + event.reason);
  trace_.Note(
      loop.Now(), Format("replica-{}", index),
      Format("{} {} {}: {}", event.warning ? "warns" : "tells", name, event.reason, event.note));
}

void World::End(std::size_t index) {
  Slot& slot = slots_[index];
  if (!slot.replica || slot.ending) return;
  slot.ending = true;
  ++deaths_;
  writes_before_ += slot.replica->writes();
  slot.replica.reset();
  loop.PostAfter(mended_ ? Duration(1s) : Between(random, 500ms, 25s), [this, index] {
    if (!slots_[index].replica) Start(index);
  });
}

void World::StartOnTwoNodes() {
  for (const char* node : {"node-0", "node-1"}) cluster.AddNode(node, 4);
  StartReplicas();
  EXPECT_TRUE(RunUntil([this] { return leader() != nullptr; }, std::chrono::minutes(1)));
  loop.RunFor(std::chrono::seconds(5));
}

Replica* World::leader() {
  const std::size_t index = leading();
  return index < slots_.size() ? slots_[index].replica.get() : nullptr;
}

std::size_t World::leading() const {
  const auto leads = [](const Slot& slot) { return slot.replica && slot.replica->leads(); };
  return static_cast<std::size_t>(std::ranges::find_if(slots_, leads) - slots_.begin());
}

void World::Disturb(Duration time) {
  // A connection that was cut, and a coordinator that was silent, are tried again after a while.
  disturbed_until_ = std::max(disturbed_until_, loop.Now() + time + std::chrono::seconds(30));
}

void World::LookWhetherAllAreTold() {
  const Replica* leads = leader();
  const std::string identity = leads == nullptr ? "" : leads->identity();
  if (identity != std::exchange(leader_before_, identity) || coordinators_cut) Disturb({});
  told_in_time_.Look(loop.Now() < disturbed_until_ || leads == nullptr ? nullptr : leads->plan());
  look_timer_ = loop.PostAfter(std::chrono::seconds(1), [this] { LookWhetherAllAreTold(); });
}

void World::FreezeWatches(std::size_t index, Duration time) {
  Disturb(time);
  if (slots_[index].replica) slots_[index].replica->FreezeWatchesUntil(loop.Now() + time);
}

void World::Kill(std::size_t index) { End(index); }

void World::Stop(std::size_t index, Duration time) {
  Disturb(time);
  if (slots_[index].replica) slots_[index].replica->StopUntil(loop.Now() + time);
}

void World::Release(std::size_t index) {
  if (slots_[index].replica) slots_[index].replica->Release();
}

void World::KillAtWrite(int count, bool after) { death_at_write_ = {count, after}; }

void World::KillAtPlan(int count, bool after) { death_at_plan_ = {count, after}; }

void World::Partition(std::size_t index, Duration time) {
  Disturb(time);
  slots_[index].cut_until = loop.Now() + time;
}

Disposition World::Decide(std::size_t index, const kube::HttpRequest& request) {
  if (loop.Now() < slots_[index].cut_until) return Fault::kCut;
  const bool write = request.method != kube::HttpMethod::kGet;
  if (write && request.target.find("/leases") == std::string::npos) ++writes_besides_lease_;
  if (request.target.find("dryRun=All") != std::string::npos) ++dry_runs_;
  if (write) {
    if (const Fault death = DeathAt(death_at_write_); death != Fault::kNone) return death;
  }
  if (interfere) {
    const Disposition fate = interfere(request);
    const auto* fault = std::get_if<Fault>(&fate);
    if (fault == nullptr || *fault != Fault::kNone) return fate;
  }
  if (request.target.find("watch=1") != std::string::npos) {
    return Chance(random, faults.watch) ? Fault::kCut : Fault::kNone;
  }
  if (Chance(random, faults.cut)) return Fault::kCut;
  if (Chance(random, faults.cut_done)) return Fault::kCutDone;
  if (Chance(random, faults.throttle)) return Throttled();
  if (Chance(random, faults.server)) return Unwell();
  return Fault::kNone;
}

Fault World::DecideOnCoordinator(const kube::HttpRequest& request) {
  if (coordinators_cut) return Fault::kCut;
  if (request.method == kube::HttpMethod::kGet) return Fault::kNone;
  ++plans_;
  return DeathAt(death_at_plan_);
}

Fault World::DeathAt(Death& death) {
  if (!death || --death->first > 0) return Fault::kNone;
  return std::exchange(death, std::nullopt)->second ? Fault::kDeathDone : Fault::kDeath;
}

int World::writes() const {
  int sum = writes_before_;
  for (const Slot& slot : slots_) {
    if (slot.replica) sum += slot.replica->writes();
  }
  return sum;
}

void World::Mend() {
  mended_ = true;
  faults = {};
  death_at_write_.reset();
  death_at_plan_.reset();
  coordinators_cut = false;
  refusal.clear();
  webhooks_hang = false;
  interfere = nullptr;
  cluster.has_images = true;
  cluster.refuse_start = [] { return false; };
  for (Slot& slot : slots_) {
    slot.cut_until = {};
    slot.clock_ahead = {};
  }
  for (const std::string& node : cluster.NodeNames()) {
    cluster.PowerOn(node);
    cluster.SetCordoned(node, false);
    cluster.SetUnhealthyGpus(node, 0);
  }
}

bool World::RunUntil(const std::function<bool()>& done, Duration limit) {
  return loop.RunUntilTrue([&] { return faulty() || done(); }, limit) && !faulty();
}

std::string World::Describe() const {
  std::string text = Format("at {:.3f} s\n", ToSeconds(loop.Now().time_since_epoch()));
  for (const std::string& violation : invariants.violations()) {
    text += "VIOLATED: " + violation + "\n";
  }
  for (const std::string& job : Jobs()) {
    const Json status = Status(job);
    text += Format("job {}: {} ({}), desired {}, learners {}, step {}, term {}\n", job,
                   status.value("phase", "-"), status.value("reason", ""),
                   status.value("desiredLearners", 0), status.value("learners", 0),
                   status.value("step", 0), status.value("coordinatorTerm", 0));
  }
  for (const auto& [path, pod] : server.All(kPods)) {
    text += Format("pod {}: {}{}{} on {}{}\n", path, pod->at("status").value("phase", ""),
                   IsGated(*pod) ? " gated" : "",
                   pod->at("metadata").contains("deletionTimestamp") ? " deleting" : "",
                   NodeOf(*pod), cluster.Runs(path) ? ", runs" : "");
  }
  for (const auto& [path, node] : server.All("/api/v1/nodes")) {
    text += Format("node {}: {}\n", path, node->dump());
  }
  return text;
}

}  // namespace pliant::operator_sim
