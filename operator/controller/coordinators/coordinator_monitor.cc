#include "operator/controller/coordinators/coordinator_monitor.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/log.h"

namespace pliant::controller {
namespace {

// An earlier process with the same lease may have sent it a plan in between, once or twice.
constexpr int kMaxConflicts = 3;

// Whether more than stats has changed.
bool IsNews(const CoordinatorView& before, const CoordinatorView& after) {
  if (before.reachable != after.reachable ||
      before.silent_since.has_value() != after.silent_since.has_value() ||
      before.refused_since.has_value() != after.refused_since.has_value() ||
      (before.progress == nullptr) != (after.progress == nullptr)) {
    return true;
  }
  if (after.progress == nullptr) return false;
  const Progress& a = *before.progress;
  const Progress& b = *after.progress;
  // Why the last attempt at a checkpoint failed; another written checkpoint is one of the stats.
  const auto trouble = [](const Progress& progress) {
    return progress.last_checkpoint ? progress.last_checkpoint->reason : "";
  };
  if (trouble(a) != trouble(b)) return true;
  const auto states = [](const Progress& progress) {
    return std::tie(progress.state, progress.membership_id, progress.members,
                    progress.problem_reason, progress.problem_message, progress.parameters_sha256,
                    progress.learners, progress.resizes, progress.learners_asked);
  };
  return states(a) != states(b);
}

}  // namespace

CoordinatorMonitor::CoordinatorMonitor(EventLoop& loop, Executor executor,
                                       CoordinatorClient& client, CoordinatorMonitorOptions options)
    : loop_(loop),
      client_(client),
      options_(std::move(options)),
      prompt_calls_(loop, executor, options_.prompt_calls),
      lasting_calls_(loop, executor, options_.lasting_calls) {}

CoordinatorMonitor::~CoordinatorMonitor() {
  for (auto& [uid, link] : links_) loop_.Cancel(link.timer);
}

void CoordinatorMonitor::Follow(const std::string& job_uid, const std::string& name_space,
                                std::int64_t term, const std::string& host) {
  Link& link = links_[job_uid];
  if (link.term == term && link.host == host) return;
  link.name_space = name_space;
  if (link.term != term) {
    // A new coordinator has none of the plans sent to the earlier one. Its silence counts from now.
    link.view = {};
    link.acknowledged.reset();
    link.term = term;
  }
  link.host = host;
  link.view.refused_since.reset();  // another process
  link.ask = true;
  link.view.reachable = false;
  link.view.silent_since = options_.now();
  link.generation = ++last_generation_;
  link.calling = false;
  link.waiting = false;
  link.backoff = Backoff(
      BackoffOptions{.first = options_.poll_busy, .most = options_.poll_silent, .jitter = 0});
  link.pause = {};
  link.slow = false;
  link.conflicts = 0;
  CallSoon(job_uid, link);
}

void CoordinatorMonitor::Disconnect(const std::string& job_uid, std::int64_t term) {
  const auto found = links_.find(job_uid);
  if (found == links_.end()) return;  // like most waiting jobs: they need no coordinator yet
  Link& link = found->second;
  if (link.term == term && link.host.empty()) return;
  if (link.term != term) link.view.progress.reset();
  link.term = term;
  if (!link.host.empty()) client_.Forget(job_uid);
  link.host.clear();
  link.view.reachable = false;
  link.view.silent_since.reset();
  link.acknowledged.reset();
  link.generation = ++last_generation_;
  link.calling = false;
  link.waiting = false;
  loop_.Cancel(link.timer);
}

void CoordinatorMonitor::Forget(const std::string& job_uid) {
  const auto found = links_.find(job_uid);
  if (found == links_.end()) return;
  loop_.Cancel(found->second.timer);
  links_.erase(found);
  client_.Forget(job_uid);
}

void CoordinatorMonitor::SetDesired(const std::string& job_uid,
                                    std::vector<PlannedLearner> learners, std::string reason) {
  if (learners.empty() && !links_.contains(job_uid)) return;
  Link& link = links_[job_uid];
  if (link.desired == learners) return;
  link.desired = std::move(learners);
  link.reason = std::move(reason);
  if (MustReport(link)) CallSoon(job_uid, link);
}

void CoordinatorMonitor::SetBusy(const std::string& job_uid, bool busy) {
  const auto found = links_.find(job_uid);
  if (found == links_.end() || found->second.busy == busy) return;
  found->second.busy = busy;
  // A silent coordinator is already called as often as its back-off allows.
  if (busy && found->second.view.reachable) CallSoon(job_uid, found->second);
}

CoordinatorView CoordinatorMonitor::View(const std::string& job_uid) const {
  const auto found = links_.find(job_uid);
  return found == links_.end() ? CoordinatorView{} : found->second.view;
}

bool CoordinatorMonitor::MustReport(const Link& link) const {
  return link.desired && link.acknowledged != link.desired && !link.view.refused_since;
}

void CoordinatorMonitor::CallSoon(const std::string& job_uid, Link& link) {
  if (link.host.empty()) return;
  if (link.calling) {
    link.again = true;
    return;
  }
  loop_.Cancel(link.timer);
  link.timer = loop_.PostAfter(Duration::zero(), [this, job_uid] { Call(job_uid); });
}

void CoordinatorMonitor::Call(const std::string& job_uid) {
  const auto found = links_.find(job_uid);
  if (found == links_.end() || found->second.host.empty()) return;
  Link& link = found->second;
  if (link.waiting) return;
  link.waiting = true;
  FairCalls& calls = link.view.reachable && !link.slow ? prompt_calls_ : lasting_calls_;
  calls.RunWhatIsDue(link.name_space, [this, job_uid, generation = link.generation] {
    return PrepareCall(job_uid, generation);
  });
}

// Builds the plan when the call's turn has come, so that it is the newest.
std::function<void()> CoordinatorMonitor::PrepareCall(const std::string& job_uid,
                                                      std::uint64_t generation) {
  const auto found = links_.find(job_uid);
  if (found == links_.end() || found->second.generation != generation) return {};
  Link& link = found->second;
  link.waiting = false;
  link.calling = true;
  link.again = false;
  // The first call to a coordinator asks which plan it took last: an earlier process with the same
  // lease may have numbered plans further than we know.
  std::optional<CoordinatorPlan> plan;
  if (MustReport(link) && !link.ask) {
    plan = CoordinatorPlan{.stamp = {.lease_transitions = options_.lease_transitions,
                                     .sequence = link.last.sequence + 1},
                           .learners = *link.desired,
                           .reason = link.reason};
    link.last = plan->stamp;
  }
  return [this, watch = lifetime_.watch(), job_uid, plan, generation, began = loop_.Now(),
          &loop = loop_, &client = client_,
          address = CoordinatorAddress{.host = link.host, .job_uid = job_uid}] {
    Result<Progress> answer = plan ? client.PutPlan(address, *plan) : client.GetProgress(address);
    loop.Post([this, watch, job_uid, generation, plan, began, answer = std::move(answer)] {
      if (watch.over()) return;
      const auto at = links_.find(job_uid);
      if (at != links_.end() && at->second.generation == generation) {
        at->second.slow = loop_.Now() - began > options_.slow;
      }
      OnAnswer(job_uid, generation, plan, answer);
    });
  };
}

void CoordinatorMonitor::OnAnswer(const std::string& job_uid, std::uint64_t generation,
                                  std::optional<CoordinatorPlan> plan, Result<Progress> answer) {
  if (options_.on_call) options_.on_call(answer ? "OK" : ToString(answer.error().code));
  const auto found = links_.find(job_uid);
  // A call that waited for its turn when the coordinator was lost has opened a new connection.
  if (found == links_.end() || found->second.host.empty()) client_.Forget(job_uid);
  if (found == links_.end() || found->second.generation != generation) return;
  Link& link = found->second;
  link.calling = false;
  const CoordinatorView before = link.view;
  if (answer && answer->term != link.term) {
    answer = Fail(ErrorCode::kUnavailable, "a coordinator of another term answers");
  }
  if (answer) {
    OnProgress(link, plan, *std::move(answer));
  } else {
    OnCallFailed(job_uid, link, answer.error());
  }
  const bool news = IsNews(before, link.view);
  Schedule(job_uid, link);
  if (news) options_.on_change(job_uid);
}

void CoordinatorMonitor::OnProgress(Link& link, const std::optional<CoordinatorPlan>& plan,
                                    Progress progress) {
  if (plan) {
    link.acknowledged = plan->learners;
    link.acknowledged_stamp = plan->stamp;
    link.conflicts = 0;
  } else if (link.acknowledged &&
             (!progress.plan_accepted || *progress.plan_accepted < link.acknowledged_stamp)) {
    link.acknowledged.reset();  // its process restarted in place and lost the plan
  }
  link.ask = false;
  const PlanStamp accepted = progress.plan_accepted.value_or(PlanStamp{});
  if (accepted.lease_transitions == options_.lease_transitions) {
    link.last.sequence = std::max(link.last.sequence, accepted.sequence);
  }
  const bool refuses = accepted.lease_transitions > options_.lease_transitions;
  if (!refuses) {
    link.view.refused_since.reset();
  } else if (!link.view.refused_since) {
    link.view.refused_since = options_.now();
  }
  link.view.progress = std::make_shared<const Progress>(std::move(progress));
  // A coordinator that refuses every plan is treated like a silent one, even if it answers other
  // calls.
  if (link.conflicts >= kMaxConflicts && !link.view.refused_since) return;
  link.backoff.Reset();
  link.pause = {};
  link.last_error.clear();
  link.view.silent_since.reset();
  link.view.reachable = true;
}

void CoordinatorMonitor::OnCallFailed(const std::string& job_uid, Link& link, const Error& error) {
  link.ask = true;
  // The coordinator is alive, and took a greater plan before: ask which one.
  if (error.code == ErrorCode::kConflict && ++link.conflicts < kMaxConflicts) {
    link.again = true;
    return;
  }
  if (link.last_error != error.message) {
    log::Info("coordinator gave no useful answer",
              {{"job_uid", job_uid}, {"term", link.term}, {"error", error.message}});
    link.last_error = error.message;
  }
  link.pause = link.backoff.Next(0);
  link.view.reachable = false;
  if (!link.view.silent_since) link.view.silent_since = options_.now();
}

void CoordinatorMonitor::Schedule(const std::string& job_uid, Link& link) {
  loop_.Cancel(link.timer);
  link.timer = loop_.PostAfter(DelayAfter(link), [this, job_uid] { Call(job_uid); });
}

Duration CoordinatorMonitor::DelayAfter(const Link& link) const {
  const bool heard = link.view.reachable;
  if (link.again || (heard && MustReport(link))) return Duration::zero();
  if (heard) return link.busy ? options_.poll_busy : options_.poll_settled;
  return link.pause;
}

}  // namespace pliant::controller
