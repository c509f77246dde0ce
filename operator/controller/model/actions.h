#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "operator/api/meta.h"
#include "operator/api/pod.h"

// What a decision on a job can ask for. Values: a test compares them; the action runner alone knows
// how each is done. All else that the operator has to know of an action stands here, with it.
namespace pliant::controller {

struct ActionProperties {
  bool makes_pod = false;        // pods' admission webhooks have a say in it: some take seconds
  bool needs_template = false;   // of the job's pods, which is too large to be kept
  bool serves_learners = false;  // granted learners wait for it
  // What is planned next depends on whether it was done: a pod that was created counts, and one
  // whose gate is open holds its GPUs.
  bool must_be_known = false;
};

// What an action makes of one object of the job. It counts from when the action is begun until the
// stores show it.
struct Effect {
  enum class Kind : std::uint8_t { kPodCreated, kGateOpened, kPodDeleted, kServiceDeleted };

  Kind kind = Kind::kPodCreated;
  std::string name;                     // of the pod or the Service
  api::Pod pod;                         // kPodCreated: as far as a decision needs to know it
  std::string replaced_version;         // kGateOpened: of the pod
  std::vector<std::string> gates_left;  // kGateOpened
  bool operator==(const Effect&) const = default;
};

// Has the API server check a learner's pod without keeping it.
struct CheckTemplate {
  static constexpr ActionProperties kProperties{.makes_pod = true, .needs_template = true};
  bool operator==(const CheckTemplate&) const = default;
};
// Asks the events of a pod why its volumes cannot be mounted.
struct FindMountCause {
  static constexpr ActionProperties kProperties{};
  std::string pod;
  std::string uid;
  bool operator==(const FindMountCause&) const = default;
};
// Asks whether the job has this pod, where what the stores show of it may be old.
struct LookForPod {
  static constexpr ActionProperties kProperties{};
  std::string pod;
  std::string uid;  // "": whichever has the name
  bool operator==(const LookForPod&) const = default;
};
// Makes both Secrets of a term. They belong to the job's Service, and go with it; so do the network
// policies. Empty `service_uid`: to the one that was made just before.
struct CreateSecrets {
  static constexpr ActionProperties kProperties{.serves_learners = true};
  std::int64_t term = 0;
  std::string service_uid;
  bool operator==(const CreateSecrets&) const = default;
};
// Makes the job's network policies, or renews them, if the operator is to make any.
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
// Lets the Service lead to the coordinator of another term.
struct PointService {
  static constexpr ActionProperties kProperties{.serves_learners = true};
  std::int64_t term = 0;
  std::string resource_version;
  bool operator==(const PointService&) const = default;
};
// With all that belongs to it.
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
  std::string node;
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
  std::optional<std::chrono::seconds> grace;  // other than the pod's own
  std::string why;                            // for the log
  Effect EffectOn(const api::ObjectMeta& job, api::WallTime now) const;
  bool operator==(const DeletePod&) const = default;
};
// The job itself: it has finished, and its time is up.
struct DeleteJob {
  static constexpr ActionProperties kProperties{};
  bool operator==(const DeleteJob&) const = default;
};

using Action = std::variant<CheckTemplate, FindMountCause, LookForPod, CreateSecrets,
                            PutNetworkPolicies, CreateService, PointService, DeleteService,
                            CreateCoordinator, CreateLearner, OpenGate, DeletePod, DeleteJob>;

const ActionProperties& PropertiesOf(const Action& action);

// Of `action` on `job`, if it is begun `now`; nothing: it changes no pod and does not delete the
// Service.
std::optional<Effect> EffectOf(const Action& action, const api::ObjectMeta& job, api::WallTime now);

}  // namespace pliant::controller
