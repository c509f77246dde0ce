#include "operator/planner/queue_report.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/format.h"
#include "operator/planner/apportion.h"

namespace pliant::planner {
namespace {

QueueShare Allocated(const Model& model, const Sharing& sharing, QueueIndex index) {
  const Queue& queue = model.queues[index];
  QueueShare share{.queue = queue.view->name,
                   .pool = model.pool.name,
                   .demand = sharing.queues[index].demand_gpus,
                   .entitled = sharing.queues[index].entitled_gpus};
  for (const JobIndex job : queue.jobs) {
    const LearnerCount learners = sharing.shares[job].learners;
    share.allocated += model.GpusOf(job, learners);
    ++(learners > 0 ? share.running : share.waiting);
  }
  return share;
}

// Sets what is borrowed and lent.
void SettleLoans(const Model& model, std::vector<QueueShare>& shares) {
  std::int64_t unguaranteed = model.capacity_gpus - model.pool.reserved_gpus;
  std::int64_t beyond_guarantees = 0;
  std::vector<Claimant> takers;
  std::vector<Claimant> lenders;
  for (std::size_t index = 0; index < shares.size(); ++index) {
    const QueueView& view = *model.queues[index].view;
    const std::int64_t beyond = shares[index].allocated - view.guaranteed_gpus;
    unguaranteed -= view.guaranteed_gpus;
    beyond_guarantees += std::max<std::int64_t>(beyond, 0);
    takers.push_back({.weight = view.weight, .cap = std::max<std::int64_t>(beyond, 0)});
    lenders.push_back(
        {.cap = std::clamp<std::int64_t>(-beyond, 0, view.lending_limit_gpus.value_or(INT64_MAX))});
  }
  unguaranteed = std::max<std::int64_t>(unguaranteed, 0);
  const std::vector<std::int64_t> own = Apportion(takers, unguaranteed);
  const std::vector<std::int64_t> lent = Apportion(lenders, beyond_guarantees - unguaranteed);
  for (std::size_t index = 0; index < shares.size(); ++index) {
    shares[index].borrowed = takers[index].cap - own[index];
    shares[index].lent = lent[index];
  }
}

QueueState StateOf(const Queue& queue, const QueueShare& share) {
  if (queue.view->stop == QueueStop::kDrain) return QueueState::kDrained;
  if (!queue.admits()) return QueueState::kHeld;
  if (share.running == 0 && share.waiting == 0) return QueueState::kIdle;
  if (share.allocated < std::min(queue.view->guaranteed_gpus, share.demand)) {
    return QueueState::kBelowGuarantee;
  }
  const auto& limit = queue.view->limit_gpus;
  if (limit && share.allocated >= *limit) return QueueState::kAtLimit;
  const bool is_served = share.waiting == 0 && share.allocated >= share.demand;
  return is_served ? QueueState::kServed : QueueState::kShared;
}

// "6 GPUs: its share of 16 by weight 100 of 300; its jobs could use 10, and 2 jobs wait"
std::string TextOf(const Model& model, const Queue& queue, const QueueShare& share,
                   std::int64_t weights) {
  const QueueView& view = *queue.view;
  const std::string waiting = share.waiting == 0 ? ""
                                                 : Format("; {} {}", Counted(share.waiting, "job"),
                                                          share.waiting == 1 ? "waits" : "wait");
  const std::string has = Counted(share.allocated, "GPU");
  switch (share.state) {
    case QueueState::kIdle:
      return "no job wants GPUs";
    case QueueState::kDrained:
      return "spec.stop is Drain: its jobs are checkpointed and wait" + waiting;
    case QueueState::kHeld:
      return queue.exists
                 ? Format("{}: spec.stop is Hold, no job is admitted{}", has, waiting)
                 : Format("{}: the queue does not exist, no job is admitted{}", has, waiting);
    case QueueState::kBelowGuarantee:
      return Format(
          "{} of {} guaranteed ones: the jobs of other queues keep their minimums, or its "
          "own fit no node{}",
          has, view.guaranteed_gpus, waiting);
    case QueueState::kAtLimit:
      return Format("{}: all that its limit allows{}", has, waiting);
    case QueueState::kServed:
      return Format("{}: all that its jobs can use", has);
    case QueueState::kShared:
      break;
  }
  return Format("{}: its share of {} by weight {} of {}; its jobs could use {}{}", has,
                model.capacity_gpus, view.weight, weights, share.demand, waiting);
}

}  // namespace

std::vector<QueueShare> ReportQueues(const Model& model, const Sharing& sharing) {
  std::vector<QueueShare> shares;
  std::int64_t weights = 0;
  for (QueueIndex index = 0; index < std::ssize(model.queues); ++index) {
    shares.push_back(Allocated(model, sharing, index));
    if (shares.back().running + shares.back().waiting > 0 && shares.back().queue != kQueueOfPods)
      weights += model.queues[index].view->weight;
  }
  SettleLoans(model, shares);
  for (std::size_t index = 0; index < shares.size(); ++index) {
    shares[index].state = StateOf(model.queues[index], shares[index]);
    shares[index].sentence = TextOf(model, model.queues[index], shares[index], weights);
  }
  std::erase_if(shares, [](const QueueShare& share) { return share.queue == kQueueOfPods; });
  return shares;
}

}  // namespace pliant::planner
