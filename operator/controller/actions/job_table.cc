#include "operator/controller/actions/job_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/earliest.h"
#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

std::string KeyIn(const api::ObjectMeta& job, const std::string& name) {
  return job.name_space + "/" + name;
}

kube::NamespacedName Parsed(const std::string& key) {
  const std::size_t slash = key.find('/');
  return {key.substr(0, slash), key.substr(slash + 1)};
}

// The job to act on: with the last spec that was understood, if there is one.
std::shared_ptr<const api::ElasticTrainingJob> KeepReadable(
    std::shared_ptr<const api::ElasticTrainingJob> job,
    const std::shared_ptr<const api::ElasticTrainingJob>& before) {
  if (job->unreadable.empty() || before == nullptr || !before->unreadable.empty()) return job;
  auto kept = std::make_shared<api::ElasticTrainingJob>(*job);
  kept->spec = before->spec;
  kept->meta.generation = before->meta.generation;
  kept->unreadable.clear();
  return kept;
}

// The job as it is being written, but with what its owner has edited meanwhile: a write may wait
// long for its turn.
std::shared_ptr<const api::ElasticTrainingJob> WithNewerSpec(
    std::shared_ptr<const api::ElasticTrainingJob> job, const api::ElasticTrainingJob& stored) {
  if (stored.meta.generation <= job->meta.generation) return job;
  auto edited = std::make_shared<api::ElasticTrainingJob>(stored);
  edited->status = job->status;
  return edited;
}

}  // namespace

JobTable::JobTable(ClusterStores stores, QueueRights rights, std::string gpu_resource)
    : stores_(stores),
      book_(rights, std::move(gpu_resource)),
      pods_by_owner_(stores_.pods.AddIndex([](const api::Pod& pod) {
        const bool ours = pod.meta.labels.contains(std::string(kLabelJobUid));
        return ours ? std::vector<std::string>{pod.meta.owner_uid} : std::vector<std::string>{};
      })) {
  // The stores report every deletion, even of an object that they showed only briefly.
  stores_.jobs.OnChange([this](const auto& change) {
    if (change.after == nullptr) ForgetJob(change.before->meta);
    if (in_use_) stale_.insert(change.key);
  });
  stores_.pods.OnChange([this](const auto& change) {
    if (change.after == nullptr) assumed_pods_.Forget(kube::ToString(change.key));
    stale_.merge(OwnersIn(change));
  });
  stores_.queues.OnChange([this](const auto& change) {
    if (book_.SetQueue(change.key.name, change.after)) LookAtAll();
  });
  stores_.pools.OnChange([this](const auto& change) {
    if (book_.SetPool(change.key.name, change.after)) LookAtAll();
  });
  stores_.namespaces.OnChange([this](const auto& change) {
    if (book_.SetNamespace(change.key.name, change.after)) LookAtAll();
  });
  stores_.services.OnChange([this](const auto& change) {
    if (change.after == nullptr) assumed_services_.Forget(kube::ToString(change.key));
    stale_.merge(OwnersIn(change));
  });
}

// Drops what was written of the job and of its objects: the stores may never show some of that.
void JobTable::ForgetJob(const api::ObjectMeta& job) {
  assumed_jobs_.Forget(KeyIn(job, job.name));
  assumed_services_.Forget(KeyIn(job, CoordinatorName(job)));
  assumed_pods_.ForgetIf([&](const api::Pod& pod) { return pod.meta.owner_uid == job.uid; });
}

void JobTable::LookAtAll() {
  for (const auto& [key, view] : views_) stale_.insert(key);
}

// A job that has no view yet gets one in the next Refresh anyway.
void JobTable::LookAt(const std::string& job_uid) {
  if (const auto key = keys_.find(job_uid); key != keys_.end()) stale_.insert(key->second);
}

// A write counts until the stores show it, or for a limited time: so time alone may change a view.
void JobTable::LookAtAssumed() {
  assumed_jobs_.ForEach(
      [this](const std::string&, const api::ElasticTrainingJob& job) { LookAt(job.meta.uid); });
  const auto look_at_owner = [this](const std::string&, const auto& object) {
    LookAt(object.meta.owner_uid);
  };
  assumed_pods_.ForEach(look_at_owner);
  assumed_services_.ForEach(look_at_owner);
}

JobSoftState& JobTable::SoftState(const std::string& job_uid) {
  const auto key = keys_.find(job_uid);
  CHECK(key != keys_.end(), "only jobs that were seen are remembered");
  stale_.insert(key->second);
  return views_.at(key->second).soft_state;
}

void JobTable::Drop(Views::iterator view) {
  const std::string& uid = view->second.job->meta.uid;
  keys_.erase(uid);
  views_.erase(view);
}

std::shared_ptr<const api::Pod> JobTable::FindPod(const std::string& key, WallTime now) {
  return assumed_pods_.Resolve(key, stores_.pods.Find(Parsed(key)), now);
}

std::shared_ptr<const api::Service> JobTable::FindService(const std::string& key, WallTime now) {
  return assumed_services_.Resolve(key, stores_.services.Find(Parsed(key)), now);
}

void JobTable::AddPods(JobView& view, const KeysByOwner& assumed, WallTime now) {
  const std::string& uid = view.job->meta.uid;
  std::map<std::string, std::shared_ptr<const api::Pod>> pods;
  for (const auto& pod : stores_.pods.Lookup(pods_by_owner_, uid)) {
    const std::string key = KeyIn(pod->meta, pod->meta.name);
    pods[key] = assumed_pods_.Resolve(key, pod, now);
  }
  if (const auto keys = assumed.find(uid); keys != assumed.end()) {
    for (const std::string& key : keys->second) {
      if (!pods.contains(key)) pods[key] = FindPod(key, now);
    }
  }
  for (const auto& [key, pod] : pods) {
    if (pod == nullptr) continue;
    const std::optional<WallTime> overdue_at = assumed_pods_.OverdueAt(key);
    if (overdue_at && *overdue_at <= now) {
      view.overdue_pods.push_back(pod->meta.name);
    } else {
      KeepEarliest(overdue_at, view.overdue_at);
    }
    if (IsLearnerOf(*pod, view.job->meta)) view.learners.push_back(*pod);
    if (IsCoordinatorOf(*pod, view.job->meta)) view.coordinators.push_back(*pod);
  }
  std::ranges::sort(view.learners, {}, LearnerNumber);
  std::ranges::sort(view.coordinators, {}, CoordinatorTerm);
}

JobView JobTable::ViewOf(std::shared_ptr<const api::ElasticTrainingJob> job, JobView before,
                         const KeysByOwner& assumed, WallTime now) {
  JobView view{.unreadable = job->unreadable,
               .coordinator = std::move(before.coordinator),
               .soft_state = std::move(before.soft_state)};
  // A job whose queue was deleted stays where it is; an operator that has just begun to lead reads
  // where that is.
  const std::string& written = job->status.pool;
  const std::string pool_before = before.job != nullptr ? before.membership.pool
                                  : !written.empty()    ? written
                                                        : std::string(planner::kBuiltInPool);
  JobInQueue in_queue = book_.Apply(KeepReadable(std::move(job), before.job), pool_before);
  view.job = std::move(in_queue.job);
  view.membership = std::move(in_queue.membership);
  const api::ObjectMeta& meta = view.job->meta;
  const auto& needs = view.job->spec.learner_template.needs;
  view.needs = needs ? needs : std::move(before.needs);
  AddPods(view, assumed, now);
  const std::string service_key = KeyIn(meta, CoordinatorName(meta));
  auto service = FindService(service_key, now);
  KeepEarliest(assumed_services_.OverdueAt(service_key), view.overdue_at);
  if (service != nullptr && IsControlledBy(service->meta, meta)) view.service = std::move(service);
  return view;
}

JobTable::Views& JobTable::Refresh(WallTime now) {
  if (!std::exchange(in_use_, true)) {
    for (const auto& job : stores_.jobs.All())
      stale_.insert({job->meta.name_space, job->meta.name});
  }
  LookAtAssumed();
  refreshed_ = std::exchange(stale_, {});
  KeysByOwner assumed;
  assumed_pods_.ForEach([&](const std::string& key, const api::Pod& pod) {
    assumed[pod.meta.owner_uid].push_back(key);
  });
  for (const kube::NamespacedName& key : refreshed_) {
    const auto stored = stores_.jobs.Find(key);
    const auto known = views_.find(key);
    JobView before;
    if (known != views_.end()) {
      const bool same = stored != nullptr && stored->meta.uid == known->second.job->meta.uid;
      if (same) {
        before = std::move(known->second);
      } else {
        Drop(known);
      }
    }
    if (stored == nullptr) continue;
    auto job = assumed_jobs_.Resolve(kube::ToString(key), stored, now);
    // A write to an earlier job of this name may still be under way.
    if (job->meta.uid != stored->meta.uid) job = stored;
    job = WithNewerSpec(std::move(job), *stored);
    keys_.insert_or_assign(job->meta.uid, key);
    views_.insert_or_assign(key, ViewOf(std::move(job), std::move(before), assumed, now));
  }
  return views_;
}

void JobTable::Begin(const std::shared_ptr<const Batch>& batch, WallTime now) {
  const api::ObjectMeta& job = batch->job.meta;
  LookAt(job.uid);
  if (batch->write_status) assumed_jobs_.Begin(KeyIn(job, job.name), {batch, &batch->job});
  for (const Action& action : batch->actions) {
    if (auto effect = EffectOf(action, job, now)) Begin(*std::move(effect), job, now);
  }
}

bool JobTable::IsWriteUnderWay(const api::ObjectMeta& job, const std::string& pod) const {
  return assumed_pods_.IsUnderWay(KeyIn(job, pod));
}

void JobTable::Begin(Effect effect, const api::ObjectMeta& job, WallTime now) {
  const std::string key = KeyIn(job, effect.name);
  if (effect.kind == Effect::Kind::kServiceDeleted) {
    const auto known = FindService(key, now);
    if (known == nullptr) return;
    auto service = std::make_shared<api::Service>(*known);
    service->meta.deleted = now;
    assumed_services_.Begin(key, std::move(service));
    return;
  }
  api::Pod pod = std::move(effect.pod);
  if (effect.kind != Effect::Kind::kPodCreated) {
    const auto known = FindPod(key, now);
    if (known == nullptr) return;
    pod = *known;
  }
  if (effect.kind == Effect::Kind::kGateOpened) pod.scheduling_gates = effect.gates_left;
  if (effect.kind == Effect::Kind::kPodDeleted && !pod.meta.deleted) pod.meta.deleted = now;
  assumed_pods_.Begin(key, std::make_shared<const api::Pod>(std::move(pod)));
}

void JobTable::Settle(const Batch& batch, const BatchResult& result, WallTime now) {
  const api::ObjectMeta& job = batch.job.meta;
  const auto shown = stores_.jobs.Find({job.name_space, job.name});
  if (shown == nullptr || shown->meta.uid != job.uid) {
    Abandon(batch, now);
    return;
  }
  LookAt(job.uid);
  if (batch.write_status) {
    const std::string key = KeyIn(job, job.name);
    if (result.job) {
      assumed_jobs_.Settle(key, job.resource_version, *result.job, now);
    } else {
      assumed_jobs_.Withdraw(key);
    }
  }
  if (result.service) {
    const auto stored = stores_.services.Find({job.name_space, result.service->meta.name});
    assumed_services_.Settle(KeyIn(job, result.service->meta.name),
                             stored == nullptr ? "" : stored->meta.resource_version,
                             *result.service, now);
  }
  for (std::size_t index = 0; index < batch.actions.size(); ++index) {
    const bool failed = index == result.failed;
    if (failed && result.outcome_unknown) continue;
    const auto effect = EffectOf(batch.actions[index], job, now);
    if (effect) Settle(*effect, job, result, failed ? result.error : std::nullopt, now);
  }
  for (const api::Pod& pod : result.found) SettleFound(pod, now);
  for (const LookForPod& pod : result.gone) {
    const std::string key = KeyIn(job, pod.pod);
    // If the store still shows the pod, it will soon drop it: until then it counts as it was
    // written.
    if (stores_.pods.Find(Parsed(key)) == nullptr) {
      assumed_pods_.Forget(key);
    } else {
      assumed_pods_.Confirm(key, now);
    }
  }
}

void JobTable::Settle(const Effect& effect, const api::ObjectMeta& job, const BatchResult& result,
                      const std::optional<kube::KubeError>& error, WallTime now) {
  const std::string key = KeyIn(job, effect.name);
  switch (effect.kind) {
    case Effect::Kind::kPodCreated:
      SettleWritten(key, "", result.created, now);
      return;
    case Effect::Kind::kGateOpened: {
      const auto open = FindPod(key, now);
      if (error && error->code == ErrorCode::kConflict && open != nullptr) {
        // The pod has a newer version, perhaps because an earlier try was done: until the store
        // shows that version, the pod may hold its GPUs.
        assumed_pods_.Settle(key, effect.replaced_version, *open, now);
      } else {
        SettleWritten(key, effect.replaced_version, result.opened, now);
      }
      return;
    }
    case Effect::Kind::kPodDeleted:
      SettlePodDeleted(key, std::ranges::contains(result.deleted, effect.name), now);
      return;
    case Effect::Kind::kServiceDeleted: {
      const auto stored = stores_.services.Find(Parsed(key));
      const auto known = assumed_services_.Resolve(key, stored, now);
      assumed_services_.Withdraw(key);
      if (!result.service_deleted || known == nullptr || stored == nullptr) return;
      assumed_services_.Settle(key, stored->meta.resource_version, *known, now);
      return;
    }
  }
}

// `written`: pods as the server has them, this one among them if it was written.
void JobTable::SettleWritten(const std::string& key, const std::string& replaced_version,
                             const std::vector<api::Pod>& written, WallTime now) {
  const auto pod = std::ranges::find(written, Parsed(key).name,
                                     [](const api::Pod& each) { return each.meta.name; });
  if (pod != written.end()) {
    assumed_pods_.Settle(key, replaced_version, *pod, now);
  } else {
    assumed_pods_.Withdraw(key);
  }
}

void JobTable::SettlePodDeleted(const std::string& key, bool done, WallTime now) {
  const auto known = FindPod(key, now);
  assumed_pods_.Withdraw(key);
  if (!done || known == nullptr || !known->deleting()) return;
  const auto stored = stores_.pods.Find(Parsed(key));
  // A pod that the store no longer has need not be kept, unless its creation is not seen yet.
  if (stored == nullptr && FindPod(key, now) == nullptr) return;
  if (stored != nullptr && stored->deleting()) return;
  assumed_pods_.Settle(key, stored == nullptr ? "" : stored->meta.resource_version, *known, now);
}

// The server has the pod. It may be newer than what was written, or than what the store shows.
void JobTable::SettleFound(const api::Pod& pod, WallTime now) {
  const std::string key = KeyIn(pod.meta, pod.meta.name);
  const auto stored = stores_.pods.Find(Parsed(key));
  const std::string shown = stored == nullptr ? "" : stored->meta.resource_version;
  if (shown == pod.meta.resource_version) {
    assumed_pods_.Forget(key);
  } else {
    assumed_pods_.Settle(key, shown, pod, now);
  }
}

void JobTable::Abandon(const Batch& batch, WallTime now) {
  const api::ObjectMeta& job = batch.job.meta;
  if (batch.write_status) assumed_jobs_.Withdraw(KeyIn(job, job.name));
  for (const Action& action : batch.actions) {
    const auto effect = EffectOf(action, job, now);
    if (!effect) continue;
    const std::string key = KeyIn(job, effect->name);
    if (effect->kind == Effect::Kind::kServiceDeleted) {
      assumed_services_.Withdraw(key);
    } else {
      assumed_pods_.Withdraw(key);
    }
  }
}

}  // namespace pliant::controller
