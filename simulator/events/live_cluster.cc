#include "simulator/events/live_cluster.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>
#include <variant>

#include "operator/planner/carry_out.h"
#include "operator/speed/resize_cost.h"

namespace pliant::simulator {
namespace {

using planner::Decision;
using planner::JobView;
using planner::LearnerState;
using planner::LearnerView;

// A learner that leaves while no other trains waits this long for its successors.
constexpr std::int64_t kGracePeriod = 60'000;
// After the loss of a learner the others find out, and compute its part again.
constexpr std::int64_t kCrashPause = 1'000;

Placement PlacementOf(const std::map<std::size_t, int>& learners_by_node) {
  Placement placement;
  for (const auto& [node, learners] : learners_by_node) placement.push_back(learners);
  return placement;
}

// A pod that ended has no node.
void EraseEnded(JobView& view) {
  std::erase_if(view.learners, [](const LearnerView& learner) { return learner.node.empty(); });
}

}  // namespace

LiveCluster::LiveCluster(const RunInput& input, const RunOptions& options,
                         EventQueue<Event>& events, std::vector<JobRecord>& records)
    : options_(options), events_(events), random_(options.seed) {
  snapshot_.nodes = input.nodes;
  snapshot_.queues = input.queues;
  snapshot_.pools = input.pools;
  for (std::size_t index = 0; index < snapshot_.nodes.size(); ++index) {
    snapshot_.nodes[index].version = {index + 1};
    node_index_[snapshot_.nodes[index].name] = index;
  }
  for (std::size_t index = 0; index < input.jobs.size(); ++index) {
    const SimulatedJob& job = input.jobs[index];
    const LearnedSteps* const learned =
        options.speeds == KnownSpeeds::kLearned ? &learned_[job.application] : nullptr;
    live_.push_back({.spec = &job,
                     .record = &records[index],
                     .clock = {job.work, learned, options.checkpoint_every}});
    job_index_[job.view.key] = index;
  }
}

void LiveCluster::SetTime(std::int64_t now) {
  now_ = now;
  snapshot_.now = ToWall(now);
}

planner::NodeView* LiveCluster::NodeNamed(const std::string& name) {
  const auto at = node_index_.find(name);
  return at == node_index_.end() ? nullptr : &snapshot_.nodes[at->second];
}

JobView* LiveCluster::JobNamed(const std::string& name) {
  const auto at =
      std::ranges::find(snapshot_.jobs, name, [](const JobView& view) { return view.key.name; });
  return at == snapshot_.jobs.end() ? nullptr : &*at;
}

JobView* LiveCluster::ViewOf(const LiveJob& job) {
  const auto at = std::ranges::lower_bound(snapshot_.jobs, job.spec->view.key, {}, &JobView::key);
  return at == snapshot_.jobs.end() || at->key != job.spec->view.key ? nullptr : &*at;
}

void LiveCluster::Arrive(std::size_t index) {
  LiveJob& job = live_[index];
  JobView view = job.spec->view;
  if (!job.spec->is_present) view.submitted = snapshot_.now;
  if (options_.speeds != KnownSpeeds::kNone) view.training.speeds = job.clock.Speeds();
  const auto at = std::ranges::lower_bound(snapshot_.jobs, view.key, {}, &JobView::key);
  snapshot_.jobs.insert(at, std::move(view));
  job.counted_to = now_;
  if (job.spec->is_present) Adopt(job);
}

// Its learners continue what they did when the run began.
void LiveCluster::Adopt(LiveJob& job) {
  const JobView& view = *ViewOf(job);
  const auto* const live = std::get_if<LiveResizing>(&options_.resizing);
  for (const LearnerView& learner : view.learners) {
    if (learner.state == LearnerState::kStarting) {
      events_.Add(now_ + (live != nullptr ? live->start : 0),
                  LearnerStarted{IndexOf(job), learner.name});
    }
    if (learner.state == LearnerState::kLeaving) {
      events_.Add(now_ + (live != nullptr ? live->leave : 0),
                  LearnerLeft{IndexOf(job), learner.name});
    }
  }
  job.attained_gpu_seconds = static_cast<double>(view.waiting.attained_gpu_seconds);
  Update(job);
}

void LiveCluster::Count(LiveJob& job) {
  job.clock.AdvanceTo(now_);
  const double seconds = static_cast<double>(now_ - job.counted_to) / 1000;
  job.counted_to = now_;
  if (job.gpus == 0 && job.attained_gpu_seconds == 0) return;
  job.record->gpu_seconds += job.gpus * seconds;
  const double half_life = static_cast<double>(HalfLifeOf(job).count());
  job.attained_gpu_seconds =
      job.attained_gpu_seconds * std::exp2(-seconds / half_life) + job.gpus * seconds;
}

planner::Seconds LiveCluster::HalfLifeOf(const LiveJob& job) const {
  const auto at =
      std::ranges::find(snapshot_.queues, job.spec->view.queue, &planner::QueueView::name);
  return at == snapshot_.queues.end() ? planner::QueueView{}.half_life : at->half_life;
}

// Learners, GPUs or the batch of the job have changed.
void LiveCluster::Update(LiveJob& job) {
  const JobView* const view = ViewOf(job);
  int held = 0;
  std::map<std::size_t, int> trains_on;  // learners by node
  std::map<std::size_t, int> hands_over;
  std::map<std::size_t, int> planned_on;
  if (view != nullptr) {
    for (const LearnerView& learner : view->learners) {
      const bool leaves = learner.state == LearnerState::kLeaving;
      if (learner.state != LearnerState::kGated) ++held;
      if (!leaves) ++planned_on[node_index_.at(learner.node)];
      if (!learner.member) continue;
      ++(leaves ? hands_over : trains_on)[node_index_.at(learner.node)];
    }
  }
  if (trains_on.empty()) trains_on = std::move(hands_over);
  if (job.clock.is_done()) trains_on.clear();
  Count(job);
  job.clock.TrainOn(PlacementOf(trains_on), PlacementOf(planned_on));
  job.gpus = held * static_cast<int>(job.spec->view.needs.resources.gpus);
  Follow(job);
}

void LiveCluster::Follow(LiveJob& job) {
  const SizeAt size{.at = now_, .gpus = job.gpus, .batch = job.clock.state().batch};
  std::vector<SizeAt>& sizes = job.record->sizes;
  if (!sizes.empty() && sizes.back().at == now_) sizes.pop_back();
  const SizeAt before = sizes.empty() ? SizeAt{} : sizes.back();
  if (before.gpus != size.gpus || before.batch != size.batch) sizes.push_back(size);
  if (const auto end = job.clock.phase_ends_at()) {
    events_.Add(*end, PhaseEnd{IndexOf(job), job.clock.version()});
  }
  const std::uint64_t version = job.clock.size_version();
  if (options_.speeds != KnownSpeeds::kLearned || job.measured_version == version) return;
  if (const auto since = job.clock.steady_since()) {
    job.measured_version = version;
    events_.Add(*since + options_.measure_after, Measured{IndexOf(job), version});
  }
}

int LiveCluster::HoldPercentOf(const JobView& view) const {
  constexpr double kMillisecond = 1e-3;
  speed::ResizeCost cost;
  if (const auto* const live = std::get_if<LiveResizing>(&options_.resizing)) {
    cost = {.start_seconds = kMillisecond * static_cast<double>(live->start),
            .pause_seconds = kMillisecond * static_cast<double>(live->pause)};
  } else {
    const std::int64_t pause = std::get<Restarting>(options_.resizing).pause;
    cost.pause_seconds = kMillisecond * static_cast<double>(pause);
  }
  const auto members = std::ranges::count_if(
      view.learners, [](const LearnerView& learner) { return learner.member; });
  const double remaining = view.training.remaining_seconds
                               ? static_cast<double>(*view.training.remaining_seconds)
                               : std::numeric_limits<double>::infinity();
  return speed::HoldPercent(cost, static_cast<int>(members), remaining);
}

void LiveCluster::Refresh() {
  for (JobView& view : snapshot_.jobs) {
    LiveJob& job = JobOf(view);
    Count(job);
    view.waiting.attained_gpu_seconds = static_cast<std::int64_t>(job.attained_gpu_seconds);
    view.waiting.attained_at = snapshot_.now;
    const double alone = job.clock.work().SecondsAlone(job.clock.state());
    view.training.alone_seconds.reset();
    view.training.remaining_seconds.reset();
    if (std::isfinite(alone)) {
      view.training.alone_seconds = static_cast<std::int64_t>(alone);
      if (job.clock.speed() > 0) {
        view.training.remaining_seconds = static_cast<std::int64_t>(alone / job.clock.speed());
      }
    }
    view.training.hold_percent = HoldPercentOf(view);
    const auto present = std::ranges::count_if(view.learners, [](const LearnerView& learner) {
      return learner.state != LearnerState::kLeaving;
    });
    const bool lacks = view.share.desired > 0 && present < MinimumOf(view);
    if (!lacks) {
      view.share.below_minimum_since.reset();
    } else if (!view.share.below_minimum_since) {
      view.share.below_minimum_since = snapshot_.now;
    }
  }
}

void LiveCluster::CarryOut(const planner::Plan& plan) {
  decisions_ = plan.decisions;
  std::vector<std::size_t> changed;
  for (Decision& decision : decisions_) {
    LiveJob& job = live_[job_index_.at(decision.job)];
    JobView& view = *ViewOf(job);
    view.cap = decision.cap;
    view.training.gpu_product = decision.gpu_product;
    SetShare(view, decision);
    if (decision.ChangesNothing()) continue;
    const bool trained = job.clock.trains();
    if (trained && decision.to > 0) ++job.record->resizes;
    if (trained && decision.to > 0 && decision.keep.empty()) ++job.record->moves;
    Drop(view, job, decision);
    Create(view, job, decision);
    changed.push_back(IndexOf(job));
  }
  OpenGates();
  for (const std::size_t index : changed) {
    if (const auto* restart = std::get_if<Restarting>(&options_.resizing)) {
      Count(live_[index]);
      live_[index].clock.PauseUntil(now_ + restart->pause);
    }
    Update(live_[index]);
  }
}

void LiveCluster::Create(JobView& view, LiveJob& job, Decision& decision) {
  for (const planner::NewLearner& learner : decision.create) {
    view.learners.push_back({.name = view.key.name + "-" + std::to_string(job.learners_created++),
                             .node = learner.node,
                             .created = snapshot_.now,
                             .since = snapshot_.now});
    decision.keep.push_back(view.learners.back().name);
  }
}

std::vector<JobView*> LiveCluster::Learn(const LiveJob& job) {
  const TrainingClock& clock = job.clock;
  auto step = clock.work().Measure(clock.state(), clock.placement());
  if (!step) return {};
  const double noise = 1 + options_.measurement_noise * (2 * DrawUniform(random_) - 1);
  step->step_seconds *= noise;
  step->compute_seconds *= noise;
  LearnedSteps& learned = learned_[job.spec->application];
  if (!learned.table.Add(*step)) return {};
  learned.model.emplace(learned.table.steps());
  std::vector<JobView*> views;
  for (JobView& view : snapshot_.jobs) {
    const bool is_alike = JobOf(view).spec->application == job.spec->application;
    if (is_alike && !view.finished) views.push_back(&view);
  }
  return views;
}

void LiveCluster::SetShare(JobView& view, const Decision& decision) {
  if (view.share.desired == 0 && decision.to > 0) view.waiting.since.reset();
  if (view.share.desired > 0 && decision.to == 0) view.waiting.since = snapshot_.now;
  view.share = planner::ShareAfter(view.share, decision, snapshot_.now);
}

void LiveCluster::Drop(JobView& view, LiveJob& job, const Decision& decision) {
  if (decision.drop.empty()) return;
  const bool one_stays = std::ranges::any_of(view.learners, [&](const LearnerView& learner) {
    return learner.member && std::ranges::contains(decision.keep, learner.name);
  });
  bool pauses = false;
  for (LearnerView& learner : view.learners) {
    if (!std::ranges::contains(decision.drop, learner.name)) continue;
    pauses = pauses || learner.member;
    // Without one that stays, it trains until its successors have its state.
    const bool hands_over = learner.member && !one_stays && decision.to > 0;
    Leave(learner, IndexOf(job), hands_over ? kGracePeriod : 0);
    if (!hands_over) learner.member = false;
  }
  EraseEnded(view);
  if (pauses) Pause(job, PauseOfResize());
}

std::int64_t LiveCluster::PauseOfResize() const {
  const auto* const live = std::get_if<LiveResizing>(&options_.resizing);
  return live != nullptr ? live->pause : 0;
}

void LiveCluster::Pause(LiveJob& job, std::int64_t time) {
  Count(job);
  job.clock.PauseUntil(now_ + time);
}

// Its pod ends: at once if it holds no GPUs, or if jobs restart.
void LiveCluster::Leave(LearnerView& learner, std::size_t job, std::int64_t after) {
  const bool ends_now = restarts() || learner.state == LearnerState::kGated;
  learner.state = LearnerState::kLeaving;
  learner.since = snapshot_.now;
  if (ends_now) {
    learner.node.clear();
    return;
  }
  const std::int64_t leave = std::get<LiveResizing>(options_.resizing).leave;
  events_.Add(now_ + after + leave, LearnerLeft{job, learner.name});
}

void LiveCluster::OpenGates() {
  for (const planner::GateOpening& gate : planner::OpenGates(snapshot_, decisions_)) {
    LiveJob& job = live_[job_index_.at(gate.job)];
    JobView& view = *ViewOf(job);
    LearnerView& learner = *std::ranges::find(view.learners, gate.learner, &LearnerView::name);
    learner.since = snapshot_.now;
    if (restarts()) {
      learner.state = LearnerState::kRunning;
      learner.member = true;
    } else {
      learner.state = LearnerState::kStarting;
      const std::int64_t start = std::get<LiveResizing>(options_.resizing).start;
      events_.Add(now_ + start, LearnerStarted{IndexOf(job), learner.name});
    }
    Update(job);
  }
}

void LiveCluster::Start(const LearnerStarted& event) {
  LiveJob& job = live_[event.job];
  JobView* const view = ViewOf(job);
  if (view == nullptr) return;
  const auto learner = std::ranges::find(view->learners, event.learner, &LearnerView::name);
  const bool is_there =
      learner != view->learners.end() && learner->state == LearnerState::kStarting;
  if (!is_there) return;
  learner->state = LearnerState::kRunning;
  learner->since = snapshot_.now;
  learner->member = true;
  // Learners that waited for it leave now.
  for (LearnerView& each : view->learners) {
    if (each.state != LearnerState::kLeaving || !each.member) continue;
    each.member = false;
    Leave(each, event.job, 0);
  }
  Pause(job, PauseOfResize());
  Update(job);
}

void LiveCluster::Remove(const LearnerLeft& event) {
  LiveJob& job = live_[event.job];
  JobView* const view = ViewOf(job);
  if (view == nullptr) return;
  const auto erased = std::erase_if(
      view->learners, [&](const LearnerView& learner) { return learner.name == event.learner; });
  if (erased == 0) return;  // it left before its grace period ended
  Update(job);
  RemoveIfGone(job);
  OpenGates();
}

void LiveCluster::End(LiveJob& job) {
  ++ended_;
  JobView& view = *ViewOf(job);
  view.finished = true;
  for (LearnerView& learner : view.learners) {
    learner.member = false;
    if (learner.state != LearnerState::kLeaving) Leave(learner, IndexOf(job), 0);
  }
  EraseEnded(view);
  Update(job);
  RemoveIfGone(job);
}

void LiveCluster::RemoveIfGone(const LiveJob& job) {
  const JobView* const view = ViewOf(job);
  if (view == nullptr || !view->finished || !view->learners.empty()) return;
  snapshot_.jobs.erase(snapshot_.jobs.begin() + (view - snapshot_.jobs.data()));
}

void LiveCluster::Lose(planner::NodeView& node) {
  node.ready = false;
  for (JobView& view : snapshot_.jobs) {
    LiveJob& job = live_[job_index_.at(view.key)];
    const bool trained = job.clock.trains();
    Count(job);
    const auto lost = std::erase_if(
        view.learners, [&](const LearnerView& learner) { return learner.node == node.name; });
    if (lost == 0) continue;
    const bool one_is_left = std::ranges::any_of(view.learners, &LearnerView::member);
    if (trained && !one_is_left) job.clock.LoseAll();
    if (trained) job.clock.PauseUntil(now_ + kCrashPause);
    Update(job);
  }
  std::erase_if(snapshot_.jobs,
                [](const JobView& view) { return view.finished && view.learners.empty(); });
}

}  // namespace pliant::simulator
