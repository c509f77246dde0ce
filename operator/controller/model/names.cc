#include "operator/controller/model/names.h"

#include <charconv>
#include <limits>

#include "base/format.h"

namespace pliant::controller {
namespace {

constexpr std::size_t kMaxName = 63;

// FNV-1a: stable over versions and machines, which is all that is needed.
std::string Hash(std::string_view text) {
  std::uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return Format("{:08x}", hash);
}

std::string CutAndHashed(const std::string& name, std::size_t max_length) {
  if (name.size() <= max_length) return name;
  return name.substr(0, max_length - 9) + "-" + Hash(name);
}

// <job>-<uid5><suffix>, at most 63 characters.
std::string NameWith(const api::ObjectMeta& job, const std::string& suffix) {
  const std::string tail = "-" + job.uid.substr(0, 5) + suffix;
  return CutAndHashed(job.name, kMaxName - tail.size()) + tail;
}

template <typename Number>
std::optional<Number> NumberInLabel(const api::Pod& pod, std::string_view label) {
  const auto found = pod.meta.labels.find(std::string(label));
  if (found == pod.meta.labels.end()) return std::nullopt;
  const std::string& text = found->second;
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

bool HasLabel(const api::Pod& pod, std::string_view label, std::string_view value) {
  const auto found = pod.meta.labels.find(std::string(label));
  return found != pod.meta.labels.end() && found->second == value;
}

bool HasRoleIn(const api::Pod& pod, const api::ObjectMeta& job, std::string_view role) {
  return HasLabel(pod, kLabelJobUid, job.uid) && HasLabel(pod, kLabelRole, role);
}

bool IsMadeAsLearner(const api::Pod& pod, const api::ObjectMeta& job) {
  const std::optional<int> number = LearnerNumber(pod);
  return HasRoleIn(pod, job, kRoleLearner) && number && *number < kMaxLearnerNumber &&
         pod.meta.name == LearnerPodName(job, *number);
}

bool IsMadeAsCoordinator(const api::Pod& pod, const api::ObjectMeta& job) {
  const std::optional<std::int64_t> term = CoordinatorTerm(pod);
  return HasRoleIn(pod, job, kRoleCoordinator) && term &&
         pod.meta.name == CoordinatorPodName(job, *term);
}

}  // namespace

std::string CoordinatorName(const api::ObjectMeta& job) { return NameWith(job, "-coordinator"); }

std::string CoordinatorPodName(const api::ObjectMeta& job, std::int64_t term) {
  return NameWith(job, "-coordinator-" + std::to_string(term));
}

std::string CoordinatorHost(std::string_view job_uid) {
  return Format("{}.{}", job_uid, kCoordinatorDomain);
}

std::string CoordinatorSecretName(const api::ObjectMeta& job, std::int64_t term) {
  return CoordinatorPodName(job, term);
}

std::string LearnerSecretName(const api::ObjectMeta& job, std::int64_t term) {
  return NameWith(job, "-learner-" + std::to_string(term));
}

std::string LearnerPolicyName(const api::ObjectMeta& job) { return NameWith(job, "-learner"); }

std::string LearnerPodName(const api::ObjectMeta& job, int number) {
  return NameWith(job, "-" + std::to_string(number));
}

std::string JobLabel(const api::ObjectMeta& job) { return CutAndHashed(job.name, kMaxName); }

std::string LearnerSelector(const api::ObjectMeta& job) {
  return Format("{}={},{}={}", kLabelJobUid, job.uid, kLabelRole, kRoleLearner);
}

std::optional<int> LearnerNumber(const api::Pod& pod) {
  return NumberInLabel<int>(pod, kLabelLearner);
}

std::optional<std::int64_t> CoordinatorTerm(const api::Pod& pod) {
  return NumberInLabel<std::int64_t>(pod, kLabelTerm);
}

bool IsControlledBy(const api::ObjectMeta& object, const api::ObjectMeta& job) {
  return object.name_space == job.name_space && object.owner_uid == job.uid &&
         object.owner_name == job.name;
}

bool IsLearnerOf(const api::Pod& pod, const api::ObjectMeta& job) {
  return IsControlledBy(pod.meta, job) && IsMadeAsLearner(pod, job);
}

bool IsCoordinatorOf(const api::Pod& pod, const api::ObjectMeta& job) {
  return IsControlledBy(pod.meta, job) && IsMadeAsCoordinator(pod, job);
}

bool IsMadeFor(const api::Pod& pod, const api::ObjectMeta& job) {
  return IsMadeAsLearner(pod, job) || IsMadeAsCoordinator(pod, job);
}

}  // namespace pliant::controller
