#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "operator/api/meta.h"
#include "operator/api/pod.h"

// The names and labels of what belongs to a job (docs/contracts.md §1). They follow from the job
// alone, so that a create that was done twice meets its own object.
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
inline constexpr std::string_view kLabelCredentials = "pliant.dev/credentials";
inline constexpr std::string_view kRoleCoordinator = "coordinator";
inline constexpr std::string_view kRoleLearner = "learner";

// Numbers stay below it, also where somebody else wrote the label.
inline constexpr int kMaxLearnerNumber = 1 << 30;

inline constexpr std::string_view kGate = "pliant.dev/gpu";
inline constexpr std::string_view kLearnerContainer = "learner";
inline constexpr std::string_view kCoordinatorContainer = "coordinator";
// In certificates of version 1 the name of every coordinator, and the domain of the names of
// version 2.
inline constexpr std::string_view kCoordinatorDomain = "coordinator.pliant.internal";
// How a coordinator's certificate names it. 1: as all others. 2: by its job (CoordinatorHost).
inline constexpr int kCredentialsVersion = 2;
inline constexpr std::uint16_t kCoordinatorPort = 8443;
inline constexpr std::uint16_t kCoordinatorPlainPort = 9090;
inline constexpr std::uint16_t kCoordinatorProbePort = 8081;
inline constexpr std::uint16_t kLearnerMetricsPort = 9090;

std::string CoordinatorName(const api::ObjectMeta& job);  // its Service, its policy
std::string CoordinatorPodName(const api::ObjectMeta& job, std::int64_t term);
// "<uid>.coordinator.pliant.internal": whom a job's coordinator proves to be in the TLS handshake.
std::string CoordinatorHost(std::string_view job_uid);
// Of a term: nobody can have made one of the name before, and none is written twice.
std::string CoordinatorSecretName(const api::ObjectMeta& job, std::int64_t term);
std::string LearnerSecretName(const api::ObjectMeta& job, std::int64_t term);
std::string LearnerPolicyName(const api::ObjectMeta& job);
std::string LearnerPodName(const api::ObjectMeta& job, int number);

// The name, cut and hashed if it is longer than a label's value may be.
std::string JobLabel(const api::ObjectMeta& job);
// "pliant.dev/job-uid=…,pliant.dev/role=learner"
std::string LearnerSelector(const api::ObjectMeta& job);

// The number in a pod's learner label, or the term in a coordinator's; nothing if there is none.
std::optional<int> LearnerNumber(const api::Pod& pod);
std::optional<std::int64_t> CoordinatorTerm(const api::Pod& pod);
// Whether the coordinator's certificate names its job. Operators of version 1 did not label theirs.
bool NamesItsJob(const api::Pod& coordinator);
// Whether `object` is in the job's namespace and says that the job controls it.
bool IsControlledBy(const api::ObjectMeta& object, const api::ObjectMeta& job);
// Whether the operator would have made `pod` for the job: it is controlled by it, and has the
// labels and the name of its number. Labels and references alone are written by whoever may make a
// pod.
bool IsLearnerOf(const api::Pod& pod, const api::ObjectMeta& job);
bool IsCoordinatorOf(const api::Pod& pod, const api::ObjectMeta& job);

}  // namespace pliant::controller
