#include "operator/controller/actions/action_runner.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/log.h"
#include "operator/api/fields.h"
#include "operator/controller/actions/server_answers.h"
#include "operator/controller/lifecycle/admission.h"
#include "operator/controller/model/mount_cause.h"
#include "operator/controller/model/names.h"
#include "operator/controller/objects/coordinator_objects.h"

namespace pliant::controller {
namespace {

using nlohmann::json;

// Admission webhooks have 10 s by default. A pod that is created late does no harm: it is gated, or
// its term may be over.
constexpr std::chrono::seconds kPodDeadline{12};

api::WallTime Now() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
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

bool LacksTemplate(const api::ElasticTrainingJob& job) {
  const api::LearnerTemplate& of_job = job.spec.learner_template;
  return of_job.json.empty() && !of_job.hash.empty();
}

struct ServerAccess {
  kube::KubeClient& client;
  const PodDefaults& defaults;
  const MasterKeys& keys;
};

// The calls to the API server that one batch needs. Only this class implements the actions. All
// constructor arguments outlive it.
class BatchCalls {
 public:
  BatchCalls(ServerAccess server, const Batch& batch, BatchResult& result)
      : client_(server.client),
        defaults_(server.defaults),
        keys_(server.keys),
        job_(&batch.job),
        result_(result) {}

  kube::KubeStatus WriteStatus() {
    const bool is_understood = job_->unreadable_status.empty();
    const json patch = {
        {"metadata", {{"resourceVersion", job_->meta.resource_version}, {"uid", job_->meta.uid}}},
        {"status",
         is_understood ? api::EncodeStatus(job_->status) : api::EncodeRemark(job_->status)}};
    ASSIGN_OR_RETURN(const json written, client_.Patch(kJobs, KeyOf(job_->meta.name), patch,
                                                       {.subresource = "status"}));
    ASSIGN_OR_RETURN(result_.job, api::DecodeJob(written, defaults_.jobs));
    return {};
  }

  kube::KubeStatus Run(const Action& action) {
    if (PropertiesOf(action).needs_template && LacksTemplate(*job_)) {
      RETURN_IF_ERROR(FetchTemplate());
    }
    return std::visit([this](const auto& what) { return Do(what); }, action);
  }

  // Finds the outcome of `action`; it stays unknown if the server does not say.
  kube::KubeStatus Resolve(const Action& action) {
    const auto* gate = std::get_if<OpenGate>(&action);
    return gate != nullptr ? ResolveGate(*gate)
                           : FindCreated(EffectOf(action, job_->meta, {})->name);
  }

 private:
  kube::KubeStatus Do(const CheckTemplate&) {
    ASSIGN_OR_RETURN(const api::FrozenTraining training, FrozenOrNew(*job_));
    const json pod = LearnerPod(*job_, training, /*term=*/1, job_->status.objects.next_learner,
                                /*place=*/{.node = "any", .hostname = "any"},
                                /*coordinator_ip=*/"0.0.0.0", defaults_);
    const auto checked = client_.Create(
        kube::kPods, pod, {.dry_run = true, .strict = true, .deadline = kPodDeadline});
    if (checked) {
      result_.template_refusal = "";
      LookAtAdmitted(*checked);
    } else if (LacksGpusOfQuota(checked.error(), GpuResourceOf(*job_, defaults_))) {
      // The server checks quotas last, after it has found all else to be right.
      result_.template_refusal = "";
    } else if (RefusesPod(checked.error())) {
      result_.template_refusal = checked.error().message;
    } else if (checked.error().code == ErrorCode::kAlreadyExists) {
      result_.template_refusal = "";  // the server takes names last, too
    } else {
      result_.template_unchecked = WhyUnanswered("check the pod template", checked.error());
      return std::unexpected(InContext("check the pod template", checked.error()));
    }
    return {};
  }

  // Only explains a problem that exists already: an error here stops nothing else.
  kube::KubeStatus Do(const FindMountCause& action) {
    std::string& cause = result_.mount_causes[action.pod];
    const auto page = client_.List(kube::kEvents, job_->meta.name_space,
                                   {.field_selector = "regarding.uid=" + action.uid});
    if (!page) {
      log::Warning("events of a pod cannot be read",
                   {{"job", JobName()}, {"pod", action.pod}, {"error", page.error().message}});
      return {};
    }
    cause = MountCauseIn(page->items);
    return {};
  }

  kube::KubeStatus Do(const LookForPod& action) {
    kube::KubeResult<api::Pod> found = ReadPod(action.pod);
    if (!found && found.error().code != ErrorCode::kNotFound) {
      return std::unexpected(found.error());
    }
    const bool is_it = found && IsControlledBy(found->meta, job_->meta) &&
                       (action.uid.empty() || found->meta.uid == action.uid);
    if (is_it) {
      result_.found.push_back(*std::move(found));
    } else {
      result_.gone.push_back(action);
    }
    return {};
  }

  kube::KubeStatus Do(const CreateSecrets& action) {
    const std::string& service = result_.service ? result_.service->meta.uid : action.service_uid;
    const api::ObjectMeta& job = job_->meta;
    ASSIGN_OR_RETURN(const JobCredentials credentials, MakeJobCredentials(keys_, job.uid, Now()));
    RETURN_IF_ERROR(CreateSecret(CoordinatorSecret(job, action.term, service, credentials)));
    return CreateSecret(LearnerSecret(job, action.term, service, credentials));
  }

  kube::KubeStatus Do(const PutNetworkPolicies& action) {
    if (!defaults_.network) return {};
    const std::string& service = result_.service ? result_.service->meta.uid : action.service_uid;
    for (const json& policy : NetworkPolicies(job_->meta, service, *defaults_.network)) {
      RETURN_IF_ERROR(PutNetworkPolicy(policy));
    }
    return {};
  }

  kube::KubeStatus Do(const CreateService& action) {
    auto service = client_.Create(kube::kServices, CoordinatorService(job_->meta, action.term));
    if (!service && service.error().code == ErrorCode::kAlreadyExists) {
      const std::string name = CoordinatorName(job_->meta);
      service = client_.Get(kube::kServices, KeyOf(name));
      if (service && !IsOwnedBy(*service, job_->meta)) {
        return std::unexpected(TakenName("Service", name));
      }
    }
    if (!service) return std::unexpected(InContext("create the Service", service.error()));
    ASSIGN_OR_RETURN(result_.service, api::DecodeService(*service));
    return {};
  }

  kube::KubeStatus Do(const PointService& action) {
    const auto service = client_.Patch(kube::kServices, KeyOf(CoordinatorName(job_->meta)),
                                       PointServicePatch(action.term, action.resource_version));
    if (!service) return std::unexpected(InContext("point the Service", service.error()));
    ASSIGN_OR_RETURN(result_.service, api::DecodeService(*service));
    return {};
  }

  kube::KubeStatus Do(const DeleteService& action) {
    const std::string name = CoordinatorName(job_->meta);
    const auto deleted = client_.Delete(kube::kServices, KeyOf(name), {.uid = action.uid});
    if (!deleted && !IsGone(deleted.error())) {
      return std::unexpected(InContext("delete Service " + name, deleted.error()));
    }
    result_.service_deleted = true;
    return {};
  }

  kube::KubeStatus Do(const CreateCoordinator& action) {
    return CreatePod(
        CoordinatorPod(*job_, action.term, job_->status.objects.coordinator_image, defaults_));
  }

  kube::KubeStatus Do(const CreateLearner& action) {
    const auto& training = job_->status.training;
    if (!training) {
      return std::unexpected(kube::KubeError(ErrorCode::kInternal, "the job was never admitted"));
    }
    return CreatePod(LearnerPod(*job_, *training, job_->status.objects.coordinator_term,
                                action.number, action.place, action.coordinator_ip, defaults_));
  }

  kube::KubeStatus Do(const OpenGate& action) {
    json gates = json::array();
    for (const std::string& gate : action.gates_left) gates.push_back({{"name", gate}});
    const json patch = {
        {"metadata", {{"uid", action.uid}, {"resourceVersion", action.resource_version}}},
        {"spec", {{"schedulingGates", std::move(gates)}}}};
    const auto opened = client_.Patch(kube::kPods, KeyOf(action.pod), patch);
    if (!opened) {
      const std::string what = "open the gate of " + action.pod;
      result_.unanswered = WhyUnanswered(what, opened.error());
      return std::unexpected(InContext(what, opened.error()));
    }
    ASSIGN_OR_RETURN(api::Pod decoded, api::DecodePod(*opened, defaults_.gpu_resource));
    result_.opened.push_back(std::move(decoded));
    log::Info("gate opened", {{"job", JobName()}, {"pod", action.pod}});
    return {};
  }

  kube::KubeStatus Do(const DeletePod& action) {
    kube::DeleteOptions options{.uid = action.uid};
    if (action.grace) options.grace_period = *action.grace;
    const auto deleted = client_.Delete(kube::kPods, KeyOf(action.pod), options);
    // Gone, or replaced by another one: in both cases the pod that was meant no longer exists.
    if (!deleted && !IsGone(deleted.error())) {
      return std::unexpected(InContext("delete pod " + action.pod, deleted.error()));
    }
    result_.deleted.push_back(action.pod);
    log::Info("pod deleted", {{"job", JobName()}, {"pod", action.pod}, {"why", action.why}});
    return {};
  }

  kube::KubeStatus Do(const DeleteJob&) {
    // Only the version that was read: if ttlSecondsAfterFinished was raised meanwhile, the job
    // stays.
    const api::ObjectMeta& read = result_.job ? result_.job->meta : job_->meta;
    const auto deleted = client_.Delete(
        kJobs, KeyOf(read.name), {.uid = read.uid, .resource_version = read.resource_version});
    if (!deleted && deleted.error().code != ErrorCode::kNotFound) {
      return std::unexpected(InContext("delete the job", deleted.error()));
    }
    log::Info("job deleted",
              {{"job", JobName()}, {"why", "its ttlSecondsAfterFinished have passed"}});
    return {};
  }

  kube::NamespacedName KeyOf(const std::string& name) const {
    return {job_->meta.name_space, name};
  }

  std::string JobName() const { return job_->meta.name_space + "/" + job_->meta.name; }

  // kConflict: the job has another template than the decision was about.
  kube::KubeStatus FetchTemplate() {
    const auto found = client_.Get(kJobs, KeyOf(job_->meta.name));
    if (!found) return std::unexpected(InContext("fetch the template of the job", found.error()));
    ASSIGN_OR_RETURN(api::ElasticTrainingJob fetched, api::DecodeJob(*found, defaults_.jobs));
    if (fetched.spec.learner_template.hash != job_->spec.learner_template.hash) {
      return std::unexpected(
          kube::KubeError(ErrorCode::kConflict, "the job's template has changed"));
    }
    whole_job_ = *job_;
    whole_job_->spec.learner_template.json = found->at("spec").at("template").dump();
    job_ = &*whole_job_;
    return {};
  }

  // The server may admit more than was sent: webhooks, defaults and classes add to it.
  void LookAtAdmitted(const json& pod) {
    const std::string& gpu_resource = GpuResourceOf(*job_, defaults_);
    auto needs = api::ReadNeedsOfPod(pod, gpu_resource);
    if (!needs) return;  // then only the template's own needs are known
    const std::int64_t gpus = needs->resources.gpus;
    if (gpus != job_->spec.elastic.gpus_per_learner) {
      result_.template_refusal = Format(
          "a learner's pod would take {} of {}, and spec.elastic.gpusPerLearner is {}: only "
          "the container \"{}\" may ask for it",
          gpus, gpu_resource, job_->spec.elastic.gpus_per_learner, kLearnerContainer);
      return;
    }
    result_.admitted_needs = std::make_shared<const planner::PodNeeds>(*std::move(needs));
  }

  kube::KubeStatus CreatePod(const json& pod) {
    const std::string name = pod.at("metadata").at("name");
    auto created = client_.Create(kube::kPods, pod, {.deadline = kPodDeadline});
    if (!created) result_.unanswered = WhyUnanswered("create pod " + name, created.error());
    if (!created && created.error().code == ErrorCode::kAlreadyExists) {
      created = client_.Get(kube::kPods, KeyOf(name));
      if (created && !IsOwnedBy(*created, job_->meta)) {
        return std::unexpected(TakenName("pod", name));
      }
    }
    if (!created) return std::unexpected(InContext("create pod " + name, created.error()));
    ASSIGN_OR_RETURN(api::Pod decoded, api::DecodePod(*created, defaults_.gpu_resource));
    result_.created.push_back(std::move(decoded));
    log::Info("pod created", {{"job", JobName()}, {"pod", name}});
    return {};
  }

  kube::KubeResult<api::Pod> ReadPod(const std::string& name) {
    const auto found = client_.Get(kube::kPods, KeyOf(name));
    if (!found) return std::unexpected(InContext("look for pod " + name, found.error()));
    ASSIGN_OR_RETURN(api::Pod pod, api::DecodePod(*found, defaults_.gpu_resource));
    return pod;
  }

  // As ReadPod, for a pod whose state is unknown until then.
  kube::KubeResult<api::Pod> ReadPodInDoubt(const std::string& name) {
    kube::KubeResult<api::Pod> found = ReadPod(name);
    result_.outcome_unknown = !found && ReportsNothing(found.error());
    return found;
  }

  kube::KubeStatus FindCreated(const std::string& name) {
    kube::KubeResult<api::Pod> found = ReadPodInDoubt(name);
    if (!found && found.error().code == ErrorCode::kNotFound) return {};
    if (!found) return std::unexpected(found.error());
    if (!IsControlledBy(found->meta, job_->meta)) return std::unexpected(TakenName("pod", name));
    result_.created.push_back(*std::move(found));
    return {};
  }

  // Opening a gate is conditional on the version of the pod that was read, so it cannot be done
  // twice. A refusal of another try says nothing about the one before: admission webhooks run
  // before the version is checked.
  kube::KubeStatus ResolveGate(const OpenGate& action) {
    const kube::KubeStatus done = Do(action);
    if (done || IsGone(done.error()) || done.error().code == ErrorCode::kCancelled) return done;
    const bool tried = !LeavesUnknown(done.error()) && done.error().code != ErrorCode::kThrottled;
    if (!tried && result_.unanswered.empty()) {
      result_.outcome_unknown = true;
      return done;
    }
    RETURN_IF_ERROR(LookAtGate(action));
    const bool refused = result_.unanswered.empty() && result_.opened.empty();
    return refused ? done : kube::KubeStatus();
  }

  // Reads from the pod whether the gate is open: all else that the job needs, including messages to
  // its owner, must not wait until an admission webhook answers.
  kube::KubeStatus LookAtGate(const OpenGate& action) {
    ASSIGN_OR_RETURN(api::Pod pod, ReadPodInDoubt(action.pod));
    if (pod.meta.uid == action.uid && pod.meta.resource_version == action.resource_version) {
      return {};
    }
    result_.unanswered.clear();
    if (pod.meta.uid != action.uid || pod.scheduling_gates != action.gates_left) {
      return std::unexpected(
          kube::KubeError(ErrorCode::kConflict, "pod " + action.pod + " has changed"));
    }
    result_.opened.push_back(std::move(pod));
    return {};
  }

  // The Secret's name contains the term, which no other attempt has. The operator may not read
  // Secrets, so it cannot know whether an existing one is ours: the next attempt creates another
  // one.
  kube::KubeStatus CreateSecret(const json& secret) {
    const auto created = client_.Create(kube::kSecrets, secret);
    if (created) return {};
    const std::string name = secret.at("metadata").at("name");
    if (created.error().code == ErrorCode::kAlreadyExists) {
      return std::unexpected(TakenName("Secret", name));
    }
    return std::unexpected(InContext("create Secret " + name, created.error()));
  }

  // An existing policy of the job is updated: an operator with other settings may have written it.
  kube::KubeStatus PutNetworkPolicy(const json& policy) {
    const auto created = client_.Create(kube::kNetworkPolicies, policy);
    if (created) return {};
    const json& metadata = policy.at("metadata");
    const std::string name = metadata.at("name");
    if (created.error().code != ErrorCode::kAlreadyExists) {
      return std::unexpected(InContext("create NetworkPolicy " + name, created.error()));
    }
    const auto found = client_.Get(kube::kNetworkPolicies, KeyOf(name));
    if (!found) return std::unexpected(InContext("look for NetworkPolicy " + name, found.error()));
    const std::string service = metadata.at("ownerReferences").at(0).at("uid");
    if (!IsOwnedBy(*found, job_->meta) && !HasOwner(*found, service)) {
      return std::unexpected(TakenName("NetworkPolicy", name));
    }
    const json patch = {{"metadata",
                         {{"resourceVersion", kube::MetaOf(*found).resource_version},
                          {"ownerReferences", metadata.at("ownerReferences")},
                          {"labels", metadata.at("labels")}}},
                        {"spec", policy.at("spec")}};
    const auto patched = client_.Patch(kube::kNetworkPolicies, KeyOf(name), patch);
    if (!patched) {
      return std::unexpected(InContext("update NetworkPolicy " + name, patched.error()));
    }
    return {};
  }

  kube::KubeClient& client_;
  const PodDefaults& defaults_;
  const MasterKeys& keys_;
  const api::ElasticTrainingJob* job_;                // as it was read, or `whole_job_`
  std::optional<api::ElasticTrainingJob> whole_job_;  // with its template, once that was fetched
  BatchResult& result_;
};

}  // namespace

bool IsAllDone(const BatchResult& result, bool unanswered_before) {
  const bool unanswered = unanswered_before || !result.unanswered.empty();
  return !result.error && !(unanswered && result.created.empty() && result.opened.empty());
}

BatchResult ActionRunner::Run(const Batch& batch) const {
  BatchResult result;
  BatchCalls calls({client_, defaults_, keys_}, batch, result);
  if (batch.write_status) {
    if (const kube::KubeStatus written = calls.WriteStatus(); !written) {
      result.error = InContext("write status", written.error());
      return result;
    }
  }
  const TimePoint began = now_();
  for (std::size_t index = 0; index < batch.actions.size(); ++index) {
    const Action& action = batch.actions[index];
    const bool is_more = std::holds_alternative<CreateLearner>(action) && !result.created.empty();
    if (is_more && now_() - began > kMaxMaking) continue;
    const kube::KubeStatus done = calls.Run(action);
    if (done) continue;
    result.error = done.error();
    result.failed = index;
    result.outcome_unknown = PropertiesOf(action).must_be_known && LeavesUnknown(done.error());
    result.lacks_quota = std::holds_alternative<CreateLearner>(action) &&
                         LacksGpusOfQuota(done.error(), GpuResourceOf(batch.job, defaults_));
    break;
  }
  return result;
}

BatchResult ActionRunner::ResolveUnknownOutcome(const Batch& batch) const {
  BatchResult result;
  BatchCalls calls({client_, defaults_, keys_}, batch, result);
  const kube::KubeStatus done = calls.Resolve(batch.actions.front());
  if (done) return result;
  result.error = done.error();
  result.failed = 0;
  return result;
}

}  // namespace pliant::controller
