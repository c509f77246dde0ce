#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/format.h"
#include "operator/planner/apportion.h"
#include "tests/unit/planner/builders.h"

// Properties of plans for several queues. rapidcheck prints the seed and the smallest failing case.
namespace pliant::planner {
namespace {

int Draw(int from, int to_inclusive) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(from, to_inclusive + 1));
}
bool DrawOneIn(int times) { return Draw(1, times) == 1; }

constexpr const char* kQueues[] = {"q0", "q1", "q2", "q3"};
constexpr const char* kKinds[] = {"first", "second"};  // of nodes

// kPlain: jobs that can start with one learner, and are faster with every GPU.
enum class Jobs { kPlain, kAny };

// Whether all nodes are alike, or of two kinds, each of which only some jobs may use.
enum class Kinds { kOne, kTwo };

// Nodes, some queues whose guarantees they can meet, and jobs of one-GPU learners. Some run.
ClusterSnapshot DrawTeams(Jobs jobs, Kinds kinds = Kinds::kOne) {
  ClusterSnapshot snapshot{.now = kStart + Seconds{4000}, .nodes = {}, .jobs = {}};
  const int gpus = Draw(4, 24);
  snapshot.nodes = Nodes(1, gpus);
  if (kinds == Kinds::kTwo) {
    const int of_first = Draw(1, gpus - 1);
    snapshot.nodes = Nodes(2, of_first);
    snapshot.nodes[1].allocatable.gpus = gpus - of_first;
    snapshot.nodes[0].labels["pool"] = kKinds[0];
    snapshot.nodes[1].labels["pool"] = kKinds[1];
  }
  int unguaranteed = gpus;
  for (const char* name : kQueues) {
    QueueView queue{.name = name, .weight = Draw(1, 4) * 25};
    queue.guaranteed_gpus = DrawOneIn(2) ? Draw(0, std::min(unguaranteed, 8)) : 0;
    unguaranteed -= static_cast<int>(queue.guaranteed_gpus);
    if (DrawOneIn(4)) queue.limit_gpus = queue.guaranteed_gpus + Draw(0, 6);
    if (DrawOneIn(4)) queue.lending_limit_gpus = Draw(0, static_cast<int>(queue.guaranteed_gpus));
    queue.policy = static_cast<QueuePolicy>(Draw(0, 2));
    queue.strict = DrawOneIn(4);
    if (jobs == Jobs::kAny) {
      queue.evicts = !DrawOneIn(4);
      if (DrawOneIn(8)) queue.stop = static_cast<QueueStop>(Draw(1, 2));
    }
    snapshot.queues.push_back(queue);
  }
  int free = gpus;
  const int count = Draw(0, 9);
  for (int index = 0; index < count; ++index) {
    const int min = jobs == Jobs::kPlain ? 1 : Draw(1, 6);
    JobOf job(Format("j{}", index), min, min + Draw(0, 8));
    job.Queue(kQueues[Draw(0, 3)]).Priority(Draw(1, 20)).Submitted(Seconds{Draw(0, 3900)});
    job.Shards(jobs == Jobs::kPlain ? 4096 : 1 << Draw(3, 12)).Attained(Draw(0, 9000));
    job.Started(Seconds{Draw(0, 3900)}, Seconds{0});
    if (kinds == Kinds::kTwo) {
      if (!DrawOneIn(3)) job.OnlyOn(kKinds[Draw(0, 1)]);
      job.view.share.started.reset();
    } else if (DrawOneIn(2) && free >= min) {
      const int held = std::min({free, job.view.max_learners, min + Draw(0, 4)});
      free -= held;
      job.Has(held, "n00");
      if (DrawOneIn(2)) job.view.share.admitted_minimum = Draw(1, std::min(min, held));
    } else {
      job.view.share.started.reset();
    }
    snapshot.jobs.push_back(job.view);
  }
  return snapshot;
}

const QueueView& QueueNamed(const ClusterSnapshot& snapshot, const std::string& name) {
  return *std::ranges::find(snapshot.queues, name, &QueueView::name);
}

const JobView& Find(const ClusterSnapshot& snapshot, const JobKey& key) {
  return *std::ranges::find(snapshot.jobs, key, &JobView::key);
}

// Minimums of its jobs that have learners.
std::int64_t KeptBefore(const ClusterSnapshot& snapshot, const std::string& queue) {
  std::int64_t gpus = 0;
  for (const JobView& job : snapshot.jobs) {
    if (job.queue == queue && !job.learners.empty()) gpus += MinimumOf(job);
  }
  return gpus;
}

void Log(const ClusterSnapshot& snapshot, const Plan& plan) {
  RC_LOG() << Describe(snapshot);
  for (const Decision& decision : plan.decisions) RC_LOG() << decision << "\n";
  for (const QueueShare& share : plan.queues) RC_LOG() << share << "\n";
}

RC_GTEST_PROP(QueueProperty, NoQueueGrowsBeyondItsLimit, ()) {
  const ClusterSnapshot snapshot = DrawTeams(Jobs::kAny);
  const Plan plan = MakePlan(snapshot, {});
  Log(snapshot, plan);
  for (const QueueView& queue : snapshot.queues) {
    if (!queue.limit_gpus) continue;
    RC_ASSERT(ShareOf(plan, queue.name).allocated <=
              std::max(*queue.limit_gpus, KeptBefore(snapshot, queue.name)));
  }
}

// A job that waits gets its minimum out of the guarantee, whoever else has it. Jobs that run are
// shrunk for the rest of the guarantee, but not released.
RC_GTEST_PROP(QueueProperty, GuaranteesAreMet, ()) {
  const ClusterSnapshot snapshot = DrawTeams(Jobs::kPlain);
  const Plan plan = MakePlan(snapshot, {});
  Log(snapshot, plan);
  std::map<std::string, std::int64_t> minimums;
  for (const Decision& decision : plan.decisions) {
    const JobView& job = Find(snapshot, decision.job);
    if (decision.to > 0) minimums[job.queue] += MinimumOf(job);
  }
  for (const QueueView& queue : snapshot.queues) {
    const QueueShare& share = ShareOf(plan, queue.name);
    const std::int64_t owed = std::min(queue.guaranteed_gpus, share.demand);
    RC_ASSERT(share.entitled >= owed);
    if (share.allocated >= owed) continue;
    RC_ASSERT(share.waiting == 0);
    for (const QueueShare& other : plan.queues) {
      const bool borrows = other.allocated > QueueNamed(snapshot, other.queue).guaranteed_gpus;
      if (borrows) RC_ASSERT(other.allocated == minimums[other.queue]);
    }
  }
}

// Whether learners that may use the kinds of nodes that they may use fit: one-GPU learners, so by
// the sums of each kind.
class Room {
 public:
  Room(const ClusterSnapshot& snapshot, const Plan& plan) : snapshot_(snapshot) {
    for (const Decision& decision : plan.decisions) Add(decision.job, decision.to);
  }
  void Add(const JobKey& job, int learners) {
    const auto& selector = Find(snapshot_, job).needs.node_selector;
    const auto kind = selector.find("pool");
    learners_[kind == selector.end() ? "" : kind->second] += learners;
  }
  bool Fits() const {
    std::int64_t room = 0;
    std::int64_t learners = 0;
    for (const NodeView& node : snapshot_.nodes) {
      const auto of_kind = learners_.find(node.labels.at("pool"));
      if (of_kind != learners_.end() && of_kind->second > node.allocatable.gpus) return false;
      room += node.allocatable.gpus;
    }
    for (const auto& [kind, count] : learners_) learners += count;
    return learners <= room;
  }

 private:
  const ClusterSnapshot& snapshot_;
  std::map<std::string, std::int64_t> learners_;  // by the kind that they need; "": any
};

// Where queues need the same nodes, too: no job of a queue without a guarantee has a learner beyond
// its minimum in whose place a queue below its guarantee could have one.
RC_GTEST_PROP(QueueProperty, GuaranteesComeFirstOnTheNodesThatTheyNeed, ()) {
  const ClusterSnapshot snapshot = DrawTeams(Jobs::kPlain, Kinds::kTwo);
  const Plan plan = MakePlan(snapshot, {});
  Log(snapshot, plan);
  for (const QueueView& queue : snapshot.queues) {
    const QueueShare& share = ShareOf(plan, queue.name);
    if (share.allocated >= std::min(queue.guaranteed_gpus, share.demand)) continue;
    for (const Decision& lacking : plan.decisions) {
      const JobView& job = Find(snapshot, lacking.job);
      if (job.queue != queue.name || lacking.to == 0 || lacking.to >= lacking.demand) continue;
      for (const Decision& other : plan.decisions) {
        const JobView& borrower = Find(snapshot, other.job);
        const bool borrows = QueueNamed(snapshot, borrower.queue).guaranteed_gpus == 0;
        if (!borrows || other.to <= MinimumOf(borrower)) continue;
        Room room(snapshot, plan);
        room.Add(lacking.job, 1);
        room.Add(other.job, -1);
        RC_ASSERT(!room.Fits());
      }
    }
  }
}

// A job is released only if its queue has more than its guarantee, for a job of another queue that
// then has its minimum.
RC_GTEST_PROP(QueueProperty, NoJobWithinTheGuaranteeOfItsQueueIsReleased, ()) {
  const ClusterSnapshot snapshot = DrawTeams(Jobs::kAny);
  const Plan plan = MakePlan(snapshot, {});
  Log(snapshot, plan);
  for (const Decision& decision : plan.decisions) {
    if (decision.reason.code != ReasonCode::kReclaimed) continue;
    const std::string& queue = Find(snapshot, decision.job).queue;
    RC_ASSERT(KeptBefore(snapshot, queue) > QueueNamed(snapshot, queue).guaranteed_gpus);
    const bool is_for_another = std::ranges::any_of(plan.decisions, [&](const Decision& other) {
      const JobView& job = Find(snapshot, other.job);
      return job.queue != queue && job.learners.empty() && other.to >= MinimumOf(job) &&
             QueueNamed(snapshot, job.queue).guaranteed_gpus >= MinimumOf(job);
    });
    RC_ASSERT(is_for_another);
  }
}

RC_GTEST_PROP(QueueProperty, AllThatIsBorrowedIsLent, ()) {
  const ClusterSnapshot snapshot = DrawTeams(Jobs::kAny);
  const Plan plan = MakePlan(snapshot, {});
  Log(snapshot, plan);
  std::int64_t borrowed = 0;
  std::int64_t lent = 0;
  std::int64_t allocated = 0;
  for (const QueueShare& share : plan.queues) {
    const QueueView& queue = QueueNamed(snapshot, share.queue);
    borrowed += share.borrowed;
    lent += share.lent;
    allocated += share.allocated;
    RC_ASSERT(share.borrowed >= 0);
    RC_ASSERT(share.borrowed <= std::max<std::int64_t>(share.allocated - queue.guaranteed_gpus, 0));
    RC_ASSERT(share.lent >= 0);
    RC_ASSERT(share.lent <= std::max<std::int64_t>(queue.guaranteed_gpus - share.allocated, 0));
    RC_ASSERT(share.lent <= queue.lending_limit_gpus.value_or(INT64_MAX));
  }
  RC_ASSERT(borrowed >= lent);
  RC_ASSERT(allocated <= plan.capacity_gpus);
}

RC_GTEST_PROP(QueueProperty, TheOrderOfTheSnapshotDoesNotMatter, ()) {
  ClusterSnapshot snapshot = DrawTeams(Jobs::kAny);
  const Plan plan = MakePlan(snapshot, {});
  std::ranges::reverse(snapshot.jobs);
  std::ranges::rotate(snapshot.queues, snapshot.queues.begin() + Draw(0, 3));
  const Plan again = MakePlan(snapshot, {});
  RC_ASSERT(plan.decisions == again.decisions);
  RC_ASSERT(plan.queues == again.queues);
  RC_ASSERT(plan.again_at == again.again_at);
}

// Carries out plans until one changes nothing, and fails if that takes many.
void SettleWithin(int plans, ClusterSnapshot snapshot) {
  World world({});
  world.snapshot = std::move(snapshot);
  for (JobView& job : world.snapshot.jobs) job.cooldown = Seconds{0};
  const bool leavers_end = DrawOneIn(2);
  RC_LOG() << Describe(world.snapshot);
  for (int made = 0; made <= plans; ++made) {
    const Plan plan = world.MakePlan();
    for (const Decision& decision : plan.decisions) RC_LOG() << made << ": " << decision << "\n";
    if (std::ranges::all_of(plan.decisions, &Decision::ChangesNothing)) return;
    world.CarryOut(plan);
    if (leavers_end) world.EndLeavers();
  }
  RC_FAIL("the plans do not stop changing");
}

RC_GTEST_PROP(QueueProperty, ASecondPlanChangesNothing, ()) {
  SettleWithin(1, DrawTeams(Jobs::kPlain));
}

// No ping-pong: what was taken back is not borrowed again.
RC_GTEST_PROP(QueueProperty, PlansComeToRest, ()) {
  SettleWithin(3, DrawTeams(Jobs::kAny, DrawOneIn(3) ? Kinds::kTwo : Kinds::kOne));
}

// GPUs idle only if they are withheld, or kept for a job that waits and could take them.
RC_GTEST_PROP(QueueProperty, NoGpuIsIdleThatAJobCouldTake, ()) {
  const ClusterSnapshot snapshot = DrawTeams(Jobs::kAny);
  const Plan plan = MakePlan(snapshot, {});
  Log(snapshot, plan);
  std::int64_t idle = plan.capacity_gpus;
  std::int64_t withheld = 0;
  for (const QueueShare& share : plan.queues) {
    const QueueView& queue = QueueNamed(snapshot, share.queue);
    idle -= share.allocated;
    const std::int64_t unused = queue.guaranteed_gpus - share.demand;
    withheld += std::max<std::int64_t>(unused - queue.lending_limit_gpus.value_or(INT32_MAX), 0);
  }
  for (const Decision& decision : plan.decisions) {
    const JobView& job = Find(snapshot, decision.job);
    const QueueView& queue = QueueNamed(snapshot, job.queue);
    const std::int64_t in_queue = ShareOf(plan, job.queue).allocated + MinimumOf(job);
    const bool waits = decision.to == 0 && queue.stop == QueueStop::kNone &&
                       in_queue <= queue.limit_gpus.value_or(INT64_MAX);
    if (!waits || MinimumOf(job) > idle - withheld || queue.strict) continue;
    // Then they are kept for another, which needs more than would be left of them, or of the limit
    // of their queue.
    const bool another_needs_them = std::ranges::any_of(plan.decisions, [&](const Decision& other) {
      if (other.job == decision.job || other.to > 0) return false;
      const JobView& needs = Find(snapshot, other.job);
      return needs.min_learners > idle - withheld - MinimumOf(job) ||
             (needs.queue == job.queue &&
              in_queue + needs.min_learners > queue.limit_gpus.value_or(INT64_MAX));
    });
    RC_ASSERT(another_needs_them);
  }
}

std::int64_t IdleGpus(const Plan& plan) {
  std::int64_t idle = plan.capacity_gpus;
  for (const QueueShare& share : plan.queues) idle -= share.allocated;
  return idle;
}

// A node autoscaler adds what is requested and does not fit into idle GPUs, until nothing is
// requested. Then all jobs run for which nodes were requested, unless idle GPUs are kept for others
// for a while, or a job in front of them takes the share of their queue: it waits, or fitted no
// node before. No more than twice the minimums of waiting jobs come: growth does not make nodes
// come without end.
RC_GTEST_PROP(QueueProperty, NodesComeForMinimumsOnly, ()) {
  World world({});
  world.snapshot = DrawTeams(Jobs::kAny);
  world.snapshot.pools = {{.requests_nodes = true}};
  for (JobView& job : world.snapshot.jobs) job.cooldown = Seconds{0};
  world.Settle();
  std::int64_t minimums = 0;
  const Plan first = world.MakePlan();
  for (const Decision& decision : first.decisions) {
    if (decision.to == 0) minimums += Find(world.snapshot, decision.job).min_learners;
  }
  std::int64_t added = 0;
  std::set<std::string> requesting;
  for (int round = 0;; ++round) {
    RC_ASSERT(round < 10);
    const Plan plan = world.MakePlan();
    Log(world.snapshot, plan);
    std::int64_t requested = 0;
    for (const Decision& decision : plan.decisions) {
      if (!decision.nodes) continue;
      RC_ASSERT(decision.to == 0);
      RC_ASSERT(decision.nodes->learners > 0);
      requested += decision.nodes->learners;
      requesting.insert(decision.job.name);
    }
    RC_ASSERT(requested == plan.pools.front().requested);
    if (requested == 0) break;
    const std::int64_t more = requested - IdleGpus(plan);
    RC_ASSERT(more > 0);
    world.snapshot.nodes.push_back(GpuNode(Format("added{}", round), more));
    added += more;
    world.Settle();
  }
  RC_CLASSIFY(added > 0);
  RC_ASSERT(added <= 2 * minimums);
  const Plan plan = world.MakePlan();
  if (IdleGpus(plan) > 0) return;
  for (const std::string& name : requesting) {
    const Decision& decision = DecisionOn(plan, name);
    const std::string& queue = Find(world.snapshot, decision.job).queue;
    const bool is_behind = std::ranges::any_of(plan.decisions, [&](const Decision& other) {
      const bool fitted_none =
          DecisionOn(first, other.job.name).reason.code == ReasonCode::kTooLarge;
      return other.job != decision.job && (other.to == 0 || fitted_none) &&
             Find(world.snapshot, other.job).queue == queue;
    });
    RC_ASSERT(decision.to > 0 || is_behind);
  }
}

// Pods of other workloads get only what jobs have beyond their minimums, and queues beyond their
// guarantees.
RC_GTEST_PROP(QueueProperty, PendingPodsTakeNoMinimumAndNoGuarantee, ()) {
  ClusterSnapshot snapshot = DrawTeams(Jobs::kAny);
  snapshot.pools = {{.yields = true}};
  const Plan without = MakePlan(snapshot, {});
  const int pods = Draw(1, 4);
  for (int index = 0; index < pods; ++index) {
    snapshot.pending.push_back({.name_space = "others",
                                .name = Format("p{}", index),
                                .gpus = Draw(1, 6),
                                .since = snapshot.now - Seconds{Draw(0, 500)}});
  }
  const Plan plan = MakePlan(snapshot, {});
  Log(snapshot, plan);
  const std::int64_t yielded = plan.pools.front().yielded;
  RC_CLASSIFY(yielded > 0);
  RC_ASSERT(plan.decisions.size() == snapshot.jobs.size());
  RC_ASSERT(yielded <= IdleGpus(plan));
  for (const Decision& decision : plan.decisions) {
    const JobView& job = Find(snapshot, decision.job);
    if (std::ssize(job.learners) < MinimumOf(job)) continue;
    const LearnerCount before = DecisionOn(without, job.key.name).to;
    RC_ASSERT(decision.to >= std::min(before, MinimumOf(job)));
  }
  for (const QueueShare& share : without.queues) {
    const std::int64_t guaranteed = QueueNamed(snapshot, share.queue).guaranteed_gpus;
    RC_ASSERT(ShareOf(plan, share.queue).entitled >= std::min(share.entitled, guaranteed));
  }
}

// The simplest program for the same: each seat by comparing all claims.
std::vector<std::int64_t> SeatBySeat(const std::vector<Claimant>& claimants, std::int64_t seats) {
  std::vector<std::int64_t> has(claimants.size());
  for (const auto target : {&Claimant::floor, &Claimant::kept, &Claimant::cap}) {
    while (seats > 0) {
      std::ptrdiff_t best = -1;
      for (std::size_t index = 0; index < claimants.size(); ++index) {
        const Claimant& each = claimants[index];
        if (has[index] >= std::min(each.*target, each.cap)) continue;
        if (best < 0) {
          best = static_cast<std::ptrdiff_t>(index);
          continue;
        }
        const Claimant& other = claimants[static_cast<std::size_t>(best)];
        const std::int64_t of_best = has[static_cast<std::size_t>(best)];
        const auto claim = std::tuple(each.weight * (2 * of_best + 1), has[index] < each.held);
        const auto claim_of_best =
            std::tuple(other.weight * (2 * has[index] + 1), of_best < other.held);
        if (claim > claim_of_best) best = static_cast<std::ptrdiff_t>(index);
      }
      if (best < 0) break;
      ++has[static_cast<std::size_t>(best)];
      --seats;
    }
  }
  return has;
}

std::vector<Claimant> DrawClaimants() {
  std::vector<Claimant> claimants;
  const int count = Draw(1, 6);
  for (int index = 0; index < count; ++index) {
    claimants.push_back({.weight = Draw(1, 20),
                         .floor = DrawOneIn(2) ? Draw(0, 6) : 0,
                         .kept = DrawOneIn(2) ? Draw(0, 6) : 0,
                         .cap = Draw(0, 20),
                         .held = Draw(0, 6)});
  }
  return claimants;
}

RC_GTEST_PROP(ApportionProperty, IsWhatTheSimplestProgramComputes, ()) {
  const std::vector<Claimant> claimants = DrawClaimants();
  const int seats = Draw(0, 60);
  RC_ASSERT(Apportion(claimants, seats) == SeatBySeat(claimants, seats));
}

RC_GTEST_PROP(ApportionProperty, OneSeatMoreTakesNoneFromAnybody, ()) {
  const std::vector<Claimant> claimants = DrawClaimants();
  const int seats = Draw(0, 60);
  const auto before = Apportion(claimants, seats);
  const auto after = Apportion(claimants, seats + 1);
  for (std::size_t index = 0; index < before.size(); ++index) {
    RC_ASSERT(after[index] >= before[index]);
  }
  std::int64_t wanted = 0;
  for (const Claimant& claimant : claimants) wanted += claimant.cap;
  RC_ASSERT(std::accumulate(before.begin(), before.end(), std::int64_t{0}) ==
            std::min<std::int64_t>(wanted, seats));
}

RC_GTEST_PROP(ApportionProperty, AHigherWeightGivesNothingToOthers, ()) {
  std::vector<Claimant> claimants = DrawClaimants();
  const int seats = Draw(0, 60);
  const auto before = Apportion(claimants, seats);
  const auto raised = static_cast<std::size_t>(Draw(0, static_cast<int>(claimants.size()) - 1));
  claimants[raised].weight += Draw(1, 30);
  const auto after = Apportion(claimants, seats);
  for (std::size_t index = 0; index < before.size(); ++index) {
    const bool is_fair =
        index == raised ? after[index] >= before[index] : after[index] <= before[index];
    RC_ASSERT(is_fair);
  }
}

// The same for queues in a plan, as long as no job is admitted or released by it.
RC_GTEST_PROP(QueueProperty, AHigherWeightOfOneQueueGivesNothingToTheOthers, ()) {
  ClusterSnapshot snapshot = DrawTeams(Jobs::kPlain);
  std::erase_if(snapshot.jobs, [](const JobView& job) { return job.learners.empty(); });
  const Plan before = MakePlan(snapshot, {});
  QueueView& raised = snapshot.queues[static_cast<std::size_t>(Draw(0, 3))];
  raised.weight += Draw(1, 200);
  const Plan after = MakePlan(snapshot, {});
  for (const QueueShare& share : before.queues) {
    const std::int64_t entitled = ShareOf(after, share.queue).entitled;
    const bool is_fair =
        share.queue == raised.name ? entitled >= share.entitled : entitled <= share.entitled;
    RC_ASSERT(is_fair);
  }
}

RC_GTEST_PROP(QueueProperty, NoQueueLosesWhenAGpuIsAdded, ()) {
  ClusterSnapshot snapshot = DrawTeams(Jobs::kPlain);
  std::erase_if(snapshot.jobs, [](const JobView& job) { return job.learners.empty(); });
  const Plan before = MakePlan(snapshot, {});
  ++snapshot.nodes[0].allocatable.gpus;
  const Plan after = MakePlan(snapshot, {});
  for (const QueueShare& share : before.queues) {
    RC_ASSERT(ShareOf(after, share.queue).entitled >= share.entitled);
  }
}

}  // namespace
}  // namespace pliant::planner
