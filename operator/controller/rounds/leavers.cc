#include "operator/controller/rounds/leavers.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "base/earliest.h"
#include "base/log.h"
#include "operator/controller/lifecycle/leaving.h"

namespace pliant::controller {
namespace {

constexpr std::chrono::milliseconds kFirstConflictDelay{200};

}  // namespace

Leavers::Leavers(LeaversParts parts, std::function<WallTime()> now)
    : parts_(std::move(parts)), now_(std::move(now)) {}

void Leavers::Look(const JobView& view, const planner::Decision& decision, WallTime now) {
  const api::ObjectMeta& meta = view.job->meta;
  Leaving leaving = DecideLeaving(view, decision, now);
  const LearnerClocks& before = view.soft_state.clocks;
  const bool is_news = before.leaving_since != leaving.leaving_since ||
                       before.unnotified_since != leaving.unnotified_since;
  if (is_news) {
    LearnerClocks& clocks = parts_.table.SoftState(meta.uid).clocks;
    clocks.leaving_since = std::move(leaving.leaving_since);
    clocks.unnotified_since = std::move(leaving.unnotified_since);
  }
  parts_.monitor.SetDesired(meta.uid, std::move(leaving.plan), decision.reason.sentence);
  const auto known = jobs_.find(meta.uid);
  if (known == jobs_.end() && leaving.deletions.empty() && !leaving.look_again) return;
  Job& job = known != jobs_.end()
                 ? known->second
                 : jobs_
                       .emplace(meta.uid, Job{.key = {meta.name_space, meta.name},
                                              .retry = RetryState(kFirstConflictDelay)})
                       .first->second;
  job.look_at = leaving.look_again;
  std::erase_if(leaving.deletions, [&](const DeletePod& deletion) {
    return parts_.table.IsWriteUnderWay(meta, deletion.pod);
  });
  if (leaving.deletions.empty() || job.deletes) return;
  if (now < job.retry.not_before) {
    KeepEarliest(std::optional(job.retry.not_before), job.look_at);
  } else {
    Delete(view, std::move(leaving.deletions), now, job);
  }
}

void Leavers::Delete(const JobView& view, std::vector<DeletePod> deletions, WallTime now,
                     Job& job) {
  auto batch = std::make_shared<Batch>(Batch{.job = *view.job});
  for (DeletePod& deletion : deletions) batch->actions.emplace_back(std::move(deletion));
  job.deletes = true;
  parts_.table.Begin(batch, now);
  parts_.api_calls(
      [this, watch = lifetime_.watch(), batch, &loop = parts_.loop, &runner = parts_.runner] {
        auto result = std::make_shared<const BatchResult>(runner.Run(*batch));
        loop.Post([this, watch, batch, result] {
          if (!watch.over()) OnDeleted(*batch, *result);
        });
      });
}

void Leavers::OnDeleted(const Batch& batch, const BatchResult& result) {
  const WallTime now = now_();
  parts_.table.Settle(batch, result, now);
  const auto known = jobs_.find(batch.job.meta.uid);
  if (known == jobs_.end()) return;  // the job has gone meanwhile
  Job& job = known->second;
  job.deletes = false;
  const NextStep next = StepAfter(result, /*unanswered_before=*/false, now, job.retry);
  if (next.log_error) {
    log::Warning("learners that leave cannot be deleted",
                 {{"job", kube::ToString(job.key)}, {"error", result.error->message}});
  }
  KeepEarliest(std::optional(now + std::chrono::ceil<std::chrono::milliseconds>(next.delay)),
               job.look_at);
  parts_.request_round();
}

std::set<kube::NamespacedName> Leavers::TakeDue(WallTime now) {
  std::set<kube::NamespacedName> due;
  for (auto& [uid, job] : jobs_) {
    if (!job.look_at || now < *job.look_at) continue;
    job.look_at.reset();
    due.insert(job.key);
  }
  return due;
}

std::optional<WallTime> Leavers::next_look() const {
  std::optional<WallTime> next;
  for (const auto& [uid, job] : jobs_) KeepEarliest(job.look_at, next);
  return next;
}

}  // namespace pliant::controller
