#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "operator/api/meta.h"
#include "operator/api/pod.h"
#include "operator/planner/plan.h"

// The actions that a decision on a job can request. They are values, so that tests can compare
// them. Only the action runner knows how each is carried out; all else that the operator needs to
// know about an action is declared here.
namespace pliant::controller {

struct ActionProperties {
  bool makes_pod = false;        // pod admission webhooks are called: some take seconds
  bool needs_template = false;   // it reads the job's pod template, too large to keep
  bool serves_learners = false;  // granted learners wait for it
  // The next plan depends on whether it was done: a created pod counts, and a pod whose gate is
  // open holds its GPUs.
  bool must_be_known = false;
};

// The change that an action makes to one object of the job. Decisions assume it from the start of
// the action until the stores show it.
struct Effect {
  enum class Kind : std::uint8_t { kPodCreated, kGateOpened, kPodDeleted, kServiceDeleted };

  Kind kind = Kind::kPodCreated;
  std::string name;                     // the name of the pod or the Service
  api::Pod pod;                         // kPodCreated: the fields that decisions read
  std::string replaced_version;         // kGateOpened: the pod's resourceVersion before
  std::vector<std::string> gates_left;  // kGateOpened
  bool operator==(const Effect&) const = default;
};

// Asks the API server to check a learner's pod without creating it (dry run).
struct CheckTemplate {
  static constexpr ActionProperties kProperties{.makes_pod = true, .needs_template = true};
  bool operator==(const CheckTemplate&) const = default;
};
// Reads the events of a pod to find why its volumes cannot be mounted.
struct FindMountCause {
  static constexpr ActionProperties kProperties{};
  std::string pod;
  std::string uid;
  bool operator==(const FindMountCause&) const = default;
};
// Asks the API server whether the job has this pod, because the stores may be out of date.
struct LookForPod {
  static constexpr ActionProperties kProperties{};
  std::string pod;
  std::string uid;  // "": any pod of this name
  bool operator==(const LookForPod&) const = default;
};
// Creates both Secrets of a term. The job's Service owns them, like the network policies, so that
// they are deleted with it. Empty `service_uid`: the Service that was created just before is the
// owner.
struct CreateSecrets {
  static constexpr ActionProperties kProperties{.serves_learners = true};
  std::int64_t term = 0;
  std::string service_uid;
  bool operator==(const CreateSecrets&) const = default;
};
// Creates or updates the job's network policies, if the operator is configured to.
struct PutNetworkPolicies {
  static constexpr ActionProperties kProperties{.serves_learners = true};
  std::string service_uid;
  bool operator==(const PutNetworkPolicies&) const = default;
};
struct CreateService {
  static constexpr ActionProperties kProperties{.serves_learners = true};
  std::int64_t term = 0;
  bool operator==(const CreateService&) const = default;
};
// Points the Service to the coordinator of another term.
struct PointService {
  static constexpr ActionProperties kProperties{.serves_learners = true};
  std::int64_t term = 0;
  std::string resource_version;
  bool operator==(const PointService&) const = default;
};
// Deletes the Service and, by garbage collection, the objects that it owns.
struct DeleteService {
  static constexpr ActionProperties kProperties{};
  std::string uid;
  Effect EffectOn(const api::ObjectMeta& job, api::WallTime now) const;
  bool operator==(const DeleteService&) const = default;
};
struct CreateCoordinator {
  static constexpr ActionProperties kProperties{
      .makes_pod = true, .serves_learners = true, .must_be_known = true};
  std::int64_t term = 0;
  Effect EffectOn(const api::ObjectMeta& job, api::WallTime now) const;
  bool operator==(const CreateCoordinator&) const = default;
};
struct CreateLearner {
  static constexpr ActionProperties kProperties{
      .makes_pod = true, .needs_template = true, .serves_learners = true, .must_be_known = true};
  int number = 0;
  planner::NewLearner place;
  std::string coordinator_ip;
  Effect EffectOn(const api::ObjectMeta& job, api::WallTime now) const;
  bool operator==(const CreateLearner&) const = default;
};
struct OpenGate {
  static constexpr ActionProperties kProperties{.serves_learners = true, .must_be_known = true};
  std::string pod;
  std::string uid;
  std::string resource_version;
  std::vector<std::string> gates_left;
  Effect EffectOn(const api::ObjectMeta& job, api::WallTime now) const;
  bool operator==(const OpenGate&) const = default;
};
struct DeletePod {
  static constexpr ActionProperties kProperties{};
  std::string pod;
  std::string uid;
  std::optional<std::chrono::seconds> grace;  // if not the pod's own
  std::string why;                            // for the log
  Effect EffectOn(const api::ObjectMeta& job, api::WallTime now) const;
  bool operator==(const DeletePod&) const = default;
};
// Deletes the job itself, ttlSecondsAfterFinished after it has finished.
struct DeleteJob {
  static constexpr ActionProperties kProperties{};
  bool operator==(const DeleteJob&) const = default;
};

using Action = std::variant<CheckTemplate, FindMountCause, LookForPod, CreateSecrets,
                            PutNetworkPolicies, CreateService, PointService, DeleteService,
                            CreateCoordinator, CreateLearner, OpenGate, DeletePod, DeleteJob>;

const ActionProperties& PropertiesOf(const Action& action);

// Whether granted learners wait for it, or the check of their template: only such actions wait
// while a job backs off after one of them has failed.
bool ServesLearners(const Action& action);

// The effect of `action` on `job` if it begins `now`; nullopt: it changes no pod and does not
// delete the Service.
std::optional<Effect> EffectOf(const Action& action, const api::ObjectMeta& job, api::WallTime now);

}  // namespace pliant::controller
