#include "operator/controller/rounds/orphans.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/bounded.h"
#include "base/earliest.h"
#include "base/log.h"
#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

using std::chrono::seconds;

// The garbage collector usually needs less.
constexpr seconds kFirstLook{30};
constexpr seconds kNextLook{60};
constexpr std::size_t kMaxLooks = 16;  // at once
// Nobody waits for a checkpoint of a job that is gone; its own grace period may be an hour.
constexpr seconds kGrace{60};

// Labels hold at most 63 characters: the name of a job with a longer one is not known.
constexpr std::size_t kCutLabel = 63;

bool HasNoOtherOwner(const api::ObjectMeta& object, const std::string& job_uid) {
  return !object.has_other_owner && (object.owner_uid.empty() || object.owner_uid == job_uid);
}

bool HasAccountOfOurs(const api::Pod& pod) {
  if (pod.mounts_token) return false;
  // A template may name the account of learners.
  return LearnerNumber(pod) || !pod.has_own_account;
}

bool MayRemove(const api::Pod& pod, const api::ObjectMeta& job) {
  return IsMadeFor(pod, job) && HasNoOtherOwner(pod.meta, job.uid) && HasAccountOfOurs(pod);
}

bool MayRemove(const api::Service& service, const api::ObjectMeta& job) {
  return service.meta.name == CoordinatorName(job) && HasNoOtherOwner(service.meta, job.uid);
}

}  // namespace

template <typename T>
std::optional<Orphans::JobUid> Orphans::JobOf(const T& object) {
  if (object == nullptr) return std::nullopt;
  const auto uid = object->meta.labels.find(std::string(kLabelJobUid));
  if (uid == object->meta.labels.end()) return std::nullopt;
  return JobUid{.name_space = object->meta.name_space, .uid = uid->second};
}

void Orphans::Forget(const JobUid& job) {
  const auto remains = by_job_.find(job);
  if (remains->second.pods.empty() && remains->second.service == nullptr) by_job_.erase(remains);
}

void Orphans::See(const kube::Store<api::Pod>::Change& change) {
  const auto before = JobOf(change.before);
  const auto after = JobOf(change.after);
  if (after) by_job_[*after].pods[change.key.name] = change.after;
  if (!before || before == after) return;
  by_job_[*before].pods.erase(change.key.name);
  Forget(*before);
}

void Orphans::See(const kube::Store<api::Service>::Change& change) {
  const auto before = JobOf(change.before);
  const auto after = JobOf(change.after);
  if (after) by_job_[*after].service = change.after;
  if (!before || before == after) return;
  by_job_[*before].service = nullptr;
  Forget(*before);
}

std::optional<Orphans::Look> Orphans::LookFor(const JobUid& job, const Remains& remains) const {
  const api::ObjectMeta& any =
      remains.service != nullptr ? remains.service->meta : remains.pods.begin()->second->meta;
  const auto name = any.labels.find(std::string(kLabelJob));
  if (name == any.labels.end() || name->second.empty() || name->second.size() >= kCutLabel) {
    return std::nullopt;
  }
  Look look{.job = {.name_space = job.name_space, .name = name->second, .uid = job.uid},
            .remove = remains.missed};
  for (const auto& [pod_name, pod] : remains.pods) {
    if (MayRemove(*pod, look.job) && !pod->deleting()) look.pods.push_back(pod);
  }
  if (remains.service != nullptr && MayRemove(*remains.service, look.job)) {
    look.service = remains.service;
  }
  if (look.pods.empty() && look.service == nullptr) return std::nullopt;
  return look;
}

std::optional<api::WallTime> Orphans::Reconcile(api::WallTime now) {
  std::optional<api::WallTime> again_at;
  std::vector<Look> looks;
  for (auto& [job, remains] : by_job_) {
    if (table_.HasJob(job.uid)) {
      remains.look_at.reset();
      remains.missed = remains.found = false;
      continue;
    }
    // The clock may have been set back.
    if (!remains.look_at || *remains.look_at > now + kNextLook) remains.look_at = now + kFirstLook;
    if (now < *remains.look_at) {
      KeepEarliest(*remains.look_at, again_at);
      continue;
    }
    if (is_under_way_ || looks.size() == kMaxLooks) continue;  // a round follows
    auto look = LookFor(job, remains);
    remains.look_at = now + kNextLook;
    KeepEarliest(*remains.look_at, again_at);
    if (look) looks.push_back(*std::move(look));
  }
  if (!looks.empty()) Start(std::move(looks));
  return again_at;
}

void Orphans::Start(std::vector<Look> looks) {
  is_under_way_ = true;
  auto on_end =
      lifetime_.Guard([this](const std::vector<Look>& done, const std::vector<Finding>& findings) {
        is_under_way_ = false;
        for (std::size_t index = 0; index < done.size(); ++index) {
          OnFound(done[index], findings[index]);
        }
        parts_.request_round();
      });
  parts_.api_calls([looks = std::move(looks), &client = parts_.client, &loop = parts_.loop,
                    on_end = std::move(on_end)] {
    std::vector<Finding> findings;
    for (const Look& look : looks) {
      findings.push_back(Find(look.job, client));
      if (findings.back() == Finding::kGone && look.remove) Remove(look, client);
    }
    loop.Post([on_end, looks, findings]() mutable { on_end(looks, findings); });
  });
}

void Orphans::OnFound(const Look& look, Finding finding) {
  const auto remains = by_job_.find({look.job.name_space, look.job.uid});
  if (remains == by_job_.end()) return;
  remains->second.missed = finding == Finding::kGone;
  remains->second.found = finding == Finding::kThere;
}

// Another job may have the name by now.
Orphans::Finding Orphans::Find(const api::ObjectMeta& job, kube::KubeClient& client) {
  const auto found = client.Get(kJobs, {job.name_space, job.name});
  if (found) return kube::MetaOf(*found).uid == job.uid ? Finding::kThere : Finding::kGone;
  if (found.error().code != ErrorCode::kNotFound) return Finding::kUnknown;
  // A server that does not know the kind has no job either.
  return client.List(kJobs, job.name_space, {.limit = 1}) ? Finding::kGone : Finding::kUnknown;
}

void Orphans::Remove(const Look& look, kube::KubeClient& client) {
  const std::string job = look.job.name_space + "/" + look.job.name;
  const auto tell = [&](std::string_view kind, const std::string& name,
                        const kube::KubeStatus& done) {
    const bool is_gone = !done && (done.error().code == ErrorCode::kNotFound ||
                                   done.error().code == ErrorCode::kConflict);
    if (done || is_gone) {
      log::Warning("removed what a deleted job has left",
                   {{"job", job}, {"uid", look.job.uid}, {"kind", kind}, {"name", name}});
    } else {
      log::Warning("cannot remove what a deleted job has left; retrying",
                   {{"job", job}, {"name", name}, {"error", done.error().message}});
    }
  };
  for (const auto& pod : look.pods) {
    tell("Pod", pod->meta.name,
         client.Delete(kube::kPods, {pod->meta.name_space, pod->meta.name},
                       {.uid = pod->meta.uid, .grace_period = kGrace}));
  }
  if (look.service != nullptr) {
    const api::ObjectMeta& service = look.service->meta;
    tell("Service", service.name,
         client.Delete(kube::kServices, {service.name_space, service.name}, {.uid = service.uid}));
  }
}

std::vector<metrics::OrphanStats> Orphans::Stats() const {
  std::set<std::string> resources{""};
  for (const planner::PoolView& pool : table_.book().PoolViews()) resources.insert(pool.resource);
  std::map<std::string, std::int64_t> gpus;
  for (const auto& [job, remains] : by_job_) {
    if (remains.found || table_.HasJob(job.uid)) continue;
    for (const auto& [name, pod] : remains.pods) {
      if (pod->ended() || pod->deleting() || !pod->scheduling_gates.empty()) continue;
      for (const std::string& resource : resources) {
        std::int64_t& sum = gpus[job.name_space];
        sum = BoundedSum(sum, pod->requests.GpusOf(resource));
      }
    }
  }
  std::vector<metrics::OrphanStats> stats;
  for (const auto& [name_space, sum] : gpus) {
    if (sum > 0) stats.push_back({.name_space = name_space, .gpus = sum});
  }
  return stats;
}

}  // namespace pliant::controller
