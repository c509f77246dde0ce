#include "operator/controller/action_runner.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/log.h"
#include "operator/api/fields.h"
#include "operator/controller/admission.h"
#include "operator/controller/coordinator_objects.h"
#include "operator/controller/mount_cause.h"
#include "operator/controller/names.h"

namespace pliant::controller {
namespace {

using nlohmann::json;

// An admission webhook has 10 s, unless it says otherwise. A pod that comes late does no harm: it
// is gated, or of a term that may be over.
constexpr std::chrono::seconds kPodDeadline{12};

api::WallTime Now() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

kube::NamespacedName KeyOf(const Batch& batch, const std::string& name) {
  return {batch.job.meta.name_space, name};
}

std::string JobOf(const Batch& batch) {
  return batch.job.meta.name_space + "/" + batch.job.meta.name;
}

bool IsOwnedBy(const json& object, const api::ObjectMeta& job) {
  const Result<api::ObjectMeta> meta = api::DecodeMeta(object, "pliant.dev/");
  return meta && IsControlledBy(*meta, job);
}

bool HasOwner(const json& object, const std::string& uid) {
  api::Fields root(object);
  bool has = false;
  root.Object("metadata", [&](api::Fields& metadata) {
    metadata.Objects("ownerReferences", 1024,
                     [&](api::Fields& owner) { has = has || owner.String("uid") == uid; });
  });
  return has;
}

Error TakenName(std::string_view kind, const std::string& name) {
  return {ErrorCode::kInvalid,
          std::string(kind) + " " + name + " exists and does not belong to the job"};
}

// Whether a quota has no GPUs left, and that is all: the job's namespace holds them, which the plan
// is about. There is no other sign of it than the server's sentence, "... exceeded quota: NAME,
// requested: requests.nvidia.com/gpu=1, used: ..., limited: ...", which lists what is exceeded.
bool LacksGpusOfQuota(const kube::KubeError& error, const std::string& gpu_resource) {
  if (error.http_status != 403 || !error.message.contains("exceeded quota: ")) return false;
  const std::string begin = "requested: requests." + gpu_resource + "=";
  const std::size_t at = error.message.find(begin);
  if (at == std::string::npos) return false;
  const std::size_t end = error.message.find(',', at);
  return end != std::string::npos && error.message.compare(end, 7, ", used:") == 0;
}

// Answers of the server that mean that it will not have this pod, now or later; all others mean
// that it could not be asked.
bool RefusesPod(const kube::KubeError& error) {
  return error.http_status != 0 && (kube::IsRefusal(error) || error.code == ErrorCode::kNotFound ||
                                    error.code == ErrorCode::kConflict);
}

// What the job's owner is told of a write of a pod that the server did not answer for: so it says
// that an admission webhook did not answer, or it still waits for one. "": all else passes by
// itself.
std::string WhyUnanswered(std::string_view undone, const kube::KubeError& error) {
  if (error.http_status == 500) return error.message;
  if (error.code != ErrorCode::kTimeout) return "";
  return Format(
      "the API server did not {} in time, as when an admission webhook does not answer: {}", undone,
      error.message);
}

bool MakesLearner(const Action& action) {
  return std::holds_alternative<CheckTemplate>(action) ||
         std::holds_alternative<CreateLearner>(action);
}

bool LacksTemplate(const api::ElasticTrainingJob& job) {
  const api::LearnerTemplate& of_job = job.spec.learner_template;
  return of_job.json.empty() && !of_job.hash.empty();
}

bool IsUnclear(const Action& action, ErrorCode code) {
  const bool matters = std::holds_alternative<CreateCoordinator>(action) ||
                       std::holds_alternative<CreateLearner>(action) ||
                       std::holds_alternative<OpenGate>(action);
  return matters && (code == ErrorCode::kUnavailable || code == ErrorCode::kTimeout ||
                     code == ErrorCode::kInternal);
}

}  // namespace

BatchResult ActionRunner::Run(const Batch& batch) const {
  BatchResult result;
  if (batch.write_status) {
    if (const kube::KubeStatus written = WriteStatus(batch, result); !written) {
      result.error = InContext("write status", written.error());
      return result;
    }
  }
  std::optional<Batch> whole;  // with the job's template, if that had to be fetched
  for (std::size_t index = 0; index < batch.actions.size(); ++index) {
    kube::KubeStatus done;
    if (!whole && MakesLearner(batch.actions[index]) && LacksTemplate(batch.job)) {
      if (auto job = FetchTemplate(batch)) {
        whole = Batch{.job = *std::move(job)};
      } else {
        done = std::unexpected(job.error());
      }
    }
    if (done) {
      done = std::visit([&](const auto& what) { return Do(what, whole ? *whole : batch, result); },
                        batch.actions[index]);
    }
    if (done) continue;
    result.error = done.error();
    result.failed = index;
    result.unclear = IsUnclear(batch.actions[index], done.error().code);
    break;
  }
  return result;
}

BatchResult ActionRunner::Clear(const Batch& batch) const {
  const Action& action = batch.actions.front();
  BatchResult result;
  kube::KubeStatus done;
  if (const auto* coordinator = std::get_if<CreateCoordinator>(&action)) {
    done = FindCreated(CoordinatorPodName(batch.job.meta, coordinator->term), batch, result);
  } else if (const auto* learner = std::get_if<CreateLearner>(&action)) {
    done = FindCreated(LearnerPodName(batch.job.meta, learner->number), batch, result);
  } else {
    // On the version of the pod that was read: it cannot be done twice.
    const auto& gate = std::get<OpenGate>(action);
    done = Do(gate, batch, result);
    if (!result.unanswered.empty()) done = LookAtGate(gate, batch, result);
  }
  if (done) return result;
  result.error = done.error();
  result.failed = 0;
  result.unclear =
      IsUnclear(action, done.error().code) || done.error().code == ErrorCode::kThrottled;
  return result;
}

kube::KubeResult<api::Pod> ActionRunner::ReadPod(const std::string& name,
                                                 const Batch& batch) const {
  const auto found = client_.Get(kube::kPods, KeyOf(batch, name));
  if (!found) return std::unexpected(InContext("look for pod " + name, found.error()));
  ASSIGN_OR_RETURN(api::Pod pod, api::DecodePod(*found, defaults_.gpu_resource));
  return pod;
}

kube::KubeStatus ActionRunner::FindCreated(const std::string& name, const Batch& batch,
                                           BatchResult& result) const {
  kube::KubeResult<api::Pod> found = ReadPod(name, batch);
  if (!found && found.error().code == ErrorCode::kNotFound) return {};
  if (!found) return std::unexpected(found.error());
  if (!IsControlledBy(found->meta, batch.job.meta)) return std::unexpected(TakenName("pod", name));
  result.created.push_back(*std::move(found));
  return {};
}

kube::KubeStatus ActionRunner::Do(const LookForPod& action, const Batch& batch,
                                  BatchResult& result) const {
  kube::KubeResult<api::Pod> found = ReadPod(action.pod, batch);
  if (!found && found.error().code != ErrorCode::kNotFound) return std::unexpected(found.error());
  const bool is_it = found && IsControlledBy(found->meta, batch.job.meta) &&
                     (action.uid.empty() || found->meta.uid == action.uid);
  if (is_it) {
    result.found.push_back(*std::move(found));
  } else {
    result.gone.push_back(action);
  }
  return {};
}

// Whether it is open, as the pod says: all else that the job needs, word to its owner among it,
// does not wait until an admission webhook answers.
kube::KubeStatus ActionRunner::LookAtGate(const OpenGate& action, const Batch& batch,
                                          BatchResult& result) const {
  ASSIGN_OR_RETURN(api::Pod pod, ReadPod(action.pod, batch));
  if (pod.meta.uid == action.uid && pod.meta.resource_version == action.resource_version) return {};
  result.unanswered.clear();
  if (pod.meta.uid != action.uid || pod.scheduling_gates != action.gates_left) {
    return std::unexpected(
        kube::KubeError(ErrorCode::kConflict, "pod " + action.pod + " has changed"));
  }
  result.opened.push_back(std::move(pod));
  return {};
}

kube::KubeStatus ActionRunner::WriteStatus(const Batch& batch, BatchResult& result) const {
  const json patch = {
      {"metadata",
       {{"resourceVersion", batch.job.meta.resource_version}, {"uid", batch.job.meta.uid}}},
      {"status", api::EncodeStatus(batch.job.status)}};
  ASSIGN_OR_RETURN(const json written,
                   client_.Patch(kJobs, KeyOf(batch, batch.job.meta.name), kube::PatchType::kMerge,
                                 patch, {.subresource = "status"}));
  ASSIGN_OR_RETURN(result.job, api::DecodeJob(written, defaults_.jobs));
  return {};
}

// What the server would keep may be more than was sent: webhooks, defaults and classes add to it.
void ActionRunner::LookAtAdmitted(const json& pod, const api::ElasticTrainingJob& job,
                                  BatchResult& result) const {
  auto needs = api::ReadNeedsOfPod(pod, defaults_.gpu_resource);
  if (!needs) return;  // then what the template says is all that is known
  const std::int64_t gpus = needs->resources.gpus;
  if (gpus != job.spec.elastic.gpus_per_learner) {
    result.template_refusal = Format(
        "a learner's pod would take {} of {}, and spec.elastic.gpusPerLearner is {}: only "
        "the container \"{}\" may ask for it",
        gpus, defaults_.gpu_resource, job.spec.elastic.gpus_per_learner, kLearnerContainer);
    return;
  }
  result.admitted_needs = std::make_shared<const planner::PodNeeds>(*std::move(needs));
}

kube::KubeResult<api::ElasticTrainingJob> ActionRunner::FetchTemplate(const Batch& batch) const {
  const auto found = client_.Get(kJobs, KeyOf(batch, batch.job.meta.name));
  if (!found) return std::unexpected(InContext("fetch the template of the job", found.error()));
  ASSIGN_OR_RETURN(api::ElasticTrainingJob fetched, api::DecodeJob(*found, defaults_.jobs));
  if (fetched.spec.learner_template.hash != batch.job.spec.learner_template.hash) {
    return std::unexpected(kube::KubeError(ErrorCode::kConflict, "the job's template has changed"));
  }
  api::ElasticTrainingJob job = batch.job;
  job.spec.learner_template.json = found->at("spec").at("template").dump();
  return job;
}

kube::KubeStatus ActionRunner::Do(const CheckTemplate&, const Batch& batch,
                                  BatchResult& result) const {
  ASSIGN_OR_RETURN(const api::FrozenTraining training, FrozenOrNew(batch.job));
  const json pod = LearnerPod(batch.job, training, /*term=*/1, batch.job.status.next_learner,
                              /*node=*/"any", /*coordinator_ip=*/"0.0.0.0", defaults_);
  const auto checked =
      client_.Create(kube::kPods, pod, {.dry_run = true, .strict = true, .deadline = kPodDeadline});
  if (checked) {
    result.template_refusal = "";
    LookAtAdmitted(*checked, batch.job, result);
  } else if (LacksGpusOfQuota(checked.error(), defaults_.gpu_resource)) {
    // Quotas are looked at last, when all else was found to be right.
    result.template_refusal = "";
  } else if (RefusesPod(checked.error())) {
    result.template_refusal = checked.error().message;
  } else if (checked.error().code == ErrorCode::kAlreadyExists) {
    result.template_refusal = "";  // a name is only taken once all else was found to be right
  } else {
    result.template_unchecked = WhyUnanswered("check the pod template", checked.error());
    return std::unexpected(InContext("check the pod template", checked.error()));
  }
  return {};
}

// It explains what is wrong already: what goes wrong here stops nothing else.
kube::KubeStatus ActionRunner::Do(const FindMountCause& action, const Batch& batch,
                                  BatchResult& result) const {
  std::string& cause = result.mount_causes[action.pod];
  const auto page = client_.List(kube::kEvents, batch.job.meta.name_space,
                                 {.field_selector = "regarding.uid=" + action.uid});
  if (!page) {
    log::Warning("events of a pod cannot be read",
                 {{"job", JobOf(batch)}, {"pod", action.pod}, {"error", page.error().message}});
    return {};
  }
  cause = MountCauseIn(page->items);
  return {};
}

// Its name is of this term, which no other attempt has. The operator may not read it: whether one
// that is there already is ours, nobody can say, and the next attempt makes another.
kube::KubeStatus ActionRunner::CreateSecret(const json& secret) const {
  const auto created = client_.Create(kube::kSecrets, secret);
  if (created) return {};
  const std::string name = secret.at("metadata").at("name");
  if (created.error().code == ErrorCode::kAlreadyExists) {
    return std::unexpected(TakenName("Secret", name));
  }
  return std::unexpected(InContext("create Secret " + name, created.error()));
}

kube::KubeStatus ActionRunner::Do(const CreateSecrets& action, const Batch& batch,
                                  BatchResult& result) const {
  const std::string& service = result.service ? result.service->meta.uid : action.service_uid;
  const api::ObjectMeta& job = batch.job.meta;
  ASSIGN_OR_RETURN(const JobCredentials credentials,
                   MakeJobCredentials(keys_, job.uid, batch.job.status.credentials_version, Now()));
  RETURN_IF_ERROR(CreateSecret(CoordinatorSecret(job, action.term, service, credentials)));
  return CreateSecret(LearnerSecret(job, action.term, service, credentials));
}

// One that is there and is the job's holds what an operator of other settings put there.
kube::KubeStatus ActionRunner::PutNetworkPolicy(const json& policy, const Batch& batch) const {
  const auto created = client_.Create(kube::kNetworkPolicies, policy);
  if (created) return {};
  const json& metadata = policy.at("metadata");
  const std::string name = metadata.at("name");
  if (created.error().code != ErrorCode::kAlreadyExists) {
    return std::unexpected(InContext("create NetworkPolicy " + name, created.error()));
  }
  const auto found = client_.Get(kube::kNetworkPolicies, KeyOf(batch, name));
  if (!found) return std::unexpected(InContext("look for NetworkPolicy " + name, found.error()));
  const std::string service = metadata.at("ownerReferences").at(0).at("uid");
  if (!IsOwnedBy(*found, batch.job.meta) && !HasOwner(*found, service)) {
    return std::unexpected(TakenName("NetworkPolicy", name));
  }
  const json patch = {{"metadata",
                       {{"resourceVersion", kube::MetaOf(*found).resource_version},
                        {"ownerReferences", metadata.at("ownerReferences")},
                        {"labels", metadata.at("labels")}}},
                      {"spec", policy.at("spec")}};
  const auto patched =
      client_.Patch(kube::kNetworkPolicies, KeyOf(batch, name), kube::PatchType::kMerge, patch);
  if (!patched) return std::unexpected(InContext("renew NetworkPolicy " + name, patched.error()));
  return {};
}

kube::KubeStatus ActionRunner::Do(const PutNetworkPolicies& action, const Batch& batch,
                                  BatchResult& result) const {
  if (!defaults_.network) return {};
  const std::string& service = result.service ? result.service->meta.uid : action.service_uid;
  for (const json& policy : NetworkPolicies(batch.job.meta, service, *defaults_.network)) {
    RETURN_IF_ERROR(PutNetworkPolicy(policy, batch));
  }
  return {};
}

kube::KubeStatus ActionRunner::Do(const CreateService& action, const Batch& batch,
                                  BatchResult& result) const {
  auto service = client_.Create(kube::kServices, CoordinatorService(batch.job.meta, action.term));
  if (!service && service.error().code == ErrorCode::kAlreadyExists) {
    const std::string name = CoordinatorName(batch.job.meta);
    service = client_.Get(kube::kServices, KeyOf(batch, name));
    if (service && !IsOwnedBy(*service, batch.job.meta)) {
      return std::unexpected(TakenName("Service", name));
    }
  }
  if (!service) return std::unexpected(InContext("create the Service", service.error()));
  ASSIGN_OR_RETURN(result.service, api::DecodeService(*service));
  return {};
}

kube::KubeStatus ActionRunner::Do(const PointService& action, const Batch& batch,
                                  BatchResult& result) const {
  const auto service = client_.Patch(kube::kServices, KeyOf(batch, CoordinatorName(batch.job.meta)),
                                     kube::PatchType::kMerge,
                                     PointServicePatch(action.term, action.resource_version));
  if (!service) return std::unexpected(InContext("point the Service", service.error()));
  ASSIGN_OR_RETURN(result.service, api::DecodeService(*service));
  return {};
}

kube::KubeStatus ActionRunner::Do(const DeleteService& action, const Batch& batch,
                                  BatchResult& result) const {
  const std::string name = CoordinatorName(batch.job.meta);
  const auto deleted = client_.Delete(kube::kServices, KeyOf(batch, name), {.uid = action.uid});
  const bool gone = !deleted && (deleted.error().code == ErrorCode::kNotFound ||
                                 deleted.error().code == ErrorCode::kConflict);
  if (!deleted && !gone) {
    return std::unexpected(InContext("delete Service " + name, deleted.error()));
  }
  result.service_deleted = true;
  return {};
}

kube::KubeStatus ActionRunner::CreatePod(const json& pod, const Batch& batch,
                                         BatchResult& result) const {
  const std::string name = pod.at("metadata").at("name");
  auto created = client_.Create(kube::kPods, pod, {.deadline = kPodDeadline});
  if (!created) result.unanswered = WhyUnanswered("create pod " + name, created.error());
  if (!created && created.error().code == ErrorCode::kAlreadyExists) {
    created = client_.Get(kube::kPods, KeyOf(batch, name));
    if (created && !IsOwnedBy(*created, batch.job.meta)) {
      return std::unexpected(TakenName("pod", name));
    }
  }
  if (!created) return std::unexpected(InContext("create pod " + name, created.error()));
  ASSIGN_OR_RETURN(api::Pod decoded, api::DecodePod(*created, defaults_.gpu_resource));
  result.created.push_back(std::move(decoded));
  log::Info("pod created", {{"job", JobOf(batch)}, {"pod", name}});
  return {};
}

kube::KubeStatus ActionRunner::Do(const CreateCoordinator& action, const Batch& batch,
                                  BatchResult& result) const {
  return CreatePod(
      CoordinatorPod(batch.job, action.term, batch.job.status.coordinator_image, defaults_), batch,
      result);
}

kube::KubeStatus ActionRunner::Do(const CreateLearner& action, const Batch& batch,
                                  BatchResult& result) const {
  const auto& training = batch.job.status.training;
  if (!training) {
    return std::unexpected(kube::KubeError(ErrorCode::kInternal, "the job was never admitted"));
  }
  return CreatePod(LearnerPod(batch.job, *training, batch.job.status.coordinator_term,
                              action.number, action.node, action.coordinator_ip, defaults_),
                   batch, result);
}

kube::KubeStatus ActionRunner::Do(const OpenGate& action, const Batch& batch,
                                  BatchResult& result) const {
  json gates = json::array();
  for (const std::string& gate : action.gates_left) gates.push_back({{"name", gate}});
  const json patch = {
      {"metadata", {{"uid", action.uid}, {"resourceVersion", action.resource_version}}},
      {"spec", {{"schedulingGates", std::move(gates)}}}};
  const auto opened =
      client_.Patch(kube::kPods, KeyOf(batch, action.pod), kube::PatchType::kMerge, patch);
  if (!opened) {
    const std::string what = "open the gate of " + action.pod;
    result.unanswered = WhyUnanswered(what, opened.error());
    return std::unexpected(InContext(what, opened.error()));
  }
  ASSIGN_OR_RETURN(api::Pod decoded, api::DecodePod(*opened, defaults_.gpu_resource));
  result.opened.push_back(std::move(decoded));
  log::Info("gate opened", {{"job", JobOf(batch)}, {"pod", action.pod}});
  return {};
}

kube::KubeStatus ActionRunner::Do(const DeletePod& action, const Batch& batch,
                                  BatchResult& result) const {
  kube::DeleteOptions options{.uid = action.uid};
  if (action.grace) options.grace_period = *action.grace;
  const auto deleted = client_.Delete(kube::kPods, KeyOf(batch, action.pod), options);
  // Gone, or another one by now: either way the one that was meant is no more.
  const bool gone = !deleted && (deleted.error().code == ErrorCode::kNotFound ||
                                 deleted.error().code == ErrorCode::kConflict);
  if (!deleted && !gone) {
    return std::unexpected(InContext("delete pod " + action.pod, deleted.error()));
  }
  result.deleted.push_back(action.pod);
  log::Info("pod deleted", {{"job", JobOf(batch)}, {"pod", action.pod}, {"why", action.why}});
  return {};
}

kube::KubeStatus ActionRunner::Do(const DeleteJob&, const Batch& batch, BatchResult& result) const {
  // Only as it was read: who has raised its time meanwhile keeps it.
  const api::ObjectMeta& read = result.job ? result.job->meta : batch.job.meta;
  const auto deleted = client_.Delete(kJobs, KeyOf(batch, read.name),
                                      {.uid = read.uid, .resource_version = read.resource_version});
  if (!deleted && deleted.error().code != ErrorCode::kNotFound) {
    return std::unexpected(InContext("delete the job", deleted.error()));
  }
  log::Info("job deleted",
            {{"job", JobOf(batch)}, {"why", "its ttlSecondsAfterFinished are over"}});
  return {};
}

}  // namespace pliant::controller
