#include "operator/planner/reasons.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "operator/planner/feasibility.h"
#include "operator/planner/sizes.h"
#include "operator/planner/speed_curve.h"

namespace pliant::planner {
namespace {

// A sentence is built for every job in every plan, and std::format is several times slower.
void Append(std::string& text, std::string_view part) { text += part; }
void Append(std::string& text, std::integral auto number) {
  char digits[24];
  text.append(digits, std::to_chars(std::begin(digits), std::end(digits), number).ptr);
}

// "2 GPUs (minLearners 2)"
struct MinimumNeeds {
  const Job& job;
};
void Append(std::string& text, const MinimumNeeds& minimum) {
  Append(text, Counted(minimum.job.minimum * minimum.job.needs().gpus, "GPU"));
  text += " (minLearners ";
  Append(text, minimum.job.minimum);
  text += ')';
}

template <typename... Parts>
std::string Sentence(const Parts&... parts) {
  std::string text;
  text.reserve(128);
  (Append(text, parts), ...);
  return text;
}

std::string UtcTime(WallTime time) {
  return Format("{:%FT%TZ}", std::chrono::ceil<std::chrono::seconds>(time));
}

// "3 of 8 GPUs: "
std::string Gpus(const ReasonFacts& facts) {
  return Sentence(facts.given.learners * facts.model.jobs[facts.job].needs().gpus, " of ",
                  facts.model.capacity_gpus, " GPUs: ");
}

std::string_view NameOfQueue(const ReasonFacts& facts) {
  return facts.model.QueueOf(facts.job).view->name;
}

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

// "the ResourceQuotas of namespace team-a leave its jobs 4 GPUs"
std::string Budget(const ReasonFacts& facts) {
  const Job& job = facts.model.jobs[facts.job];
  return Sentence("the ResourceQuotas of namespace ", job.view->key.name_space, " leave its jobs ",
                  Counted(facts.model.budgets[*job.budget].gpus, "GPU"));
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
              Sentence(Gpus(facts),
                       "more learners were granted but did not start in time; more are tried at ",
                       UtcTime(job.cap->until))};
  }
  return {ReasonCode::kMaximum,
          Sentence(Gpus(facts), "all that it asks for (maxLearners ", job.view->max_learners, ")")};
}

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

// ", all with GPUs of product NVIDIA-L4 and driver 580.95.05, because it is bitwise"; "" if it may
// use any GPUs
std::string OneKind(const ReasonFacts& facts) {
  const std::optional<GpuKind>& gpus = facts.assignment.FitOf(facts.job).gpus;
  if (!gpus) return "";
  const std::string driver =
      gpus->driver.empty() ? std::string() : Sentence(" and driver ", gpus->driver);
  if (gpus->product.empty()) {
    return Sentence(", all without the label ", kGpuProductLabel, driver,
                    ", because it is bitwise");
  }
  return Sentence(", all with GPUs of product ", gpus->product, driver, ", because it is bitwise");
}

// Whether it has all nodes that it can use, and less than priority would give.
bool NodesAreBelowShare(const ReasonFacts& facts) {
  const Job& job = facts.model.jobs[facts.job];
  return IsByWeight(facts) && facts.given.learners >= facts.assignment.FitOf(facts.job).slots &&
         facts.given.learners * job.needs().gpus * facts.priorities <
             job.view->priority * facts.queue.entitled_gpus;
}

// "queue research may hold 8 GPUs (spec.limit)"
std::string LimitOfQueue(const ReasonFacts& facts) {
  return Sentence("queue ", NameOfQueue(facts), " may hold ",
                  Counted(*facts.model.QueueOf(facts.job).view->limit_gpus, "GPU"),
                  " (spec.limit)");
}

Reason Admitted(const ReasonFacts& facts) {
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
    const LearnerCount more = facts.given.learners - facts.given.entitled_learners;
    return {ReasonCode::kBorrowed, Sentence(Gpus(facts), Counted(more * job.needs().gpus, "GPU"),
                                            " that others leave over, ", FairShare(facts))};
  }
  const StoppedBy stopped_by = is_fair ? facts.fair.stopped_by : facts.given.stopped_by;
  switch (stopped_by == StoppedBy::kOthers && NodesAreBelowShare(facts) ? StoppedBy::kNodes
                                                                        : stopped_by) {
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
  return {ReasonCode::kFairShare, Sentence(Gpus(facts), SizesPassedOver(facts), FairShare(facts))};
}

// The namespace whose pods take most of what a learner lacks on the node; "": the node would be too
// small without them, too, or lacks something else.
std::string_view TakerOf(const NodeView& node, Obstacle obstacle, const Resources& needs) {
  if (!Fits(needs, node.allocatable)) return "";
  switch (obstacle) {
    case Obstacle::kGpus:
      return node.foreign_users.gpus;
    case Obstacle::kCpu:
      return node.foreign_users.cpu;
    case Obstacle::kMemory:
      return node.foreign_users.memory;
    default:
      return "";
  }
}

// " (most is taken by pods of namespace team-b)", by the namespace that is first on most
// nodes; "": none is
std::string Taken(const std::map<std::string_view, std::int64_t>& nodes_by_taker) {
  const auto most =
      std::ranges::max_element(nodes_by_taker, {}, [](const auto& taker) { return taker.second; });
  if (most == nodes_by_taker.end()) return "";
  return Sentence(" (most is taken by pods of namespace ", most->first, ")");
}

// "no node can run a learner: 1 cordoned, 2 with too little memory"
std::string WhyNoNodeFits(const ReasonFacts& facts) {
  std::map<Obstacle, std::int64_t> nodes;
  std::map<Obstacle, std::map<std::string_view, std::int64_t>> takers;
  const Fit& fit = facts.assignment.FitOf(facts.job);
  for (const auto& [node, obstacle] : std::views::zip(facts.model.nodes, fit.obstacles)) {
    if (node.view == nullptr) continue;
    ++nodes[obstacle];
    const std::string_view taker = TakerOf(*node.view, obstacle, fit.needs);
    if (!taker.empty()) ++takers[obstacle][taker];
  }
  if (nodes.empty()) return "no node can run a learner: there is no node with GPUs";
  std::string text = "no node can run a learner:";
  std::string_view separator = " ";
  for (const auto& [obstacle, count] : nodes) {
    const std::string_view why =
        obstacle == Obstacle::kNone ? "on which its learners failed lately" : ToString(obstacle);
    text += Sentence(separator, count, " ", why, Taken(takers[obstacle]));
    separator = ", ";
  }
  return text + OneKind(facts);
}

// ": 2 jobs are before it in queue default"; "" if none is
std::string Before(const ReasonFacts& facts) {
  const int jobs = facts.given.jobs_before;
  if (jobs == 0) return "";
  return Sentence(facts.given.standing == AdmissionState::kQueuedBehind ? ": " : "; ",
                  Counted(jobs, "job"), jobs == 1 ? " is" : " are", " before it in queue ",
                  NameOfQueue(facts));
}

Reason WhySharedOut(const ReasonFacts& facts) {
  const Job& job = facts.model.jobs[facts.job];
  switch (facts.given.standing) {
    case AdmissionState::kInactive:
      if (job.view->finished) return {ReasonCode::kFinished, "finished"};
      return {ReasonCode::kSuspended, "suspended by spec.suspend"};
    case AdmissionState::kAdmitted:
      return Admitted(facts);
    case AdmissionState::kBelowMinimum:
      if (job.demand < job.minimum) return AtDemand(facts);
      return {ReasonCode::kBelowMinimum,
              Sentence(Gpus(facts), "its minimum of ", MinimumNeeds(job),
                       " is no longer free; keeps what it has for a while")};
    case AdmissionState::kReleased:
      return {ReasonCode::kReleased, Sentence("could not have its minimum of ", MinimumNeeds(job),
                                              " for too long: checkpointed and queued")};
    case AdmissionState::kCapped:
      return {ReasonCode::kGrantWithdrawn,
              Sentence("its learners were granted GPUs but did not start in time; tried again at ",
                       UtcTime(job.cap->until))};
    case AdmissionState::kReclaimed:
      return {ReasonCode::kReclaimed,
              "checkpointed and queued: another queue needs GPUs that are guaranteed to it"};
    case AdmissionState::kQueued:
      return {ReasonCode::kQueued,
              Sentence("waits for ", MinimumNeeds(job), ": ", facts.given.attainable_gpus,
                       " can be had at once, the jobs that run cannot be shrunk further",
                       Before(facts))};
    case AdmissionState::kQueuedBehind:
      return {ReasonCode::kQueuedBehind, Sentence("waits for ", MinimumNeeds(job), Before(facts))};
    case AdmissionState::kQueueShare:
      return {ReasonCode::kQueueShare,
              Sentence("waits for ", MinimumNeeds(job), ": queue ", NameOfQueue(facts),
                       " is entitled to ", Counted(facts.queue.entitled_gpus, "GPU"),
                       ", and others leave over too few", Before(facts))};
    case AdmissionState::kQueueLimit:
      return {ReasonCode::kQueueLimit,
              Sentence("waits for ", MinimumNeeds(job), ": ", LimitOfQueue(facts), " and keeps ",
                       facts.queue.kept_gpus, " for minimums", Before(facts))};
    case AdmissionState::kReserved:
      return {ReasonCode::kReserved,
              Sentence("waits for ", MinimumNeeds(job),
                       ": the GPUs that are left are reserved, or not lent", Before(facts))};
    case AdmissionState::kAboveLimit:
      return {ReasonCode::kQueueLimit, Sentence("its minimum of ", MinimumNeeds(job),
                                                " is never free: ", LimitOfQueue(facts))};
    case AdmissionState::kQueueStopped:
      return {ReasonCode::kQueueStopped,
              Sentence("queue ", NameOfQueue(facts), " admits no jobs: its spec.stop is ",
                       facts.model.QueueOf(facts.job).view->stop == QueueStop::kDrain ? "Drain"
                                                                                      : "Hold")};
    case AdmissionState::kQueueMissing:
      return {ReasonCode::kQueueMissing,
              Sentence("there is no queue ", NameOfQueue(facts),
                       ": change spec.queue while the job is suspended, or create the queue")};
    case AdmissionState::kQueueRefused:
      return {ReasonCode::kQueueRefused, job.view->queue_refusal};
    case AdmissionState::kPoolMissing:
      return {ReasonCode::kPoolMissing,
              Sentence("queue ", NameOfQueue(facts), " is of pool ", facts.model.pool.name,
                       ", which does not exist: an administrator has to create it")};
    case AdmissionState::kOverBudget:
      return {ReasonCode::kQuota, Sentence("waits for ", MinimumNeeds(job), ": ", Budget(facts))};
    case AdmissionState::kNoNodeFits:
      return {ReasonCode::kNoNodeFits, WhyNoNodeFits(facts)};
    case AdmissionState::kTooLarge:
      return {
          ReasonCode::kTooLarge,
          Sentence("its minimum of ", MinimumNeeds(job),
                   " would not fit if nobody else ran: the nodes that it can use take ",
                   Counted(facts.assignment.FitOf(facts.job).slots, "learner"), OneKind(facts))};
  }
  return {};
}

}  // namespace

bool MinimumIsAboveShare(const Job& job, std::int64_t priorities, std::int64_t entitled_gpus) {
  return job.minimum * job.needs().gpus * priorities > job.view->priority * entitled_gpus;
}

Reason WhyThisSize(const ReasonFacts& facts) {
  Reason reason = WhySharedOut(facts);
  if (facts.nodes) {
    reason.sentence +=
        Sentence("; nodes for ", Counted(facts.nodes->learners, "learner"), " are requested");
  }
  return reason;
}

}  // namespace pliant::planner
