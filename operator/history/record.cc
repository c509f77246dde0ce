#include "operator/history/record.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "operator/controller/lifecycle/conditions.h"

namespace pliant::history {
namespace {

// Values that say nothing are left out.
class Writer {
 public:
  void Text(Field field, std::string_view text) {
    if (!text.empty()) values_[field] = CutAtCharacter(text, kMaxTextBytes);
  }
  void Number(Field field, std::int64_t number) {
    if (number != 0) values_[field] = number;
  }
  void Number(Field field, const std::optional<std::int64_t>& number) {
    if (number) Number(field, *number);
  }
  // Programs report these, and JSON has no other real numbers than finite ones.
  void Real(Field field, const std::optional<double>& number) {
    if (number && std::isfinite(*number)) values_[field] = *number;
  }
  void Time(Field field, const std::optional<WallTime>& time) {
    if (time) Number(field, time->time_since_epoch().count());
  }
  Values Done() { return std::move(values_); }

 private:
  Values values_;
};

}  // namespace

Values RecordOf(const api::ElasticTrainingJob& job) {
  const api::JobSpec& spec = job.spec;
  const api::JobStatus& status = job.status;
  const std::int64_t gpus = spec.elastic.gpus_per_learner;
  Writer to;
  to.Text(Field::kQueue, spec.queue);
  to.Text(Field::kPhase, ToString(status.phase));
  to.Number(Field::kPriority, spec.priority);
  to.Time(Field::kCreated, job.meta.created);
  to.Number(Field::kMinGpus, spec.elastic.min_learners * gpus);
  to.Number(Field::kMaxGpus, spec.elastic.max_learners * gpus);
  to.Number(Field::kLearners, status.learners);
  to.Number(Field::kDesired, status.share.desired_learners);
  if (const auto* place = api::FindCondition(status, controller::kConditionHasPlace))
    to.Text(Field::kCode, place->reason);
  to.Text(Field::kReason, status.reason);
  to.Time(Field::kWaitingSince, status.waiting.since);
  to.Number(Field::kDemandLearners, status.share.demand_learners);
  to.Text(Field::kLimitedBy, status.share.limited_by);
  to.Number(Field::kEntitled, status.share.entitled_gpus);
  to.Time(Field::kStart, status.waiting.estimated.start);
  to.Time(Field::kEnd,
          status.finished() ? status.completion_time : status.waiting.estimated.completion);
  to.Number(Field::kResizes, status.resizes);
  to.Number(Field::kRestarts, status.restarts);
  const api::JobProgress& progress = status.progress;
  to.Number(Field::kStep, progress.step);
  to.Number(Field::kTotalSteps, progress.total_steps);
  to.Number(Field::kEpoch, progress.epoch);
  to.Real(Field::kLoss, progress.loss);
  if (!progress.evaluations.empty()) to.Real(Field::kTestLoss, progress.evaluations.back().loss);
  to.Real(Field::kAccuracy, progress.accuracy);
  to.Real(Field::kSpeed, progress.samples_per_second);
  to.Number(Field::kGpus, status.gpus);
  return to.Done();
}

Values RecordOf(const api::TrainingQueue& queue) {
  const api::TrainingQueueStatus& status = queue.status;
  Writer to;
  to.Text(Field::kPool, queue.spec.pool);
  to.Number(Field::kWeight, queue.spec.weight);
  to.Number(Field::kGuaranteed, queue.spec.guaranteed);
  if (queue.spec.limit) to.Number(Field::kLimit, *queue.spec.limit);
  to.Number(Field::kEntitled, status.entitled);
  to.Number(Field::kDemand, status.demand);
  to.Number(Field::kAllocated, status.allocated);
  to.Number(Field::kBorrowed, status.borrowed);
  to.Number(Field::kLent, status.lent);
  to.Number(Field::kWaiting, status.waiting);
  to.Number(Field::kRunning, status.running);
  to.Text(Field::kReason, status.reason);
  return to.Done();
}

Values RecordOf(const api::GpuPool& pool) {
  const api::GpuPoolStatus& status = pool.status;
  Writer to;
  to.Number(Field::kCapacity, status.capacity_gpus);
  to.Number(Field::kAllocated, status.allocated_gpus);
  to.Number(Field::kForeign, status.foreign_gpus);
  to.Number(Field::kYielded, status.yielded_gpus);
  to.Number(Field::kReserved, pool.spec.reserved_gpus);
  return to.Done();
}

Values RecordOf(const api::Node& node, const std::string& pool, std::int64_t gpus,
                std::int64_t used) {
  Writer to;
  to.Text(Field::kPool, pool);
  to.Number(Field::kGpus, std::min(gpus, kMaxGpusOfNode));
  to.Number(Field::kUsed, std::min(used, kMaxGpusOfNode));
  to.Number(Field::kReady, node.ready && !node.unschedulable ? 1 : 0);
  return to.Done();
}

Values RecordOfHeld(std::int64_t gpus) { return {{Field::kGpus, std::min(gpus, kMaxGpusOfNode)}}; }

Values WithoutStatistics(Values job) {
  for (const Field field :
       {Field::kEntitled, Field::kStart, Field::kEnd, Field::kStep, Field::kTotalSteps,
        Field::kEpoch, Field::kLoss, Field::kTestLoss, Field::kAccuracy, Field::kSpeed}) {
    job.erase(field);
  }
  return job;
}

}  // namespace pliant::history
