#include "operator/controller/objects/learner_pod.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/host_port.h"
#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

using nlohmann::json;

constexpr std::string_view kSecretPath = "/etc/pliant/learner";
constexpr std::string_view kCheckpointPath = "/checkpoints";
// Programs exchange data between their processes there: workers that load data, and NCCL. A
// container's own has 64 MiB.
constexpr std::string_view kSharedMemoryPath = "/dev/shm";
constexpr std::string_view kSharedMemory = "pliant-shared-memory";
constexpr int kNodeLostSeconds = 30;
// Added to the grace period: time to notify a learner, and for its termination message.
constexpr int kGraceSlackSeconds = 15;
constexpr int kMaxGrace = 3600;

// The value of `name`, replaced by an empty object (or list) if it is none.
json& ObjectAt(json& parent, const char* name) {
  json& child = parent[name];
  if (!child.is_object()) child = json::object();
  return child;
}
json& ListAt(json& parent, const char* name) {
  json& child = parent[name];
  if (!child.is_array()) child = json::array();
  return child;
}

// The field as it is; null if it is absent, or `object` is none.
const json& FieldOf(const json& object, const char* name) {
  static const json kAbsent;
  if (!object.is_object()) return kAbsent;
  const auto found = object.find(name);
  return found == object.end() ? kAbsent : *found;
}

// A template may contain anything; the dry run refuses what is wrong in it.
std::string TextAt(const json& object, const char* name) {
  if (!object.is_object()) return "";
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Our item replaces one of the same name.
void PutNamed(json& list, json item) {
  const std::string name = TextAt(item, "name");
  std::erase_if(list.get_ref<json::array_t&>(),
                [&](const json& other) { return TextAt(other, "name") == name; });
  list.push_back(std::move(item));
}

json Value(std::string_view name, const std::string& value) {
  return {{"name", name}, {"value", value}};
}
json In(std::string_view key, const std::string& value) {
  return {{"key", key}, {"operator", "In"}, {"values", {value}}};
}
json FromPod(std::string_view name, std::string_view field) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", field}}}}}};
}

json Environment(const api::ElasticTrainingJob& job, const api::FrozenTraining& training,
                 std::int64_t term, const std::string& coordinator_ip, bool nccl_allowed) {
  const api::CheckpointSpec& checkpoint = job.spec.checkpoint;
  json environment = json::array({
      Value("PLIANT_COORDINATOR", HostAndPort(coordinator_ip, kCoordinatorPort)),
      FromPod("PLIANT_LEARNER", "metadata.name"),
      FromPod("PLIANT_POD_UID", "metadata.uid"),
      FromPod("PLIANT_POD_IP", "status.podIP"),
      Value("PLIANT_JOB", job.meta.name_space + "/" + job.meta.name),
      Value("PLIANT_JOB_UID", job.meta.uid),
      Value("PLIANT_TERM", std::to_string(term)),
      Value("PLIANT_TOKEN_FILE", std::string(kSecretPath) + "/token"),
      Value("PLIANT_PEER_KEY_FILE", std::string(kSecretPath) + "/peer-key"),
      Value("PLIANT_TLS_DIR", std::string(kSecretPath)),
      Value("PLIANT_CHECKPOINT_DIR", std::string(kCheckpointPath)),
      Value("PLIANT_CHECKPOINT_EVERY_STEPS", std::to_string(checkpoint.every_steps)),
      Value("PLIANT_CHECKPOINT_EVERY_SECONDS", std::to_string(checkpoint.every_seconds)),
      Value("PLIANT_CHECKPOINT_KEEP", std::to_string(checkpoint.keep)),
      Value("PLIANT_GLOBAL_BATCH_SIZE", std::to_string(training.global_batch_size)),
      Value("PLIANT_LOGICAL_SHARDS", std::to_string(training.logical_shards)),
      Value("PLIANT_SEED", std::to_string(training.seed)),
      Value("PLIANT_REPRODUCIBILITY", std::string(ToString(training.reproducibility))),
      Value("PLIANT_MIN_LEARNERS", std::to_string(job.spec.elastic.min_learners)),
      Value("PLIANT_MAX_LEARNERS", std::to_string(job.spec.elastic.max_learners)),
      Value("PLIANT_RANKS_PER_LEARNER", std::to_string(job.spec.elastic.gpus_per_learner)),
      Value("PLIANT_GRACE_SECONDS", std::to_string(job.spec.resize.grace_period.count())),
      Value("PLIANT_STEP_TIMEOUT_SECONDS", std::to_string(job.spec.step_timeout.count())),
      Value("PLIANT_METRICS_PORT", std::to_string(kLearnerMetricsPort)),
  });
  if (training.max_batch_size) {
    environment.push_back(Value("PLIANT_BATCH_MODE", "FromState"));
    environment.push_back(Value("PLIANT_MAX_BATCH_SIZE", std::to_string(*training.max_batch_size)));
  }
  // Always set: the template must not decide what the administrator forbids.
  const bool over_nccl = nccl_allowed && job.spec.exchange_over_nccl;
  environment.push_back(Value("PLIANT_EXCHANGE", over_nccl ? "Auto" : "Frames"));
  if (!checkpoint.resume_from.empty()) {
    environment.push_back(Value("PLIANT_RESUME_FROM", checkpoint.resume_from));
  }
  return environment;
}

bool Mounts(const json& mounts, std::string_view path) {
  return std::ranges::any_of(mounts, [&](const json& mount) {
    std::string at = TextAt(mount, "mountPath");
    while (at.ends_with('/')) at.pop_back();
    return at == path;
  });
}

// `other_resource`: counts as GPU in other pools, where the same template may have been used.
void OverlayContainer(json& container, json environment, const std::string& gpu_resource,
                      const std::string& other_resource, int gpus) {
  json& env = ListAt(container, "env");
  for (json& variable : environment) PutNamed(env, std::move(variable));

  PutNamed(ListAt(container, "ports"),
           {{"name", "metrics"}, {"containerPort", kLearnerMetricsPort}, {"protocol", "TCP"}});

  json& resources = ObjectAt(container, "resources");
  json& limits = ObjectAt(resources, "limits");
  limits.erase(other_resource);
  limits[gpu_resource] = std::to_string(gpus);
  // The request of an extended resource must equal its limit; without a request the server fills it
  // in.
  if (resources.contains("requests") && resources["requests"].is_object()) {
    resources["requests"].erase(gpu_resource);
    resources["requests"].erase(other_resource);
  }

  json& mounts = ListAt(container, "volumeMounts");
  PutNamed(mounts, {{"name", "pliant-checkpoints"}, {"mountPath", kCheckpointPath}});
  PutNamed(mounts, {{"name", "pliant-learner"}, {"mountPath", kSecretPath}, {"readOnly", true}});
  if (!Mounts(mounts, kSharedMemoryPath))
    PutNamed(mounts, {{"name", kSharedMemory}, {"mountPath", kSharedMemoryPath}});
  container["terminationMessagePath"] = "/dev/termination-log";
  // A program that crashes leaves only what it logged last, for example a traceback.
  container["terminationMessagePolicy"] = "FallbackToLogsOnError";
}

// Adds the node to every term of the required affinity, since terms are alternatives. If there is
// none, adds a term. Node autoscalers understand expressions over labels, but not matchFields.
void PinToNode(json& spec, const planner::NewLearner& place) {
  json& required = ObjectAt(ObjectAt(ObjectAt(spec, "affinity"), "nodeAffinity"),
                            "requiredDuringSchedulingIgnoredDuringExecution");
  json& terms = ListAt(required, "nodeSelectorTerms");
  if (terms.empty()) terms.push_back(json::object());
  for (json& term : terms) {
    if (!term.is_object()) continue;  // the dry run refuses it
    if (place.hostname.empty()) {
      ListAt(term, "matchFields").push_back(In("metadata.name", place.node));
    } else {
      ListAt(term, "matchExpressions").push_back(In(planner::kHostnameLabel, place.hostname));
    }
  }
}

void AddTolerations(json& spec) {
  json& tolerations = ListAt(spec, "tolerations");
  for (const char* taint : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    const bool own_wish = std::ranges::any_of(
        tolerations, [&](const json& toleration) { return TextAt(toleration, "key") == taint; });
    if (own_wish) continue;
    tolerations.push_back({{"key", taint},
                           {"operator", "Exists"},
                           {"effect", "NoExecute"},
                           {"tolerationSeconds", kNodeLostSeconds}});
  }
}

void AddVolumes(json& spec, const api::ElasticTrainingJob& job, std::int64_t term) {
  json checkpoints =
      json::parse(job.spec.checkpoint.volume_json, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!checkpoints.is_object()) checkpoints = json::object();  // the dry run refuses it
  checkpoints["name"] = "pliant-checkpoints";
  json& volumes = ListAt(spec, "volumes");
  PutNamed(volumes, std::move(checkpoints));
  PutNamed(volumes, {{"name", "pliant-learner"},
                     {"secret", {{"secretName", LearnerSecretName(job.meta, term)}}}});
  // Its pages count as memory of the container that writes them, and are limited likewise.
  PutNamed(volumes, {{"name", kSharedMemory}, {"emptyDir", {{"medium", "Memory"}}}});
}

}  // namespace

json OwnerReference(const api::ObjectMeta& job) {
  return {{"apiVersion", kJobApiVersion},
          {"kind", kJobKind},
          {"name", job.name},
          {"uid", job.uid},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

json ScrapeAnnotations(std::uint16_t port) {
  return {{"prometheus.io/scrape", "true"},
          {"prometheus.io/port", std::to_string(port)},
          {"prometheus.io/path", "/metrics"}};
}

json JobLabels(const api::ObjectMeta& job) {
  return {{kLabelManagedBy, kManagedBy}, {kLabelJob, JobLabel(job)}, {kLabelJobUid, job.uid}};
}

const std::string& GpuResourceOf(const api::ElasticTrainingJob& job, const PodDefaults& defaults) {
  return job.spec.gpu_resource.empty() ? defaults.gpu_resource : job.spec.gpu_resource;
}

std::vector<std::string> IgnoredFields(const api::ElasticTrainingJob& job,
                                       const api::FrozenTraining& training) {
  const json pod =
      json::parse(job.spec.learner_template.json, /*cb=*/nullptr, /*allow_exceptions=*/false);
  const json& metadata = FieldOf(pod, "metadata");
  const json& spec = FieldOf(pod, "spec");
  std::vector<std::string> ignored;
  if (metadata.is_object()) {
    for (const auto& [name, value] : metadata.items()) {
      const bool is_used = name == "labels" || name == "annotations";
      if (!is_used && !value.is_null()) ignored.push_back("metadata." + name);
    }
  }
  const json none;
  const auto note = [&](const char* name, const json& ours) {
    const json& theirs = FieldOf(spec, name);
    if (!theirs.is_null() && theirs != ours) ignored.push_back(Format("spec.{}", name));
  };
  note("restartPolicy", "Never");
  note("automountServiceAccountToken", false);
  note("enableServiceLinks", false);
  note("terminationGracePeriodSeconds", none);
  const json ours = Environment(job, training, 0, "", false);
  for (const json& container : FieldOf(spec, "containers")) {
    if (TextAt(container, "name") != kLearnerContainer) continue;
    for (const json& variable : FieldOf(container, "env")) {
      const std::string name = TextAt(variable, "name");
      const bool is_ours =
          std::ranges::any_of(ours, [&](const json& each) { return TextAt(each, "name") == name; });
      if (is_ours) ignored.push_back("env " + name);
    }
  }
  return ignored;
}

json LearnerPod(const api::ElasticTrainingJob& job, const api::FrozenTraining& training,
                std::int64_t term, int number, const planner::NewLearner& place,
                const std::string& coordinator_ip, const PodDefaults& defaults) {
  json pod =
      json::parse(job.spec.learner_template.json, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!pod.is_object()) pod = json::object();
  pod.erase("status");
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";

  // Only labels and annotations of the template's metadata go to a pod.
  json metadata = json::object();
  for (const char* kept : {"labels", "annotations"}) {
    if (pod.contains("metadata") && pod["metadata"].is_object() && pod["metadata"].contains(kept)) {
      metadata[kept] = pod["metadata"][kept];
    }
  }
  metadata["name"] = LearnerPodName(job.meta, number);
  metadata["namespace"] = job.meta.name_space;
  metadata["ownerReferences"] = json::array({OwnerReference(job.meta)});
  json& labels = ObjectAt(metadata, "labels");
  labels.update(JobLabels(job.meta));
  labels[std::string(kLabelRole)] = kRoleLearner;
  labels[std::string(kLabelLearner)] = std::to_string(number);
  json& annotations = ObjectAt(metadata, "annotations");
  annotations[api::kAnnotationNode] = place.node;
  if (defaults.scrape_annotations) {
    // A program with metrics of its own has its own annotations.
    if (!annotations.contains("prometheus.io/scrape")) {
      annotations.update(ScrapeAnnotations(kLearnerMetricsPort));
    }
  }
  pod["metadata"] = std::move(metadata);

  json& spec = ObjectAt(pod, "spec");
  for (json& container : ListAt(spec, "containers")) {
    if (TextAt(container, "name") == kLearnerContainer) {
      OverlayContainer(
          container, Environment(job, training, term, coordinator_ip, defaults.nccl_allowed),
          GpuResourceOf(job, defaults), defaults.gpu_resource, job.spec.elastic.gpus_per_learner);
    }
  }
  spec["restartPolicy"] = "Never";
  spec["automountServiceAccountToken"] = false;
  spec["enableServiceLinks"] = false;
  spec["terminationGracePeriodSeconds"] =
      std::min<std::int64_t>(job.spec.resize.grace_period.count() + kGraceSlackSeconds, kMaxGrace);
  if (!defaults.priority_class.empty()) {
    spec["priorityClassName"] = defaults.priority_class;
    spec.erase("priority");
    spec.erase("preemptionPolicy");
  }
  PutNamed(ListAt(spec, "schedulingGates"), {{"name", kGate}});
  PinToNode(spec, place);
  AddTolerations(spec);
  AddVolumes(spec, job, term);
  return pod;
}

}  // namespace pliant::controller
