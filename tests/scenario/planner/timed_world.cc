#include "tests/scenario/planner/timed_world.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "base/format.h"
#include "operator/planner/admission_order.h"

namespace pliant::planner {
namespace {

LearnerCount Running(const JobView& job) {
  return static_cast<LearnerCount>(
      std::ranges::count(job.learners, LearnerState::kRunning, &LearnerView::state));
}

// The queue of that name, or one with the defaults.
QueueView QueueNamed(const ClusterSnapshot& snapshot, const std::string& name) {
  const auto at = std::ranges::find(snapshot.queues, name, &QueueView::name);
  return at == snapshot.queues.end() ? QueueView{} : *at;
}

}  // namespace

void TimedWorld::Submit(const JobOf& job, const Program& program) {
  const std::string& name = job.view.key.name;
  if (!programs.emplace(name, program).second) throw std::runtime_error("job " + name + " exists");
  world.Submit(job);
}

void TimedWorld::SubmitAt(WallTime time, JobOf job, const Program& program) {
  arrivals_.emplace(time, Arrival{std::move(job), program});
}

JobView& TimedWorld::Job(const std::string& name) {
  if (!programs.contains(name)) throw std::runtime_error("there is no job " + name);
  return world.job(name);
}

void TimedWorld::EndLearners(const std::string& job) { Job(job).learners.clear(); }

void TimedWorld::EndLearnersOn(const std::string& node) {
  for (JobView& job : world.snapshot.jobs) {
    std::erase_if(job.learners, [&](const LearnerView& each) { return each.node == node; });
  }
}

// The operator does the same before it plans.
void TimedWorld::Observe() {
  const WallTime now = world.snapshot.now;
  for (JobView& job : world.snapshot.jobs) {
    if (job.share.desired > 0 || job.suspended || job.finished) {
      job.waiting.since.reset();
    } else if (!job.waiting.since) {
      job.waiting.since = now;
    }
    const auto live = std::ranges::count_if(
        job.learners, [](const LearnerView& each) { return each.state != LearnerState::kLeaving; });
    if (job.share.desired == 0 || live >= MinimumOf(job)) {
      job.share.below_minimum_since.reset();
    } else if (!job.share.below_minimum_since) {
      job.share.below_minimum_since = now;
    }
    const Program& program = programs.at(job.key.name);
    job.training.remaining_seconds.reset();
    if (program.runs && Running(job) > 0) {
      job.training.remaining_seconds = (*program.runs - program.has_run).count();
    }
    job.pool = QueueNamed(world.snapshot, job.queue).pool;
    const auto allowed = namespaces_of_queue.find(job.queue);
    const bool may_use =
        allowed == namespaces_of_queue.end() || allowed->second.contains(job.key.name_space);
    job.queue_refusal = may_use ? ""
                                : Format(
                                      "namespace {} may not use queue {}: its namespaceSelector "
                                      "does not match",
                                      job.key.name_space, job.queue);
  }
}

void TimedWorld::StartLearners() {
  for (JobView& job : world.snapshot.jobs) {
    const std::optional<LearnerCount> starts = programs.at(job.key.name).starts;
    for (LearnerView& learner : job.learners) {
      if (learner.state != LearnerState::kStarting || (starts && Running(job) >= *starts)) continue;
      learner.state = LearnerState::kRunning;
      learner.since = world.snapshot.now;
      learner.member = true;
    }
  }
}

void TimedWorld::Settle() {
  constexpr int kMaxPlans = 8;
  Observe();
  for (int plans = 0; plans < kMaxPlans; ++plans) {
    const ClusterSnapshot before = world.snapshot;
    world.CarryOut(world.MakePlan());
    world.EndLeavers();
    StartLearners();
    Observe();
    if (world.snapshot == before) return;
  }
  throw std::runtime_error("the plans do not stop changing");
}

void TimedWorld::AdvanceTo(WallTime time) {
  ClusterSnapshot& snapshot = world.snapshot;
  const Seconds passed = std::chrono::floor<Seconds>(time - snapshot.now);
  for (JobView& job : snapshot.jobs) {
    const std::int64_t gpus = Running(job) * job.needs.resources.gpus;
    if (gpus > 0) programs.at(job.key.name).has_run += passed;
    const Seconds half_life = QueueNamed(snapshot, job.queue).half_life;
    job.waiting.attained_gpu_seconds =
        Decayed(job.waiting.attained_gpu_seconds, passed, half_life) + gpus * passed.count();
  }
  snapshot.now = time;
}

WallTime TimedWorld::NextEvent(WallTime end) const {
  const WallTime now = world.snapshot.now;
  WallTime next = end;
  if (const auto again_at = world.MakePlan().again_at) {
    if (*again_at <= now) throw std::runtime_error("the next plan is said to be due already");
    next = std::min(next, *again_at);
  }
  if (!arrivals_.empty()) next = std::min(next, arrivals_.begin()->first);
  for (const JobView& job : world.snapshot.jobs) {
    const Program& program = programs.at(job.key.name);
    if (!program.runs || job.finished || Running(job) == 0) continue;
    next = std::min<WallTime>(next, now + *program.runs - program.has_run);
  }
  return next;
}

void TimedWorld::LetHappen() {
  while (!arrivals_.empty() && arrivals_.begin()->first <= world.snapshot.now) {
    const auto arrival = arrivals_.extract(arrivals_.begin());
    Submit(arrival.mapped().job, arrival.mapped().program);
  }
  for (const auto& [name, program] : programs) {
    if (program.runs && program.has_run >= *program.runs) world.Finish(name);
  }
}

void TimedWorld::PassUntil(WallTime end) {
  while (true) {
    AdvanceTo(NextEvent(end));
    LetHappen();
    Observe();
    if (world.snapshot.now >= end) return;
    Settle();
  }
}

}  // namespace pliant::planner
