#include "trainer/membership/coordinator_core.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "trainer/membership/admission.h"
#include "trainer/membership/departures.h"

namespace pliant {
CoordinatorCore::CoordinatorCore(const CoordinatorOptions& options, TimePoint now)
    : options_(options),
      started_(now),
      // The first process of the first term: no membership was ever issued.
      rebuilt_(options.term <= 1 && options.counter == 0),
      counter_(options.counter),
      faults_(options, now),
      proposer_(options),
      report_(options.unix_offset_seconds) {}

// ---- Inputs ----

Result<CoordinatorEffects> CoordinatorCore::SetPlan(const Plan& plan, TimePoint now) {
  const std::optional<Plan>& taken = roster_.plan();
  if (taken && plan.version < taken->version) {
    return Fail(ErrorCode::kConflict,
                Format("a newer plan, {}.{}, was accepted before", taken->version.lease_transitions,
                       taken->version.sequence));
  }
  // An equal version is the same plan again: the answer was lost.
  if (!taken || taken->version < plan.version) roster_.SetPlan(plan);
  return Decide(now);
}

CoordinatorEffects CoordinatorCore::OnMessage(ConnectionId connection,
                                              const LearnerMessage& message, TimePoint now) {
  if (const LearnerRecord* const learner = roster_.OfConnection(connection)) {
    roster_.RecordHeard(learner->id, now);
    std::visit([&](const auto& value) { On(*learner, value, now); }, message);
  } else if (const auto* hello = std::get_if<Hello>(&message); hello != nullptr && !obsolete_) {
    OnHello(connection, *hello, now);
  } else {
    effects_.push_back(CloseConnection{connection});
  }
  return Decide(now);
}

CoordinatorEffects CoordinatorCore::OnDisconnected(ConnectionId connection, TimePoint now) {
  if (const LearnerRecord* const learner = roster_.OfConnection(connection)) {
    roster_.Disconnect(learner->id, now);
  }
  return Decide(now);
}

CoordinatorEffects CoordinatorCore::OnTimer(TimePoint now) { return Decide(now); }

// ---- Messages of learners ----

void CoordinatorCore::OnHello(ConnectionId connection, const Hello& hello, TimePoint now) {
  if (const std::optional<Refusal> refusal = CheckAdmission(roster_, hello)) {
    if (refusal->lists_learner) roster_.Refuse(hello.learner, now);
    return Refuse(connection, refusal->problem, now);
  }
  for (const ConnectionId replaced : roster_.Connect(connection, hello, now)) {
    effects_.push_back(CloseConnection{replaced});
  }
  const LearnerRecord& learner = roster_.At(hello.learner);
  Send(learner.id,
       Welcome{.term = options_.term, .heartbeat_seconds = ToSeconds(options_.heartbeat)});
  if (hello.membership) Observe(*hello.membership, now);
  if (hello.before && hello.membership && IsCurrent(hello.membership->id) &&
      !(history_.training() && history_.AllOpened()) && !InUse(learner.id, history_, proposer_)) {
    history_.AddSuperseded(*hello.before);
  }
  if (obsolete_) return;
  SendCurrent(learner.id);
  if (proposer_.Proposes(learner.id) && !proposer_.announced()) {
    const Proposal& proposal = *proposer_.proposal();
    Send(learner.id, Prepare{proposal.membership, proposal.replaces});
  }
}

void CoordinatorCore::On(const LearnerRecord& learner, const Prepared& prepared, TimePoint) {
  if (proposer_.OnPrepared(learner.id, prepared.membership)) roster_.SetPrepared(learner.id);
}

void CoordinatorCore::On(const LearnerRecord& learner, const Entered& entered, TimePoint now) {
  roster_.SetEntered(learner.id, entered.membership.id);
  roster_.SetAppliedTicks(learner.id, entered.applied_ticks);
  Observe(entered.membership, now);
}

void CoordinatorCore::On(const LearnerRecord& learner, const Opened& opened, TimePoint now) {
  roster_.SetAppliedTicks(learner.id, std::max(learner.applied_ticks, opened.applied_ticks));
  if (!history_.IsMember(learner.id) || !IsCurrent(opened.membership)) return;
  const bool was_member = history_.AddOpened(learner.id, opened.applied_ticks);
  if (!was_member) roster_.ClearStep(learner.id);  // from a much earlier membership
  report_.OnOpened(opened, was_member);
  report_.UpdateCommitted(roster_, history_, now);
  if (!history_.AllOpened()) return;
  history_.DropSuperseded();
  faults_.OnAllOpened(*history_.current());
  report_.OnAllOpened(opened.membership, now);
}

void CoordinatorCore::On(const LearnerRecord& learner, const Leaving&, TimePoint) {
  roster_.MarkLeaving(learner.id);
}

void CoordinatorCore::On(const LearnerRecord& learner, const Lost& lost, TimePoint now) {
  if (!history_.current()) return;
  if (IsCurrent(lost.membership)) {
    log::Info("membership broken",
              {{"membership", ToString(lost.membership)},
               {"reporter", learner.id.name},
               {"accused", lost.accused.empty() ? std::string("nobody") : lost.accused[0].name},
               {"cause", lost.cause}});
    faults_.Report(learner.id, lost.accused, now);
  } else if (lost.membership < history_.current()->id) {
    // The others completed the tick and switched, but this one could not.
    SendCurrent(learner.id);
  }
}

void CoordinatorCore::On(const LearnerRecord& learner, const Progress& progress, TimePoint now) {
  roster_.SetAppliedTicks(learner.id, progress.tick);
  if (!history_.IsMember(learner.id) || progress.membership != history_.current()->id) return;
  history_.OnProgress(learner.id, progress, now);
  roster_.SetWork(learner.id, progress.step, progress.times);
  if (progress.stats) {
    const double busiest = roster_.LongestComputeSeconds(*history_.current());
    report_.SetStats(*progress.stats, progress.step, busiest, now);
  }
  report_.UpdateCommitted(roster_, history_, now);
}

void CoordinatorCore::On(const LearnerRecord& learner, const Left& left, TimePoint now) {
  roster_.SetLeft(learner.id, left.reason);
  roster_.SetAppliedTicks(learner.id, left.applied_ticks);
  log::Info("learner left", {{"learner", learner.id.name},
                             {"reason", ToString(left.reason)},
                             {"ticks", left.applied_ticks},
                             {"cause", left.message}});
  switch (left.reason) {
    case LeftReason::kCompleted:
      report_.OnCompleted(left);
      break;
    case LeftReason::kFailed:
      report_.SetProblem({"LearnerFailed", Format("{}: {}", learner.id.name, left.message)}, now);
      break;
    case LeftReason::kDrained:
      break;
  }
  Close(learner.id, now);
}

void CoordinatorCore::Observe(const Membership& membership, TimePoint now) {
  if (membership.id.term > options_.term) {
    log::Warning("a later coordinator exists", {{"membership", ToString(membership.id)}});
    obsolete_ = true;
    for (const auto& [id, learner] : roster_.learners()) {
      if (learner.connected()) Close(id, now);
    }
    return;
  }
  if (membership.id.term == options_.term) counter_ = std::max(counter_, membership.id.counter);
  if (!history_.current() || history_.current()->id < membership.id) {
    return MakeCurrent(membership, false, now);
  }
  // Its members may hold the state that members of the current one need.
  history_.Observe(membership);
}

bool CoordinatorCore::IsCurrent(MembershipId id) const {
  return history_.current() && history_.current()->id == id;
}

// ---- Decisions ----

CoordinatorEffects CoordinatorCore::Decide(TimePoint now) {
  if (!obsolete_) {
    CloseSilent(now);
    if (report_.completed()) {
      DismissAll();
    } else if (Rebuilt(now)) {
      if (faults_.Detect(history_, proposer_.announced_membership(), roster_, now)) {
        TryRecover(now);
      } else if (proposer_.proposal()) {
        CheckProposal(now);
      }
      if (!proposer_.proposal() && !faults_.broken_since()) Propose(now);
      NotifyLeavers(now);
      history_.Trim(roster_);
      roster_.Forget([&](const LearnerId& id) { return InUse(id, history_, proposer_); }, now);
    }
  }
  return std::exchange(effects_, {});
}

void CoordinatorCore::CloseSilent(TimePoint now) {
  for (const auto& [id, learner] : roster_.learners()) {
    if (!learner.connected() || now - learner.heard <= options_.max_silence) continue;
    log::Warning("learner is silent", {{"learner", id.name}});
    Close(id, now);
  }
}

bool CoordinatorCore::Rebuilt(TimePoint now) {
  if (rebuilt_) return true;
  const auto& current = history_.current();
  const bool members_heard =
      current && std::ranges::all_of(current->members, [&](const Member& member) {
        const LearnerRecord& learner = roster_.At(member.id);
        return learner.connected() || learner.gone();
      });
  rebuilt_ =
      members_heard || roster_.AllOfPlanConnected() || now - started_ >= options_.rebuild_wait;
  if (rebuilt_) {
    log::Info("state rebuilt from learners",
              {{"membership", current ? ToString(current->id) : "none"}});
  }
  return rebuilt_;
}

void CoordinatorCore::TryRecover(TimePoint now) {
  const std::optional<Membership> announced = proposer_.announced_membership();
  std::optional<Recovery> recovery =
      faults_.Resolve(history_.Candidates(roster_, announced), roster_, history_, now);
  if (!recovery) return;
  for (const LearnerId& id : recovery->evicted) {
    log::Warning("learner evicted for broken links", {{"learner", id.name}});
    roster_.Quarantine(id, now);
  }
  if (proposer_.proposal() && !announced) WithdrawProposal();
  // Its members may have entered it; they are waited for until another membership has opened.
  if (announced) history_.AddSuperseded(*announced);
  proposer_.Drop();
  if (recovery->survivors.empty()) return OnAllLost();
  MakeCurrent({.id = NewId(), .members = std::move(recovery->survivors)}, true, now);
}

void CoordinatorCore::OnAllLost() {
  const bool drained = std::ranges::all_of(history_.current()->members, [&](const Member& member) {
    return roster_.At(member.id).left == LeftReason::kDrained;
  });
  report_.SetDrained(drained);
  if (!drained) {
    log::Warning("all learners were lost", {{"membership", ToString(history_.current()->id)}});
  }
  history_.Clear();
  faults_.Reset();
  roster_.ClearBackoffs();  // no learner trains that they could disturb
}

void CoordinatorCore::CheckProposal(TimePoint now) {
  if (proposer_.announced()) {
    // The announcement is lost if the connection that carried it ended.
    if (!roster_.Connected(*proposer_.proposal()->announced_to)) AnnounceProposal(now);
    return;
  }
  const Proposer::Check check = proposer_.CheckProposal(roster_, history_, now);
  for (const LearnerId& id : check.late) roster_.BackOff(id, now);
  if (check.verdict == Proposer::Verdict::kAnnounce) AnnounceProposal(now);
  if (check.verdict == Proposer::Verdict::kWithdraw) WithdrawProposal();
}

void CoordinatorCore::Propose(TimePoint now) {
  std::optional<Proposer::Draft> draft = proposer_.Next(roster_, history_, now);
  if (!draft) return;
  const Proposal& proposal = proposer_.Begin(*std::move(draft), NewId(), roster_, history_, now);
  for (const Member& member : proposal.membership.members) {
    Send(member.id, Prepare{proposal.membership, proposal.replaces});
  }
  if (proposal.membership.members.empty()) AnnounceProposal(now);
}

void CoordinatorCore::AnnounceProposal(TimePoint now) {
  const Proposal& proposal = *proposer_.proposal();
  const Announce announce{proposal.membership, proposal.replaces};
  if (proposal.replaces) {
    if (const auto announcer = proposer_.Announce(roster_, history_)) {
      Send(*announcer, announce);
    }
    return;
  }
  for (const Member& member : announce.membership.members) Send(member.id, announce);
  MakeCurrent(announce.membership, false, now);
}

void CoordinatorCore::WithdrawProposal() {
  const Membership& membership = proposer_.proposal()->membership;
  for (const Member& member : membership.members) Send(member.id, Withdraw{membership.id});
  proposer_.Drop();
}

void CoordinatorCore::MakeCurrent(const Membership& membership, bool by_recovery, TimePoint now) {
  const std::optional<Proposal>& proposal = proposer_.proposal();
  const bool planned = proposal && proposal->membership.id == membership.id;
  if (planned) {
    report_.BeginResize(Resize::Kind::kPlanned, proposal->reason, history_.current(), membership,
                        proposal->requested);
  } else if (by_recovery) {
    report_.BeginResize(Resize::Kind::kRecovery, WhyRecovered(*history_.current(), membership),
                        history_.current(), membership, *faults_.broken_since());
  } else if (proposal && !proposer_.announced()) {
    WithdrawProposal();
  }
  proposer_.Drop();
  proposer_.ClearRequest();
  history_.MakeCurrent(membership, by_recovery, now);
  const std::set<LearnerId> stopped = faults_.Reset();
  report_.SetDrained(false);
  for (const Member& member : membership.members) roster_.Add(member.id, now);
  log::Info("membership", {{"id", ToString(membership.id)}, {"members", membership.world_size()}});
  // Members that have not entered it yet may not know of it: send Recover. Members of a planned one
  // receive it at the boundary, except those that stopped before the boundary.
  for (const Member& member : membership.members) {
    if (!planned || stopped.contains(member.id)) SendCurrent(member.id);
  }
}

void CoordinatorCore::NotifyLeavers(TimePoint now) {
  for (const auto& [id, at_once] : FindDepartures(roster_, history_, proposer_, now)) {
    SendLeave(id, at_once);
    roster_.MarkLeaving(id);  // it cannot withdraw that
  }
}

void CoordinatorCore::DismissAll() {
  for (const auto& [id, learner] : roster_.learners()) {
    if (learner.connected()) SendLeave(id, true);
  }
}

// ---- Effects ----

void CoordinatorCore::SendCurrent(const LearnerId& id) {
  if (!history_.IsMember(id) || roster_.At(id).entered >= history_.current()->id) return;
  Send(id, Recover{*history_.current()});
}

MembershipId CoordinatorCore::NewId() {
  const MembershipId id{.term = options_.term, .counter = ++counter_};
  effects_.push_back(PersistCounter{counter_});
  return id;
}

void CoordinatorCore::Send(const LearnerId& id, CoordinatorMessage message) {
  const LearnerRecord* const learner = roster_.Find(id);
  if (learner == nullptr || !learner->connected()) return;
  effects_.push_back(SendMessage{learner->connection, std::move(message)});
}

void CoordinatorCore::SendLeave(const LearnerId& id, bool at_once) {
  const LearnerRecord& learner = roster_.At(id);
  if (at_once ? learner.leave_now_sent : learner.leave_sent) return;
  Send(id, Leave{.at_once = at_once});
  roster_.MarkLeaveSent(id, at_once);
}

void CoordinatorCore::Refuse(ConnectionId connection, const Problem& problem, TimePoint now) {
  report_.SetProblem(problem, now);
  const auto& [reason, message] = report_.problem();
  log::Warning("learner refused",
               {{"connection", connection}, {"reason", reason}, {"cause", message}});
  effects_.push_back(SendMessage{connection, Refused{.reason = reason, .message = message}});
  effects_.push_back(CloseConnection{connection});
}

void CoordinatorCore::Close(const LearnerId& id, TimePoint now) {
  effects_.push_back(CloseConnection{roster_.At(id).connection});
  roster_.Disconnect(id, now);
}

// ---- Progress ----

JobProgress CoordinatorCore::progress() const {
  return report_.Compose(options_.term, roster_, history_, proposer_, faults_);
}

}  // namespace pliant
