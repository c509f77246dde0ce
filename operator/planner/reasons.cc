#include "operator/planner/reasons.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <ranges>
#include <string>
#include <string_view>

#include "base/format.h"
#include "operator/planner/feasibility.h"
#include "operator/planner/reason_texts.h"
#include "operator/planner/reasons_of_size.h"

namespace pliant::planner {
namespace {

// Whether pods of others take the room of a node that is large enough.
bool IsTaken(const NodeView& node, Obstacle obstacle, const Resources& needs) {
  const bool lacks_room =
      obstacle == Obstacle::kGpus || obstacle == Obstacle::kCpu || obstacle == Obstacle::kMemory;
  return lacks_room && Fits(needs, node.allocatable);
}

// The namespace whose pods take most of what a learner lacks on a node that is taken; "": unknown.
std::string_view TakerOf(const NodeView& node, Obstacle obstacle) {
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

// " (most is taken by pods of namespace team-b)", by the namespace that is first on most nodes
std::string Taken(const std::map<std::string_view, std::int64_t>& nodes_by_taker) {
  const auto most =
      std::ranges::max_element(nodes_by_taker, {}, [](const auto& taker) { return taker.second; });
  return Sentence(" (most is taken by pods of namespace ", most->first, ")");
}

// "no node can run a learner: 1 cordoned, 2 with too little memory"
Reason WhyNoNodeFits(const ReasonFacts& facts) {
  std::map<Obstacle, std::int64_t> nodes;
  std::map<Obstacle, std::map<std::string_view, std::int64_t>> takers;
  bool some_are_taken = false;
  const Fit& fit = facts.assignment.FitOf(facts.job);
  for (const auto& [node, obstacle] : std::views::zip(facts.model.nodes, fit.obstacles)) {
    if (node.view == nullptr) continue;
    ++nodes[obstacle];
    if (!IsTaken(*node.view, obstacle, fit.needs)) continue;
    some_are_taken = true;
    const std::string_view taker = TakerOf(*node.view, obstacle);
    if (!taker.empty()) ++takers[obstacle][taker];
  }
  if (nodes.empty()) {
    return {ReasonCode::kNoNodeFits, "no node can run a learner: there is no node with GPUs"};
  }
  std::string text = some_are_taken
                         ? Sentence("waits for ", MinimumNeeds(facts.model.jobs[facts.job]),
                                    ": no node has room for a learner:")
                         : "no node can run a learner:";
  std::string_view separator = " ";
  for (const auto& [obstacle, count] : nodes) {
    const std::string_view why =
        obstacle == Obstacle::kNone ? "on which its learners failed lately" : ToString(obstacle);
    text += Sentence(separator, count, " ", why);
    if (const auto taken = takers.find(obstacle); taken != takers.end())
      text += Taken(taken->second);
    separator = ", ";
  }
  return {some_are_taken ? ReasonCode::kNodesTaken : ReasonCode::kNoNodeFits,
          text + OneKind(facts)};
}

// ": 2 jobs are before it in queue default"; "" if none is
std::string Before(const ReasonFacts& facts) {
  const int jobs = facts.given.jobs_before;
  if (jobs == 0) return "";
  return Sentence(facts.given.standing == AdmissionState::kQueuedBehind ? ": " : "; ",
                  Counted(jobs, "job"), jobs == 1 ? " is" : " are", " before it in queue ",
                  NameOfQueue(facts));
}

// "job team-b/bert of queue research"
std::string ReclaimerOf(const ReasonFacts& facts) {
  const JobView& job = *facts.model.jobs[*facts.given.reclaimed_for].view;
  return Sentence("job ", job.key.name_space, "/", job.key.name, " of queue ", job.queue);
}

Reason WhySharedOut(const ReasonFacts& facts) {
  const Job& job = facts.model.jobs[facts.job];
  switch (facts.given.standing) {
    case AdmissionState::kInactive:
      if (job.view->finished) return {ReasonCode::kFinished, "finished"};
      if (job.view->deleted) return {ReasonCode::kSuspended, "being deleted: its learners leave"};
      return {ReasonCode::kSuspended, "suspended by spec.suspend"};
    case AdmissionState::kAdmitted:
      return WhyPlaced(facts);
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
              Sentence("its learners were granted GPUs but did not start in time",
                       CauseOf(*job.cap), "; tried again at ", UtcTime(job.cap->until))};
    case AdmissionState::kReclaimed:
      return {ReasonCode::kReclaimed, Sentence("checkpointed and queued: ", ReclaimerOf(facts),
                                               " needs GPUs that are guaranteed to its queue")};
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
      return WhyNoNodeFits(facts);
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
