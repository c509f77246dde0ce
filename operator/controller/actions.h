#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

// What a decision on a job can ask for. Values: a test compares them; the action runner alone knows
// how each is done.
namespace pliant::controller {

// Has the API server check a learner's pod without keeping it.
struct CheckTemplate {
  bool operator==(const CheckTemplate&) const = default;
};
// Asks the events of a pod why its volumes cannot be mounted.
struct FindMountCause {
  std::string pod;
  std::string uid;
  bool operator==(const FindMountCause&) const = default;
};
// Asks whether the job has this pod, where what the stores show of it may be old.
struct LookForPod {
  std::string pod;
  std::string uid;  // "": whichever has the name
  bool operator==(const LookForPod&) const = default;
};
// Makes both Secrets of a term. They belong to the job's Service, and go with it; so do the network
// policies. Empty `service_uid`: to the one that was made just before.
struct CreateSecrets {
  std::int64_t term = 0;
  std::string service_uid;
  bool operator==(const CreateSecrets&) const = default;
};
// Makes the job's network policies, or renews them, if the operator is to make any.
struct PutNetworkPolicies {
  std::string service_uid;
  bool operator==(const PutNetworkPolicies&) const = default;
};
struct CreateService {
  std::int64_t term = 0;
  bool operator==(const CreateService&) const = default;
};
// Lets the Service lead to the coordinator of another term.
struct PointService {
  std::int64_t term = 0;
  std::string resource_version;
  bool operator==(const PointService&) const = default;
};
// With all that belongs to it.
struct DeleteService {
  std::string uid;
  bool operator==(const DeleteService&) const = default;
};
struct CreateCoordinator {
  std::int64_t term = 0;
  bool operator==(const CreateCoordinator&) const = default;
};
struct CreateLearner {
  int number = 0;
  std::string node;
  std::string coordinator_ip;
  bool operator==(const CreateLearner&) const = default;
};
struct OpenGate {
  std::string pod;
  std::string uid;
  std::string resource_version;
  std::vector<std::string> gates_left;
  bool operator==(const OpenGate&) const = default;
};
struct DeletePod {
  std::string pod;
  std::string uid;
  std::optional<std::chrono::seconds> grace;  // other than the pod's own
  std::string why;                            // for the log
  bool operator==(const DeletePod&) const = default;
};

// The job itself: it has finished, and its time is up.
struct DeleteJob {
  bool operator==(const DeleteJob&) const = default;
};

using Action = std::variant<CheckTemplate, FindMountCause, LookForPod, CreateSecrets,
                            PutNetworkPolicies, CreateService, PointService, DeleteService,
                            CreateCoordinator, CreateLearner, OpenGate, DeletePod, DeleteJob>;

}  // namespace pliant::controller
