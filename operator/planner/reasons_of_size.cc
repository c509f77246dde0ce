#include "operator/planner/reasons_of_size.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "base/format.h"
#include "operator/planner/reason_texts.h"
#include "operator/planner/sizes.h"
#include "operator/planner/speed_curve.h"

namespace pliant::planner {
namespace {

// ", which is entitled to 6 GPUs"; "" if there is one queue only
std::string QueuePart(const ReasonFacts& facts) {
  if (facts.model.queues.size() == 1) return "";
  return Sentence(", which is entitled to ", Counted(facts.queue.entitled_gpus, "GPU"));
}

// Whether the job's share is in proportion to its priority.
bool IsByWeight(const ReasonFacts& facts) {
  const QueuePolicy policy = facts.model.QueueOf(facts.job).view->policy;
  return policy == QueuePolicy::kFairShare ||
         (policy == QueuePolicy::kThroughput && !facts.model.jobs[facts.job].speeds);
}

// "fair share 1/3 by priority 5000 of 15000 in queue default"
std::string FairShare(const ReasonFacts& facts) {
  const JobView& view = *facts.model.jobs[facts.job].view;
  switch (facts.model.QueueOf(facts.job).view->policy) {
    case QueuePolicy::kFairShare:
      break;
    case QueuePolicy::kThroughput:
      if (IsByWeight(facts)) break;
      return Sentence("share by speed and priority ", view.priority, " in queue ", view.queue,
                      QueuePart(facts));
    case QueuePolicy::kPriority:
      return Sentence("what jobs of a higher priority than ", view.priority, " leave in queue ",
                      view.queue, QueuePart(facts));
    case QueuePolicy::kFifo:
      return Sentence("what earlier jobs leave in queue ", view.queue, QueuePart(facts));
  }
  const std::int64_t divisor = std::gcd<std::int64_t>(view.priority, facts.priorities);
  return Sentence("fair share ", view.priority / divisor, "/", facts.priorities / divisor,
                  " by priority ", view.priority, " of ", facts.priorities, " in queue ",
                  view.queue, QueuePart(facts));
}

// "41 % efficiency, minEfficiency is 0.5"; at most two decimals
std::string Efficiency(const JobView& view, LearnerCount learners) {
  const int percent = view.training.min_efficiency;
  std::string text =
      Sentence(EfficiencyWith(view, learners), " % efficiency, minEfficiency is ", percent / 100);
  if (percent % 100 != 0) text += Sentence(".", percent % 100 / 10);
  if (percent % 10 != 0) text += Sentence(percent % 10);
  return text;
}

bool AllAreInefficient(const JobView& view, LearnerCount first, LearnerCount last) {
  for (LearnerCount size = first; size <= last; ++size) {
    if (IsEfficient(view, size)) return false;
  }
  return true;
}

LearnerCount MostEfficientSize(const JobView& view, LearnerCount first, LearnerCount last) {
  LearnerCount best = first;
  for (LearnerCount size = first; size <= last; ++size) {
    if (EfficiencyWith(view, size) > EfficiencyWith(view, best)) best = size;
  }
  return best;
}

// "5 to 7 would be slower, they need a second node; " about the sizes that the job passes over to
// its next one; "" if it passes over none, or has no curve. In GPUs.
std::string SizesPassedOver(const ReasonFacts& facts) {
  const Job& job = facts.model.jobs[facts.job];
  const LearnerCount now = facts.given.learners;
  if (!job.speeds) return "";
  const SpeedCurve& curve = job.speeds->curve();
  const auto next = job.speeds->Next(now, job.demand);
  const bool is_fastest = job.limit == DemandLimit::kSpeed;
  // Nothing is known of sizes beyond the curve.
  const LearnerCount most = std::min(is_fastest ? job.view->max_learners : job.demand,
                                     static_cast<LearnerCount>(curve.size()));
  const LearnerCount last = next ? next->to - 1 : most;
  if (last <= now) return "";
  const std::int64_t gpus = job.needs().gpus;
  if (AllAreInefficient(*job.view, now + 1, last)) {
    return Sentence((now + 1) * gpus, last > now + 1 ? Sentence(" to ", last * gpus) : "",
                    last > now + 1 ? " would run at up to " : " would run at ",
                    Efficiency(*job.view, MostEfficientSize(*job.view, now + 1, last)), "; ");
  }
  const int fastest = SpeedWith(curve, FastestSize(curve, now + 1, last));
  const int speed = SpeedWith(curve, now);
  std::string text = Sentence((now + 1) * gpus);
  if (last > now + 1) text += Sentence(" to ", last * gpus);
  text += fastest < speed    ? " would be slower"
          : fastest == speed ? " would be no faster"
                             : " would add little";
  const std::int64_t on_a_node = facts.assignment.FitOf(facts.job).slots_of_largest;
  if (on_a_node > 0 && now % on_a_node == 0) {
    text += Sentence(last > now + 1 ? ", they need a " : ", it needs a ",
                     now == on_a_node ? "second" : "further", " node");
  }
  return text + "; ";
}

Reason NoFasterSize(const ReasonFacts& facts) {
  const Job& job = facts.model.jobs[facts.job];
  const LearnerCount next = facts.given.learners + 1;
  if (!job.speeds && !IsEfficient(*job.view, next)) {
    return {ReasonCode::kMinEfficiency,
            Sentence(Gpus(facts), "the next larger size would run at ", Efficiency(*job.view, next),
                     "; ", FairShare(facts))};
  }
  if (job.speeds) {
    return {ReasonCode::kNoFasterSize,
            Sentence(Gpus(facts), SizesPassedOver(facts), FairShare(facts))};
  }
  return {ReasonCode::kNoFasterSize,
          Sentence(Gpus(facts), "with ", job.view->training.logical_shards,
                   " logical shards the next larger sizes are no faster; ", FairShare(facts))};
}

}  // namespace

Reason AtDemand(const ReasonFacts& facts) {
  const Job& job = facts.model.jobs[facts.job];
  switch (job.limit) {
    case DemandLimit::kMaximum:
      break;
    case DemandLimit::kShards:
      return {ReasonCode::kShardLimit,
              Sentence(Gpus(facts), "all that its ", job.view->training.logical_shards,
                       " logical shards can use, though maxLearners is ", job.view->max_learners)};
    case DemandLimit::kProgram:
      return {ReasonCode::kProgramAsked, Sentence(Gpus(facts), "the program asked for ",
                                                  Counted(*job.view->learners_asked, "learner"))};
    case DemandLimit::kSpeed:
      return NoFasterSize(facts);
    case DemandLimit::kEfficiency: {
      const LearnerCount next = facts.given.learners + 1;
      // The sizes up to the next one that is too inefficient are no faster.
      if (IsEfficient(*job.view, next)) return NoFasterSize(facts);
      return {ReasonCode::kMinEfficiency,
              Sentence(Gpus(facts), "more would run at ", Efficiency(*job.view, next))};
    }
    case DemandLimit::kCap:
      return {ReasonCode::kGrantWithdrawn,
              Sentence(Gpus(facts), "more learners were granted but did not start in time",
                       CauseOf(*job.cap), "; more are tried at ", UtcTime(job.cap->until))};
  }
  return {ReasonCode::kMaximum,
          Sentence(Gpus(facts), "all that it asks for (maxLearners ", job.view->max_learners, ")")};
}

namespace {

// Whether its minimum is more than priority alone would give.
bool HasMinimumAboveShare(const ReasonFacts& facts) {
  const Job& job = facts.model.jobs[facts.job];
  return IsByWeight(facts) && facts.given.learners == job.minimum &&
         MinimumIsAboveShare(job, facts.priorities, facts.queue.entitled_gpus);
}

// GPUs that it has less than priority would give, because minimums of others in its queue are above
// their shares.
std::int64_t GpusBelowShare(const ReasonFacts& facts) {
  if (!IsByWeight(facts) || !facts.minimums_are_above_shares) return 0;
  const Job& job = facts.model.jobs[facts.job];
  const std::int64_t share = job.view->priority * facts.queue.entitled_gpus / facts.priorities;
  return share - facts.given.learners * job.needs().gpus;
}

// Whether it has all nodes that it can use, and less than priority would give.
bool NodesAreBelowShare(const ReasonFacts& facts) {
  const Job& job = facts.model.jobs[facts.job];
  return IsByWeight(facts) && facts.given.learners >= facts.assignment.FitOf(facts.job).slots &&
         facts.given.learners * job.needs().gpus * facts.priorities <
             job.view->priority * facts.queue.entitled_gpus;
}

// GPUs that it has beyond its share, because others use less than theirs. A share that was rounded
// up to a whole learner is none.
std::int64_t GpusLeftOver(const ReasonFacts& facts) {
  if (!IsByWeight(facts)) return 0;
  const Job& job = facts.model.jobs[facts.job];
  const std::int64_t weighed = job.view->priority * facts.queue.entitled_gpus;
  const std::int64_t share = (weighed + facts.priorities - 1) / facts.priorities;
  const std::int64_t gpus = job.needs().gpus;
  return (facts.given.learners * gpus - share) / gpus * gpus;
}

Reason Borrowed(const ReasonFacts& facts, std::int64_t gpus) {
  return {ReasonCode::kBorrowed, Sentence(Gpus(facts), Counted(gpus, "GPU"),
                                          " that others leave over, ", FairShare(facts))};
}

// Why the fair sharing, or the given one if they differ, gave it no more.
StoppedBy WhatStopped(const ReasonFacts& facts) {
  const bool is_fair = facts.given.learners == facts.fair.learners;
  const StoppedBy stopped_by = is_fair ? facts.fair.stopped_by : facts.given.stopped_by;
  return stopped_by == StoppedBy::kOthers && NodesAreBelowShare(facts) ? StoppedBy::kNodes
                                                                       : stopped_by;
}

}  // namespace

Reason WhyPlaced(const ReasonFacts& facts) {
  const Job& job = facts.model.jobs[facts.job];
  const bool is_fair = facts.given.learners == facts.fair.learners;
  if (!is_fair && job.frozen_size == facts.given.learners) {
    return {ReasonCode::kCooldown,
            Sentence(Gpus(facts), "resized a moment ago, left alone until ",
                     UtcTime(*job.view->share.resized + job.view->cooldown), "; fair would be ",
                     facts.fair.learners * job.needs().gpus)};
  }
  if (!is_fair && job.protected_size && facts.given.learners > facts.fair.learners) {
    return {
        ReasonCode::kMinRuntime,
        Sentence(Gpus(facts), "not shrunk before ",
                 UtcTime(*job.view->share.started + job.view->min_runtime),
                 " (minRuntimeSeconds); fair would be ", facts.fair.learners * job.needs().gpus)};
  }
  if (facts.given.learners >= job.demand) return AtDemand(facts);
  if (job.yields) {
    return {ReasonCode::kYields,
            Sentence(Gpus(facts), "an edit of it gave GPUs to others, which keep them until ",
                     UtcTime(*job.view->share.yields_until), "; ", FairShare(facts))};
  }
  if (!facts.model.QueueOf(facts.job).exists) {
    return {ReasonCode::kQueueMissing,
            Sentence(Gpus(facts), "there is no queue ", NameOfQueue(facts),
                     ", so it does not grow: change spec.queue while the job is suspended, or "
                     "create the queue")};
  }
  if (HasMinimumAboveShare(facts)) {
    return {ReasonCode::kMinimum,
            Sentence(Gpus(facts), "minLearners ", job.minimum, " is above its ", FairShare(facts))};
  }
  if (facts.given.learners > facts.given.entitled_learners) {
    return Borrowed(facts,
                    (facts.given.learners - facts.given.entitled_learners) * job.needs().gpus);
  }
  switch (WhatStopped(facts)) {
    case StoppedBy::kDemand:
    case StoppedBy::kSizes:
      return NoFasterSize(facts);
    case StoppedBy::kNodes:
      return {ReasonCode::kNodesFull, Sentence(Gpus(facts), "the nodes that it can use are full",
                                               OneKind(facts), "; ", FairShare(facts))};
    case StoppedBy::kBudget:
      return {ReasonCode::kQuota, Sentence(Gpus(facts), Budget(facts), "; ", FairShare(facts))};
    case StoppedBy::kQueueLimit:
      return {ReasonCode::kQueueLimit,
              Sentence(Gpus(facts), LimitOfQueue(facts), "; ", FairShare(facts))};
    case StoppedBy::kReserved:
      return {ReasonCode::kReserved,
              Sentence(Gpus(facts), "the GPUs that are left are reserved, or not lent; ",
                       FairShare(facts))};
    case StoppedBy::kOthers:
      break;
  }
  if (const std::int64_t below = GpusBelowShare(facts); below > 0) {
    return {ReasonCode::kBelowShare,
            Sentence(Gpus(facts), below, " less than its ", FairShare(facts),
                     ": minimums of others in this queue are above theirs")};
  }
  if (const std::int64_t more = GpusLeftOver(facts); more > 0) return Borrowed(facts, more);
  return {ReasonCode::kFairShare, Sentence(Gpus(facts), SizesPassedOver(facts), FairShare(facts))};
}

GrowthLimit WhatLimits(const ReasonFacts& facts) {
  if (!HasPlace(facts.given.standing)) return GrowthLimit::kNone;
  const Job& job = facts.model.jobs[facts.job];
  if (std::max(facts.fair.learners, facts.given.learners) >= job.demand) {
    switch (job.limit) {
      case DemandLimit::kMaximum:
        return GrowthLimit::kMaximum;
      case DemandLimit::kShards:
        return GrowthLimit::kShards;
      case DemandLimit::kProgram:
        return GrowthLimit::kProgram;
      case DemandLimit::kSpeed:
        return GrowthLimit::kSpeed;
      case DemandLimit::kEfficiency:
        return GrowthLimit::kEfficiency;
      case DemandLimit::kCap:
        return GrowthLimit::kStartFailures;
    }
  }
  switch (WhatStopped(facts)) {
    case StoppedBy::kDemand:
    case StoppedBy::kSizes:
      return GrowthLimit::kSizes;
    case StoppedBy::kNodes:
      return GrowthLimit::kNodes;
    case StoppedBy::kBudget:
      return GrowthLimit::kQuota;
    case StoppedBy::kQueueLimit:
      return GrowthLimit::kQueueLimit;
    case StoppedBy::kReserved:
      return GrowthLimit::kReserved;
    case StoppedBy::kOthers:
      break;
  }
  return GrowthLimit::kOthers;
}

}  // namespace pliant::planner
