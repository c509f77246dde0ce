#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "operator/api/meta.h"
#include "operator/api/pod.h"

// The names and labels of a job's objects (docs/contracts.md §1). They follow from the job alone,
// so that a repeated create meets its own object.
namespace pliant::controller {

inline constexpr std::string_view kJobKind = "ElasticTrainingJob";
inline constexpr std::string_view kJobApiVersion = "pliant.dev/v1alpha1";

inline constexpr std::string_view kLabelManagedBy = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kManagedBy = "pliant";
inline constexpr std::string_view kLabelPartOf = "app.kubernetes.io/part-of";
inline constexpr std::string_view kPartOf = "pliant";
inline constexpr std::string_view kLabelComponent = "app.kubernetes.io/component";
inline constexpr std::string_view kOperatorComponent = "operator";
inline constexpr std::string_view kLabelJob = "pliant.dev/job";
inline constexpr std::string_view kLabelJobUid = "pliant.dev/job-uid";
inline constexpr std::string_view kLabelRole = "pliant.dev/role";
inline constexpr std::string_view kLabelLearner = "pliant.dev/learner";
inline constexpr std::string_view kLabelTerm = "pliant.dev/term";
inline constexpr std::string_view kRoleCoordinator = "coordinator";
inline constexpr std::string_view kRoleLearner = "learner";

// Learner numbers stay below this, even if somebody else wrote the label.
inline constexpr int kMaxLearnerNumber = 1 << 30;

inline constexpr std::string_view kGate = "pliant.dev/gpu";
inline constexpr std::string_view kLearnerContainer = "learner";
inline constexpr std::string_view kCoordinatorContainer = "coordinator";
// The domain of the names in coordinators' certificates (CoordinatorHost).
inline constexpr std::string_view kCoordinatorDomain = "coordinator.pliant.internal";
inline constexpr std::uint16_t kCoordinatorPort = 8443;
inline constexpr std::uint16_t kCoordinatorPlainPort = 9090;
inline constexpr std::uint16_t kCoordinatorProbePort = 8081;
inline constexpr std::uint16_t kLearnerMetricsPort = 9090;

std::string CoordinatorName(const api::ObjectMeta& job);  // names its Service and its policy
std::string CoordinatorPodName(const api::ObjectMeta& job, std::int64_t term);
// "<uid>.coordinator.pliant.internal": the name that a job's coordinator proves in the TLS
// handshake.
std::string CoordinatorHost(std::string_view job_uid);
// Secrets have the term in their names: no earlier attempt made one of the name, and none is
// written twice.
std::string CoordinatorSecretName(const api::ObjectMeta& job, std::int64_t term);
std::string LearnerSecretName(const api::ObjectMeta& job, std::int64_t term);
std::string LearnerPolicyName(const api::ObjectMeta& job);
std::string LearnerPodName(const api::ObjectMeta& job, int number);

// The job's name, cut and hashed if it is too long for a label value.
std::string JobLabel(const api::ObjectMeta& job);
// "pliant.dev/job-uid=…,pliant.dev/role=learner"
std::string LearnerSelector(const api::ObjectMeta& job);

// The number in a pod's learner label, or the term in a coordinator's; nothing if there is none.
std::optional<int> LearnerNumber(const api::Pod& pod);
std::optional<std::int64_t> CoordinatorTerm(const api::Pod& pod);
// Whether `object` is in the job's namespace and says that the job controls it.
bool IsControlledBy(const api::ObjectMeta& object, const api::ObjectMeta& job);
// Whether `pod` is as the operator makes it for the job: the job controls it, and it has the labels
// and the name of its number. Labels and references alone prove nothing: anybody who may create a
// pod can write them.
bool IsLearnerOf(const api::Pod& pod, const api::ObjectMeta& job);
bool IsCoordinatorOf(const api::Pod& pod, const api::ObjectMeta& job);
// Whether it is one of the two, apart from its owner.
bool IsMadeFor(const api::Pod& pod, const api::ObjectMeta& job);

}  // namespace pliant::controller
