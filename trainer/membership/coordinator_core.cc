#include "trainer/membership/coordinator_core.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "base/utf8.h"
#include "trainer/membership/fingerprint_keys.h"
#include "trainer/membership/json_fields.h"
#include "trainer/membership/resize_log.h"
#include "trainer/membership/rules.h"

namespace pliant {
namespace {

// A link that broke again and again is counted as broken for so long.
constexpr Duration kLinkMemory = std::chrono::seconds(60);
// What speaks against a learner is not forgotten before: what costs a recovery every few minutes
// adds up.
constexpr Duration kOffenceMemory = std::chrono::hours(1);
// A learner that did not prepare, or was taken out, does not join before. Who prepares each time
// and then has to be taken out again costs the others a recovery each time.
constexpr Duration kSlowFirst = std::chrono::seconds(5);
constexpr int kSlowDoublings = 5;
constexpr int kTakenOutDoublings = 8;
// A learner that no plan has listed yet is not sent away before.
constexpr Duration kUnlistedGrace = std::chrono::seconds(30);
// Within it the ends of a learner's connections count as one event.
constexpr Duration kSameMoment = std::chrono::seconds(1);
// A record of a learner that nothing was heard of for so long is dropped.
constexpr Duration kForgetAfter = std::chrono::minutes(10);
// A problem is told for so long at least: one that comes back again and again does not look healed
// in between.
constexpr Duration kProblemKept = std::chrono::minutes(1);

bool Contains(const Membership& membership, const LearnerId& id) {
  return membership.RankOf(id).has_value();
}

Fingerprint WhatMustBeEqual(Fingerprint fingerprint) {
  fingerprint.erase(kFingerprintGpuProblem);
  return fingerprint;
}

}  // namespace

class CoordinatorCore::Impl {
 public:
  Impl(CoordinatorOptions options, TimePoint now)
      : options_(options),
        started_(now),
        // The first process of the first term: no membership was ever issued.
        rebuilt_(options.term <= 1 && options.counter == 0),
        counter_(options.counter) {}

  Result<CoordinatorEffects> SetPlan(const Plan& plan, TimePoint now);
  CoordinatorEffects OnMessage(ConnectionId connection, const LearnerMessage& message,
                               TimePoint now);
  CoordinatorEffects OnDisconnected(ConnectionId connection, TimePoint now);
  CoordinatorEffects OnTimer(TimePoint now) { return Decide(now); }
  JobProgress progress() const;

 private:
  struct Proposal {
    Membership membership;
    std::optional<MembershipId> replaces;
    std::set<LearnerId> leavers;  // members of it all the same: bridges
    std::set<LearnerId> prepared;
    TimePoint requested{};
    TimePoint deadline{};
    std::optional<LearnerId> announced_to;  // whose trailer announces it
  };

  // ---- What learners say ----
  void OnHello(ConnectionId connection, const Hello& hello, TimePoint now);
  void On(LearnerRecord&, const Hello&, TimePoint) {}  // a second one says nothing new
  void On(LearnerRecord& learner, const Prepared& prepared, TimePoint now);
  void On(LearnerRecord& learner, const Entered& entered, TimePoint now);
  void On(LearnerRecord& learner, const Opened& opened, TimePoint now);
  void On(LearnerRecord& learner, const Leaving& leaving, TimePoint now);
  void On(LearnerRecord& learner, const Lost& lost, TimePoint now);
  void On(LearnerRecord& learner, const Progress& progress, TimePoint now);
  void On(LearnerRecord& learner, const Left& left, TimePoint now);

  bool Acceptable(ConnectionId connection, const Hello& hello, TimePoint now);
  void Refuse(ConnectionId connection, Problem problem, TimePoint now);
  void SetProblem(Problem problem, TimePoint now);
  std::optional<Problem> UnusedGpus() const;
  // A learner has entered `membership`.
  void Note(const Membership& membership, TimePoint now);
  void Adopt(const Membership& membership, TimePoint now);

  // ---- What follows ----
  // Everything is decided here, from what is known; returns all effects since the last call.
  CoordinatorEffects Decide(TimePoint now);
  void CloseSilent(TimePoint now);
  bool Rebuilt(TimePoint now);
  bool Broken(TimePoint now) const;
  void TryRecover(TimePoint now);
  // Those whose learner has all its ranks among them.
  void KeepWhole(std::vector<Member>& members) const;
  void DropIncomplete(std::vector<Member>& survivors) const;
  void NoteViolations(const LearnerRecord& witness, const Lost& lost, TimePoint now);
  void TakeOutOffenders(std::vector<Member>& survivors, TimePoint now);
  void TakeOutBrokenLinks(std::vector<Member>& survivors, TimePoint now);
  void TakeOut(const LearnerId& id, std::vector<Member>& survivors, TimePoint now);
  void RecoverWith(std::vector<Member> survivors, TimePoint now);
  void CheckProposal(TimePoint now);
  void Propose(TimePoint now);
  void SendAnnouncement(TimePoint now);
  void WithdrawProposal();
  void TellLeavers(TimePoint now);
  void DismissAll();
  void Forget(TimePoint now);

  // ---- Questions ----
  bool AllOpened() const;
  bool AllOpenedOrFollow() const;
  bool StateIsSafe() const;
  bool Drained(TimePoint now) const;
  // All that may hold the newest state, or are to enter: in the order of the ranks they get.
  std::vector<Member> Candidates() const;
  bool InUse(const LearnerId& id) const;
  std::vector<Member> Joiners(TimePoint now) const;
  void PutHoldersFirst(std::vector<Member>& members) const;
  std::optional<std::vector<MemberFate>> Fates(TimePoint now) const;
  LearnerState StateOf(const LearnerRecord& learner) const;
  double Unix(TimePoint time) const {
    return ToSeconds(time.time_since_epoch()) + options_.unix_offset_seconds;
  }
  bool BelongsToPresent(const LearnerRecord& learner) const {
    return present_ && Contains(*present_, learner.id);
  }

  MembershipId NewId();
  void Send(const LearnerRecord& learner, CoordinatorMessage message);
  void SlowDown(LearnerRecord& learner, TimePoint now);
  void KeepAway(const LearnerRecord& learner, Duration pause, TimePoint now);
  void SetLeaving(const LearnerId& rank) {  // with all ranks of its learner
    for (LearnerRecord* const learner : roster_.RanksOf(rank)) learner->leaving = true;
  }
  void UpdateCommitted(TimePoint now);

  const CoordinatorOptions options_;
  const TimePoint started_;
  bool rebuilt_;           // what learners know was heard
  bool obsolete_ = false;  // a later coordinator exists: this one does nothing any more
  bool completed_ = false;
  bool drained_ = false;  // the last members left with a checkpoint
  std::uint64_t counter_;

  Roster roster_;
  // The newest membership that somebody entered, or was told to enter. Without members: its
  // predecessor writes a checkpoint and leaves. None: nobody trains.
  std::optional<Membership> present_;
  std::deque<Membership> before_;  // those before it, back to the last that all had opened
  std::set<LearnerId> opened_;     // members of present_ that did
  std::set<LearnerId> following_;  // members of present_ to which the state is on its way
  std::set<LearnerId> held_;       // the last membership that somebody opened before it: who did
  bool by_recovery_ = false;       // present_ was
  std::optional<Proposal> proposal_;
  std::optional<TimePoint> requested_;  // since when another membership is wanted
  TimePoint propose_after_{};

  // Why present_ has to be replaced at once.
  std::map<LearnerId, std::set<LearnerId>> accused_by_;  // reports of Lost: by reporter
  std::optional<TimePoint> broken_since_;
  std::map<Violation, TimePoint> violations_;
  std::map<BrokenLink, std::vector<TimePoint>> breaks_;
  // Those that broke again, until a membership with both ends has opened.
  std::map<BrokenLink, TimePoint> broken_links_;

  ResizeLog resizes_;
  Problem problem_;
  TimePoint problem_at_{};  // when it came last
  std::string parameters_sha256_;
  std::optional<Progress::Figures> figures_;
  std::optional<Tick> tick_;  // committed, as far as is known
  std::optional<std::uint64_t> step_;
  Tick furthest_ = 0;        // that a member of present_ has told of
  TimePoint advanced_at_{};  // when it grew

  CoordinatorEffects effects_;
};

// ---- Inputs ----

Result<CoordinatorEffects> CoordinatorCore::Impl::SetPlan(const Plan& plan, TimePoint now) {
  const std::optional<Plan>& taken = roster_.plan();
  if (taken && plan.version < taken->version) {
    return Fail(ErrorCode::kConflict,
                Format("plan {}.{} was taken before", taken->version.lease_transitions,
                       taken->version.sequence));
  }
  // The same pair again is the same plan again: an answer that was lost.
  if (!taken || taken->version < plan.version) roster_.SetPlan(plan);
  return Decide(now);
}

CoordinatorEffects CoordinatorCore::Impl::OnMessage(ConnectionId connection,
                                                    const LearnerMessage& message, TimePoint now) {
  LearnerRecord* const learner = roster_.OfConnection(connection);
  if (learner != nullptr) {
    learner->heard = now;
    std::visit([&](const auto& value) { On(*learner, value, now); }, message);
  } else if (const auto* hello = std::get_if<Hello>(&message); hello != nullptr && !obsolete_) {
    OnHello(connection, *hello, now);
  } else {
    effects_.push_back(CloseConnection{connection});
  }
  return Decide(now);
}

CoordinatorEffects CoordinatorCore::Impl::OnDisconnected(ConnectionId connection, TimePoint now) {
  if (LearnerRecord* const learner = roster_.OfConnection(connection)) {
    roster_.Disconnect(*learner, now);
  }
  return Decide(now);
}

// Two fingerprints may fill a message each: a problem is cut to what a learner reads of a refusal.
void CoordinatorCore::Impl::SetProblem(Problem problem, TimePoint now) {
  problem_ = std::move(problem);
  problem_.message = CutAtCharacter(problem_.message, kTextBytesMost);
  problem_at_ = now;
}

void CoordinatorCore::Impl::Refuse(ConnectionId connection, Problem problem, TimePoint now) {
  SetProblem(std::move(problem), now);
  log::Warning("learner refused", {{"reason", problem_.reason}, {"cause", problem_.message}});
  effects_.push_back(
      SendMessage{connection, Refused{.reason = problem_.reason, .message = problem_.message}});
  effects_.push_back(CloseConnection{connection});
}

bool CoordinatorCore::Impl::Acceptable(ConnectionId connection, const Hello& hello, TimePoint now) {
  if (hello.protocol != kProtocolVersion) {
    Refuse(connection,
           {"Protocol", Format("learner {} speaks protocol {}, the coordinator {}",
                               hello.learner.name, hello.protocol, kProtocolVersion)},
           now);
    return false;
  }
  // All learners that take part, or may, have the same fingerprint: any of them is the measure.
  const Fingerprint own = WhatMustBeEqual(hello.fingerprint);
  for (const auto& [id, other] : roster_.learners()) {
    if (id == hello.learner || !other.connected()) continue;
    const Fingerprint others = WhatMustBeEqual(other.fingerprint);
    if (others == own) continue;
    const auto value_of = [](const Fingerprint& fingerprint, const std::string& name) {
      const auto found = fingerprint.find(name);
      return found == fingerprint.end() ? std::string("nothing") : "\"" + found->second + "\"";
    };
    Fingerprint names = own;
    names.insert(others.begin(), others.end());
    std::string differences;
    for (const auto& [name, unused] : names) {
      const std::string here = value_of(own, name);
      const std::string there = value_of(others, name);
      if (here != there) differences += Format("; {} is {}, not {}", name, here, there);
    }
    LearnerRecord& refused = roster_.At(hello.learner, now);
    refused.refused = true;
    Refuse(connection,
           {"Fingerprint",
            Format("learner {} differs from {}{}", hello.learner.name, id.name, differences)},
           now);
    return false;
  }
  return true;
}

void CoordinatorCore::Impl::OnHello(ConnectionId connection, const Hello& hello, TimePoint now) {
  if (!Acceptable(connection, hello, now)) return;
  // Another process of the same pod is over.
  for (auto& [id, other] : roster_.learners()) {
    if (id.name != hello.learner.name || id.pod_uid != hello.learner.pod_uid ||
        id.nonce == hello.learner.nonce) {
      continue;
    }
    other.ended = true;
    if (other.connected()) {
      effects_.push_back(CloseConnection{other.connection});
      roster_.Disconnect(other, now);
    }
  }
  LearnerRecord& learner = roster_.At(hello.learner, now);
  if (learner.connected()) {  // it dialed anew before the end of its old connection was noticed
    effects_.push_back(CloseConnection{learner.connection});
    roster_.Disconnect(learner, now);
  }
  roster_.Connect(learner, connection, now);
  learner.address = hello.address;
  learner.fingerprint = hello.fingerprint;
  learner.applied_ticks = hello.applied_ticks;
  learner.ranks = hello.ranks;
  if (hello.leaving) SetLeaving(hello.learner);
  learner.refused = false;
  if (hello.membership) learner.entered = std::max(learner.entered, hello.membership->id);
  // What was said on an earlier connection may not have arrived.
  learner.told_to_go = false;
  learner.told_to_leave = false;

  Send(learner, Welcome{.term = options_.term, .heartbeat_seconds = ToSeconds(options_.heartbeat)});
  if (hello.membership) Note(*hello.membership, now);
  if (hello.before && hello.membership && present_ && present_->id == hello.membership->id &&
      (present_->members.empty() || !AllOpened()) && !InUse(hello.learner)) {
    before_.push_back(*hello.before);
  }
  if (obsolete_) return;
  if (BelongsToPresent(learner) && learner.entered < present_->id) {
    Send(learner, Recover{*present_});
  }
  if (proposal_ && !proposal_->announced_to && Contains(proposal_->membership, learner.id)) {
    Send(learner, Prepare{proposal_->membership, proposal_->replaces});
  }
}

void CoordinatorCore::Impl::On(LearnerRecord& learner, const Prepared& prepared, TimePoint) {
  if (!proposal_ || proposal_->membership.id != prepared.membership) return;
  if (!Contains(proposal_->membership, learner.id)) return;
  proposal_->prepared.insert(learner.id);
  learner.slow_count = 0;
}

void CoordinatorCore::Impl::On(LearnerRecord& learner, const Entered& entered, TimePoint now) {
  learner.entered = std::max(learner.entered, entered.membership.id);
  learner.applied_ticks = entered.applied_ticks;
  Note(entered.membership, now);
}

void CoordinatorCore::Impl::On(LearnerRecord& learner, const Opened& opened, TimePoint now) {
  learner.applied_ticks = std::max(learner.applied_ticks, opened.applied_ticks);
  if (!BelongsToPresent(learner) || present_->id != opened.membership) return;
  furthest_ = std::max(furthest_, opened.applied_ticks);
  const bool was_member = !before_.empty() && Contains(before_.back(), learner.id);
  if (!was_member) learner.step.reset();  // what it said last, it said of a membership long ago
  resizes_.Opened(opened.membership,
                  was_member ? std::optional(opened.pause_seconds) : std::nullopt,
                  opened.ticks_lost);
  opened_.insert(learner.id);
  UpdateCommitted(now);
  if (!AllOpened()) return;
  // All hold the state: nobody depends on those who were members before.
  before_.clear();
  std::erase_if(broken_links_, [&](const auto& item) {
    return Contains(*present_, item.first.first) && Contains(*present_, item.first.second);
  });
  by_recovery_ = false;
  resizes_.Running(opened.membership, Unix(now), step_.value_or(0));
}

void CoordinatorCore::Impl::On(LearnerRecord& learner, const Leaving&, TimePoint) {
  SetLeaving(learner.id);
}

void CoordinatorCore::Impl::On(LearnerRecord& learner, const Lost& lost, TimePoint now) {
  if (!present_) return;
  if (lost.membership == present_->id) {
    log::Info("membership broken",
              {{"membership", ToString(lost.membership)},
               {"reporter", learner.id.name},
               {"accused", lost.accused.empty() ? std::string("nobody") : lost.accused[0].name},
               {"cause", lost.cause}});
    if (!broken_since_) broken_since_ = now;
    accused_by_[learner.id].insert(lost.accused.begin(), lost.accused.end());
    if (lost.violation) NoteViolations(learner, lost, now);
  } else if (lost.membership < present_->id && BelongsToPresent(learner) &&
             learner.entered < present_->id) {
    // Others completed the tick and switched; this one could not.
    Send(learner, Recover{*present_});
  }
}

void CoordinatorCore::Impl::On(LearnerRecord& learner, const Progress& progress, TimePoint now) {
  learner.applied_ticks = progress.tick;
  if (!BelongsToPresent(learner) || progress.membership != present_->id) return;
  if (furthest_ < progress.tick) {
    furthest_ = progress.tick;
    advanced_at_ = now;
  }
  if (progress.following) {
    following_.insert(learner.id);
  } else {
    following_.erase(learner.id);
  }
  learner.step = progress.step;
  if (progress.times) learner.times = progress.times;
  if (progress.figures) figures_ = progress.figures;
  UpdateCommitted(now);
}

void CoordinatorCore::Impl::On(LearnerRecord& learner, const Left& left, TimePoint now) {
  learner.left = left.reason;
  learner.applied_ticks = left.applied_ticks;
  log::Info("learner left", {{"learner", learner.id.name},
                             {"reason", ToString(left.reason)},
                             {"ticks", left.applied_ticks},
                             {"cause", left.message}});
  switch (left.reason) {
    case LeftReason::kCompleted:
      completed_ = true;
      parameters_sha256_ = left.parameters_sha256;
      tick_ = left.applied_ticks;
      if (figures_) step_ = figures_->total_steps;
      break;
    case LeftReason::kFailed:
      SetProblem({"LearnerFailed", Format("{}: {}", learner.id.name, left.message)}, now);
      break;
    case LeftReason::kDrained:
      break;
  }
  effects_.push_back(CloseConnection{learner.connection});
  roster_.Disconnect(learner, now);
}

// ---- Which membership is the present one ----

void CoordinatorCore::Impl::Note(const Membership& membership, TimePoint now) {
  if (membership.id.term > options_.term) {
    log::Warning("a later coordinator exists", {{"membership", ToString(membership.id)}});
    obsolete_ = true;
    for (auto& [id, learner] : roster_.learners()) {
      if (!learner.connected()) continue;
      effects_.push_back(CloseConnection{learner.connection});
      roster_.Disconnect(learner, now);
    }
    return;
  }
  if (membership.id.term == options_.term) counter_ = std::max(counter_, membership.id.counter);
  if (!present_ || present_->id < membership.id) return Adopt(membership, now);
  // Its members may hold the state that those of the present one need.
  if (membership.id < present_->id && !AllOpened() &&
      std::ranges::find(before_, membership.id, &Membership::id) == before_.end()) {
    before_.push_front(membership);
  }
}

void CoordinatorCore::Impl::Adopt(const Membership& membership, TimePoint now) {
  const bool planned = proposal_ && proposal_->membership.id == membership.id;
  if (planned) {
    resizes_.Begin({.membership = membership.id,
                    .kind = Resize::Kind::kPlanned,
                    .from = present_ ? present_->learners() : 0,
                    .to = membership.learners(),
                    .requested_unix_seconds = Unix(proposal_->requested),
                    .step = step_.value_or(0)});
  } else if (proposal_ && !proposal_->announced_to) {
    WithdrawProposal();
  }
  proposal_.reset();
  requested_.reset();
  if (present_ && !present_->members.empty()) before_.push_back(*present_);
  present_ = membership;
  if (!opened_.empty()) held_ = std::move(opened_);
  opened_.clear();
  following_.clear();
  const auto stopped = std::exchange(accused_by_, {});
  broken_since_.reset();
  by_recovery_ = false;
  drained_ = false;
  furthest_ = 0;
  advanced_at_ = now;
  for (const Member& member : membership.members) roster_.At(member.id, now);
  log::Info("membership", {{"id", ToString(membership.id)}, {"members", membership.world_size()}});
  // Heard of, or issued in place of a broken one: whoever is to enter may not know. Nor does one
  // that stopped before it came to the boundary at which others switched.
  for (const Member& member : membership.members) {
    const LearnerRecord& learner = *roster_.Find(member.id);
    if (planned && !stopped.contains(member.id)) continue;
    if (learner.connected() && learner.entered < membership.id) Send(learner, Recover{membership});
  }
}

// ---- Decisions ----

CoordinatorEffects CoordinatorCore::Impl::Decide(TimePoint now) {
  if (!obsolete_) {
    CloseSilent(now);
    if (completed_) {
      DismissAll();
    } else if (Rebuilt(now)) {
      if (Broken(now)) {
        if (!broken_since_) broken_since_ = now;
        TryRecover(now);
      } else if (proposal_) {
        CheckProposal(now);
      }
      if (!proposal_ && !broken_since_) Propose(now);
      TellLeavers(now);
      Forget(now);
    }
  }
  return std::exchange(effects_, {});
}

void CoordinatorCore::Impl::CloseSilent(TimePoint now) {
  for (auto& [id, learner] : roster_.learners()) {
    if (!learner.connected() || now - learner.heard <= options_.silence_most) continue;
    log::Warning("learner is silent", {{"learner", id.name}});
    effects_.push_back(CloseConnection{learner.connection});
    roster_.Disconnect(learner, now);
  }
}

bool CoordinatorCore::Impl::Rebuilt(TimePoint now) {
  if (rebuilt_) return true;
  const bool members_heard =
      present_ && std::ranges::all_of(present_->members, [&](const Member& member) {
        const LearnerRecord* const learner = roster_.Find(member.id);
        return learner != nullptr && (learner->connected() || learner->gone());
      });
  rebuilt_ =
      members_heard || roster_.AllOfPlanConnected() || now - started_ >= options_.rebuild_wait;
  if (rebuilt_) {
    log::Info("state rebuilt from learners",
              {{"membership", present_ ? ToString(present_->id) : "none"}});
  }
  return rebuilt_;
}

// Whether the present membership, or the announced one that follows, cannot go on by itself.
bool CoordinatorCore::Impl::Broken(TimePoint now) const {
  if (!present_) return false;
  if (broken_since_) return true;
  const auto is_gone = [&](const Member& member) {
    const LearnerRecord* const learner = roster_.Find(member.id);
    return learner != nullptr && learner->gone();
  };
  if (std::ranges::any_of(present_->members, is_gone)) return true;
  if (proposal_ && proposal_->announced_to &&
      std::ranges::any_of(proposal_->membership.members, is_gone)) {
    return true;
  }
  // Out of contact for long, and nothing goes on: it is dead or hangs, and its peers, if it has
  // any, have not noticed. (While ticks are committed it is only the way to here that is broken.)
  return std::ranges::any_of(present_->members, [&](const Member& member) {
    const LearnerRecord* const learner = roster_.Find(member.id);
    return !learner->connected() &&
           now - std::max(learner->heard, advanced_at_) >= options_.silence_most;
  });
}

std::vector<Member> CoordinatorCore::Impl::Candidates() const {
  std::vector<Member> candidates;
  const auto add = [&](const Membership& membership) {
    for (const Member& member : membership.members) {
      const LearnerRecord* const learner = roster_.Find(member.id);
      if (learner != nullptr && learner->gone()) continue;
      if (std::ranges::find(candidates, member.id, &Member::id) == candidates.end()) {
        candidates.push_back(member);
      }
    }
  };
  add(*present_);
  // An announced switch may have taken place.
  if (proposal_ && proposal_->announced_to) add(proposal_->membership);
  for (auto it = before_.rbegin(); it != before_.rend(); ++it) add(*it);
  return candidates;
}

void CoordinatorCore::Impl::TryRecover(TimePoint now) {
  std::set<LearnerId> accused;
  for (const auto& [reporter, by_reporter] : accused_by_) {
    accused.insert(by_reporter.begin(), by_reporter.end());
  }
  std::vector<Member> survivors;
  bool settled = true;
  bool all_reported = true;
  const bool state_is_safe = StateIsSafe();
  for (Member& member : Candidates()) {
    const LearnerRecord* const learner = roster_.Find(member.id);
    const bool connected = learner != nullptr && learner->connected();
    if (connected) {
      // It has to answer since; when it never does, CloseSilent ends its connection.
      if (accused.contains(member.id) && learner->heard <= *broken_since_) settled = false;
      all_reported &= accused_by_.contains(member.id);
      survivors.push_back(std::move(member));
      continue;
    }
    // Its peers and this process lost it in the same moment: that is the end of it, not of a link.
    // Who is alive all the same joins again.
    if (state_is_safe && accused.contains(member.id) && learner != nullptr &&
        learner->since + kSameMoment >= *broken_since_) {
      continue;
    }
    const Duration grace =
        accused.contains(member.id) ? options_.accused_grace : options_.reconnect_grace;
    // From its end or, when the connection ended long ago, from the loss: it may be dialing.
    const TimePoint from = learner == nullptr ? started_ : std::max(learner->since, *broken_since_);
    if (now - from < grace) settled = false;
  }
  // Others may have lost more.
  if (!all_reported && now - *broken_since_ < options_.accusations_settle) settled = false;
  if (!settled) return;

  TakeOutOffenders(survivors, now);
  TakeOutBrokenLinks(survivors, now);
  DropIncomplete(survivors);
  RecoverWith(std::move(survivors), now);
}

// Each witness once for each membership.
void CoordinatorCore::Impl::NoteViolations(const LearnerRecord& witness, const Lost& lost,
                                           TimePoint now) {
  if (!BelongsToPresent(witness)) return;
  for (const LearnerId& accused : lost.accused) {
    if (accused == witness.id || !Contains(*present_, accused)) continue;
    violations_.try_emplace(
        Violation{.membership = present_->id, .witness = witness.id, .accused = accused}, now);
  }
}

void CoordinatorCore::Impl::TakeOutOffenders(std::vector<Member>& survivors, TimePoint now) {
  std::erase_if(violations_, [&](const auto& item) { return now - item.second >= kOffenceMemory; });
  std::set<Violation> violations;
  for (const auto& [violation, since] : violations_) violations.insert(violation);
  // Those who opened a membership hold its state; while nobody did, those who opened the last one.
  const std::set<LearnerId>& holders = opened_.empty() ? held_ : opened_;
  for (const LearnerId& id : FindOffenders(survivors, violations, present_->id, holders)) {
    log::Warning("learner removed for what it sent, or says of others", {{"learner", id.name}});
    TakeOut(id, survivors, now);
  }
}

void CoordinatorCore::Impl::TakeOutBrokenLinks(std::vector<Member>& survivors, TimePoint now) {
  const auto survives = [&](const LearnerId& id) {
    return std::ranges::contains(survivors, id, &Member::id);
  };
  std::set<BrokenLink> lost;  // both ends may tell of it
  for (const auto& [reporter, by_reporter] : accused_by_) {
    for (const LearnerId& other : by_reporter) {
      if (!survives(reporter) || !survives(other)) continue;
      // What was sent over it is wrong, not the link.
      if (violations_.contains(
              Violation{.membership = present_->id, .witness = reporter, .accused = other})) {
        continue;
      }
      lost.insert(LinkOf(reporter, other));
    }
  }
  // A link that broke is tried once more, unless it keeps breaking.
  std::erase_if(breaks_,
                [&](const auto& item) { return now - item.second.back() >= kOffenceMemory; });
  for (const BrokenLink& link : lost) {
    std::vector<TimePoint>& breaks = breaks_[link];
    breaks.push_back(now);
    if (KeepsBreaking(breaks)) broken_links_[link] = now;
  }
  // Also those of earlier tries: of a partition each try shows a part.
  std::erase_if(broken_links_, [&](const auto& item) { return now - item.second >= kLinkMemory; });
  std::set<BrokenLink> broken;
  for (const auto& [link, since] : broken_links_) {
    if (survives(link.first) && survives(link.second)) broken.insert(link);
  }
  for (const LearnerId& removed : FewestToRemove(survivors, broken)) {
    log::Warning("learner removed for a broken link", {{"learner", removed.name}});
    TakeOut(removed, survivors, now);
  }
}

void CoordinatorCore::Impl::TakeOut(const LearnerId& id, std::vector<Member>& survivors,
                                    TimePoint now) {
  std::erase_if(survivors, [&](const Member& member) { return member.id == id; });
  LearnerRecord& learner = *roster_.Find(id);
  if (now - learner.slow_until >= kOffenceMemory) learner.taken_out = 0;
  KeepAway(learner, kSlowFirst * (1 << std::min(learner.taken_out++, kTakenOutDoublings)), now);
}

void CoordinatorCore::Impl::KeepWhole(std::vector<Member>& members) const {
  const auto learner_of = [](LearnerId id) {
    id.local_rank = 0;
    return id;
  };
  std::map<LearnerId, int> ranks_of;
  for (const Member& member : members) ++ranks_of[learner_of(member.id)];
  std::erase_if(members, [&](const Member& member) {
    return ranks_of.at(learner_of(member.id)) < roster_.Find(member.id)->ranks;
  });
}

// Ranks join and leave together, also when some of them are lost: unless those that are left of
// such learners are the only ones that hold the state.
void CoordinatorCore::Impl::DropIncomplete(std::vector<Member>& survivors) const {
  std::vector<Member> whole = survivors;
  KeepWhole(whole);
  const bool hold_the_state =
      std::ranges::any_of(whole, [&](const Member& member) { return opened_.contains(member.id); });
  if (hold_the_state) survivors = std::move(whole);
}

void CoordinatorCore::Impl::RecoverWith(std::vector<Member> survivors, TimePoint now) {
  const int from = present_->learners();
  const TimePoint since = *broken_since_;
  if (proposal_) {
    if (!proposal_->announced_to) WithdrawProposal();
    // Its members, like all others, may have entered it: they are to be asked for their state.
    if (proposal_->announced_to) before_.push_back(proposal_->membership);
    proposal_.reset();
  }
  if (survivors.empty()) {
    drained_ = std::ranges::all_of(present_->members, [&](const Member& member) {
      return roster_.Find(member.id)->left == LeftReason::kDrained;
    });
    if (!drained_) {
      log::Warning("all learners were lost", {{"membership", ToString(present_->id)}});
    }
    present_.reset();
    before_.clear();
    opened_.clear();
    held_.clear();
    following_.clear();
    accused_by_.clear();
    broken_since_.reset();
    // Nobody trains that they could disturb.
    for (auto& [id, learner] : roster_.learners()) learner.slow_until = {};
    return;
  }
  const Membership membership{.id = NewId(), .members = std::move(survivors)};
  resizes_.Begin({.membership = membership.id,
                  .kind = Resize::Kind::kRecovery,
                  .from = from,
                  .to = membership.learners(),
                  .requested_unix_seconds = Unix(since),
                  .step = step_.value_or(0)});
  Adopt(membership, now);
  by_recovery_ = true;
}

void CoordinatorCore::Impl::CheckProposal(TimePoint now) {
  if (proposal_->announced_to) {
    // The announcement is lost with the connection that it was sent on.
    const LearnerRecord* const announcer = roster_.Find(*proposal_->announced_to);
    if (announcer == nullptr || !announcer->connected()) SendAnnouncement(now);
    return;
  }
  bool prepared = true;
  for (const Member& member : proposal_->membership.members) {
    const LearnerRecord* const learner = roster_.Find(member.id);
    const bool willing = learner != nullptr && learner->connected() && !learner->gone() &&
                         (roster_.Wanted(*learner) || proposal_->leavers.contains(member.id));
    if (!willing) return WithdrawProposal();
    prepared &= proposal_->prepared.contains(member.id);
  }
  if (prepared) return SendAnnouncement(now);
  if (now < proposal_->deadline) return;
  bool joiners_are_slow = false;
  for (const Member& member : proposal_->membership.members) {
    if (proposal_->prepared.contains(member.id) || BelongsToPresent(*roster_.Find(member.id))) {
      continue;
    }
    SlowDown(*roster_.Find(member.id), now);
    joiners_are_slow = true;
  }
  if (!joiners_are_slow) propose_after_ = now + kSlowFirst;
  WithdrawProposal();
}

void CoordinatorCore::Impl::SlowDown(LearnerRecord& learner, TimePoint now) {
  KeepAway(learner, kSlowFirst * (1 << std::min(learner.slow_count++, kSlowDoublings)), now);
}

void CoordinatorCore::Impl::KeepAway(const LearnerRecord& learner, Duration pause, TimePoint now) {
  for (LearnerRecord* const rank : roster_.RanksOf(learner.id)) {
    rank->slow_until = std::max(rank->slow_until, now + pause);
  }
  log::Warning("learner is not asked for a while",
               {{"learner", learner.id.name}, {"seconds", ToSeconds(pause)}});
}

std::vector<Member> CoordinatorCore::Impl::Joiners(TimePoint now) const {
  std::vector<Member> joiners;
  for (const auto& [id, learner] : roster_.learners()) {
    if (!learner.connected() || learner.gone() || BelongsToPresent(learner)) continue;
    if (roster_.Wanted(learner) && now >= learner.slow_until && roster_.Complete(learner)) {
      joiners.push_back({.id = id, .address = learner.address});
    }
  }
  return joiners;
}

// Rank 0 is to hold the state: the others wait for it if it does not.
void CoordinatorCore::Impl::PutHoldersFirst(std::vector<Member>& members) const {
  std::ranges::stable_partition(members, [&](const Member& member) {
    return BelongsToPresent(*roster_.Find(member.id)) &&
           std::ranges::all_of(present_->members, [&](const Member& rank) {
             return !SameLearner(rank.id, member.id) || opened_.contains(rank.id);
           });
  });
}

// What becomes of the present members; nothing while that is not clear.
std::optional<std::vector<MemberFate>> CoordinatorCore::Impl::Fates(TimePoint now) const {
  std::vector<MemberFate> fates;
  for (const Member& member : present_->members) {
    const LearnerRecord& learner = *roster_.Find(member.id);
    if (learner.connected()) {
      fates.push_back(roster_.Wanted(learner) ? MemberFate::kStays : MemberFate::kLeaves);
    } else if (now - learner.since < options_.silence_most) {
      return std::nullopt;  // it may be back in a moment
    } else {
      fates.push_back(MemberFate::kAbsent);
    }
  }
  // Of a learner that has lost a rank, or loses one, the others go as well.
  std::vector<Member> staying;
  for (std::size_t i = 0; i < fates.size(); ++i) {
    if (fates[i] == MemberFate::kStays) staying.push_back(present_->members[i]);
  }
  KeepWhole(staying);
  auto kept = staying.begin();
  for (std::size_t i = 0; i < fates.size(); ++i) {
    if (fates[i] != MemberFate::kStays) continue;
    if (kept != staying.end() && *kept == present_->members[i]) {
      ++kept;
    } else {
      fates[i] = MemberFate::kLeaves;
    }
  }
  return fates;
}

void CoordinatorCore::Impl::Propose(TimePoint now) {
  if (!roster_.plan() || now < propose_after_) return;
  const bool training = present_ && !present_->members.empty();
  const Membership present = training ? *present_ : Membership{};
  std::vector<MemberFate> fates;
  if (training) {
    if (!AllOpenedOrFollow()) return;  // one change after the other
    const auto known = Fates(now);
    if (!known) return;
    fates = *known;
  } else if (!Drained(now)) {
    return;  // those who leave are writing a checkpoint
  }
  const std::vector<Member> joiners = Joiners(now);
  int ranks = 1;
  for (const Member& joiner : joiners) ranks = std::max(ranks, roster_.Find(joiner.id)->ranks);
  Membership next{.members = NextMembers(present, fates, joiners, options_.learners_most * ranks)};
  if (next.members == present.members) {
    requested_.reset();
    return;
  }
  if (!requested_) requested_ = now;
  const bool somebody_leaves =
      std::ranges::any_of(fates, [](MemberFate fate) { return fate != MemberFate::kStays; });
  if (training && !AllOpened()) {
    // A transfer begins anew with a membership. A leave does not wait for its end; a join does, and
    // so does the last one that holds the state.
    if (!somebody_leaves) return;
    PutHoldersFirst(next.members);
    const bool held =
        next.members.empty() ? StateIsSafe() : opened_.contains(next.members.front().id);
    if (!held) return;
  }
  if (!somebody_leaves && !roster_.AllOfPlanConnected()) {
    // Learners that become ready one after the other are taken in together.
    for (const Member& joiner : joiners) {
      if (now - roster_.Find(joiner.id)->since < options_.join_settle) return;
    }
  }
  next.id = NewId();
  proposal_ = Proposal{.membership = next,
                       .replaces = training ? std::optional(present.id) : std::nullopt,
                       .requested = *requested_,
                       .deadline = now + (somebody_leaves ? options_.prepare_timeout_leave
                                                          : options_.prepare_timeout)};
  for (const Member& member : next.members) {
    const LearnerRecord& learner = *roster_.Find(member.id);
    if (!roster_.Wanted(learner)) proposal_->leavers.insert(member.id);
    Send(learner, Prepare{proposal_->membership, proposal_->replaces});
  }
  if (next.members.empty()) SendAnnouncement(now);
}

void CoordinatorCore::Impl::SendAnnouncement(TimePoint now) {
  const Announce announce{proposal_->membership, proposal_->replaces};
  if (proposal_->replaces) {
    // Rank 0, unless it cannot be reached: whoever announces, all read it. Who follows has no
    // trailer to do it in.
    for (const Member& member : present_->members) {
      const LearnerRecord& learner = *roster_.Find(member.id);
      if (!learner.connected() || !opened_.contains(member.id)) continue;
      proposal_->announced_to = member.id;
      Send(learner, announce);
      return;
    }
    return;
  }
  for (const Member& member : proposal_->membership.members) {
    Send(*roster_.Find(member.id), announce);
  }
  Adopt(Membership(proposal_->membership), now);
}

void CoordinatorCore::Impl::WithdrawProposal() {
  for (const Member& member : proposal_->membership.members) {
    const LearnerRecord* const learner = roster_.Find(member.id);
    if (learner != nullptr && learner->connected()) {
      Send(*learner, Withdraw{proposal_->membership.id});
    }
  }
  proposal_.reset();
}

void CoordinatorCore::Impl::TellLeavers(TimePoint now) {
  if (!roster_.plan()) return;
  for (auto& [id, learner] : roster_.learners()) {
    if (!learner.connected() || learner.gone() || roster_.Wanted(learner)) continue;
    // A pod may be quicker than the plan that lists it.
    if (!learner.listed && !InUse(id) && now - learner.since < kUnlistedGrace) continue;
    if (!InUse(id)) {
      // Called too late for a recovery: it goes when the others have caught up with it.
      if (present_ && !present_->members.empty() && learner.applied_ticks > furthest_) continue;
      if (!learner.told_to_go) Send(learner, Leave{.at_once = true});
      learner.told_to_go = true;
    } else if (!learner.told_to_leave) {
      Send(learner, Leave{.at_once = false});
      learner.told_to_leave = true;
    }
    // It cannot take that back.
    SetLeaving(id);
  }
}

void CoordinatorCore::Impl::DismissAll() {
  for (auto& [id, learner] : roster_.learners()) {
    if (!learner.connected() || learner.told_to_go) continue;
    Send(learner, Leave{.at_once = true});
    learner.told_to_go = true;
  }
}

void CoordinatorCore::Impl::Forget(TimePoint now) {
  std::erase_if(roster_.learners(), [&](const auto& item) {
    const LearnerRecord& learner = item.second;
    if (learner.connected() || InUse(learner.id)) return false;
    return learner.gone() || now - learner.since > kForgetAfter;
  });
}

// ---- Questions ----

bool CoordinatorCore::Impl::AllOpened() const {
  return present_ && std::ranges::all_of(present_->members, [&](const Member& member) {
           return opened_.contains(member.id);
         });
}

bool CoordinatorCore::Impl::AllOpenedOrFollow() const {
  return present_ && std::ranges::all_of(present_->members, [&](const Member& member) {
           return opened_.contains(member.id) || following_.contains(member.id);
         });
}

// Whether a connected member has opened the present membership, so that nothing which was committed
// is lost with those who cannot be asked.
bool CoordinatorCore::Impl::StateIsSafe() const {
  return std::ranges::any_of(opened_, [&](const LearnerId& id) {
    const LearnerRecord* const learner = roster_.Find(id);
    return learner != nullptr && learner->connected();
  });
}

// Whether nobody of an earlier membership is at work any more: its last checkpoint is there.
bool CoordinatorCore::Impl::Drained(TimePoint now) const {
  return std::ranges::all_of(before_, [&](const Membership& membership) {
    return std::ranges::all_of(membership.members, [&](const Member& member) {
      const LearnerRecord* const learner = roster_.Find(member.id);
      if (learner == nullptr || learner->gone()) return true;
      return !learner->connected() && now - learner->since >= options_.silence_most;
    });
  });
}

bool CoordinatorCore::Impl::InUse(const LearnerId& id) const {
  return (present_ && Contains(*present_, id)) ||
         (proposal_ && Contains(proposal_->membership, id)) ||
         std::ranges::any_of(
             before_, [&](const Membership& membership) { return Contains(membership, id); });
}

MembershipId CoordinatorCore::Impl::NewId() {
  const MembershipId id{.term = options_.term, .counter = ++counter_};
  effects_.push_back(PersistCounter{counter_});
  return id;
}

void CoordinatorCore::Impl::Send(const LearnerRecord& learner, CoordinatorMessage message) {
  if (!learner.connected()) return;
  effects_.push_back(SendMessage{learner.connection, std::move(message)});
}

// Committed is what every member has applied.
void CoordinatorCore::Impl::UpdateCommitted(TimePoint now) {
  if (opened_.empty() || !AllOpened()) return;
  Tick tick = ~Tick{0};
  std::optional<std::uint64_t> step = ~std::uint64_t{0};
  for (const Member& member : present_->members) {
    const LearnerRecord& learner = *roster_.Find(member.id);
    tick = std::min(tick, learner.applied_ticks);
    step = std::min(step, learner.step);  // none is the least
  }
  const bool advanced = tick_ && *tick_ < tick;
  tick_ = tick;
  // The job goes on: it got over what befell a learner of it.
  if (advanced && now - problem_at_ >= kProblemKept) problem_ = {};
  // Members say their ticks first: a job that goes on does not go back to step 0 until they say
  // more.
  if (step) step_ = step;
}

// Nothing fails of it: it trains, and keeps GPUs from others.
std::optional<Problem> CoordinatorCore::Impl::UnusedGpus() const {
  for (const auto& [id, learner] : roster_.learners()) {
    const auto found = learner.fingerprint.find(kFingerprintGpuProblem);
    if (found == learner.fingerprint.end() || !BelongsToPresent(learner)) continue;
    return Problem{.reason = "GpusUnusable", .message = found->second};
  }
  return std::nullopt;
}

LearnerState CoordinatorCore::Impl::StateOf(const LearnerRecord& learner) const {
  if (learner.refused) return LearnerState::kRefused;
  if (learner.leaving) return LearnerState::kLeaving;
  if (BelongsToPresent(learner)) return LearnerState::kMember;
  const bool prepares = proposal_ && Contains(proposal_->membership, learner.id);
  return prepares ? LearnerState::kPreparing : LearnerState::kReady;
}

JobProgress CoordinatorCore::Impl::progress() const {
  JobProgress progress{
      .term = options_.term,
      .membership = present_,
      .plan_accepted = {},
      .tick = tick_,
      .step = step_,
      .figures = figures_,
      .resizes = resizes_.resizes(),
      .problem = problem_.reason.empty() ? UnusedGpus().value_or(Problem{}) : problem_,
      .parameters_sha256 = parameters_sha256_};
  if (roster_.plan()) progress.plan_accepted = roster_.plan()->version;
  std::vector<std::pair<LearnerId, double>> shard_seconds;
  for (const auto& [id, learner] : roster_.learners()) {
    if (!learner.connected() && !learner.refused && !BelongsToPresent(learner)) continue;
    // One entry for all ranks of a learner.
    if (progress.learners.empty() || !SameLearner(progress.learners.back().id, id)) {
      progress.learners.push_back(
          {.id = id, .state = StateOf(learner), .step = learner.step.value_or(0)});
    }
    if (!BelongsToPresent(learner) || !learner.times) continue;
    const double seconds = learner.times->shard_seconds;
    // A learner more than there are shards computes none.
    if (seconds > 0) shard_seconds.emplace_back(id, seconds);
    // Of several ranks those of the one that the others wait for.
    std::optional<TickTimes>& times = progress.learners.back().times;
    if (!times || times->shard_seconds < seconds) times = learner.times;
  }
  progress.slowest = FindSlowest(shard_seconds);
  if (completed_) {
    progress.state = JobState::kCompleted;
  } else if (!present_) {
    progress.state = drained_ ? JobState::kDrained : JobState::kWaiting;
  } else if (broken_since_ || by_recovery_) {
    progress.state = JobState::kRecovering;
  } else if (proposal_ || !AllOpened()) {
    progress.state = JobState::kResizing;
  } else {
    progress.state = present_->members.empty() ? JobState::kDrained : JobState::kRunning;
  }
  return progress;
}

// ---- The shell ----

CoordinatorCore::CoordinatorCore(CoordinatorOptions options, TimePoint now)
    : impl_(std::make_unique<Impl>(options, now)) {}
CoordinatorCore::~CoordinatorCore() = default;

Result<CoordinatorEffects> CoordinatorCore::SetPlan(const Plan& plan, TimePoint now) {
  return impl_->SetPlan(plan, now);
}
CoordinatorEffects CoordinatorCore::OnMessage(ConnectionId connection,
                                              const LearnerMessage& message, TimePoint now) {
  return impl_->OnMessage(connection, message, now);
}
CoordinatorEffects CoordinatorCore::OnDisconnected(ConnectionId connection, TimePoint now) {
  return impl_->OnDisconnected(connection, now);
}
CoordinatorEffects CoordinatorCore::OnTimer(TimePoint now) { return impl_->OnTimer(now); }
JobProgress CoordinatorCore::progress() const { return impl_->progress(); }

}  // namespace pliant
