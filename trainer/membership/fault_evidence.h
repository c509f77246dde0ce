#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/event_loop.h"
#include "trainer/membership/coordinator_options.h"
#include "trainer/membership/membership_history.h"
#include "trainer/membership/roster.h"
#include "trainer/membership/rules.h"
#include "trainer/membership/types.h"

namespace pliant {

// The result of a recovery.
struct Recovery {
  std::vector<Member> survivors;   // in the order of their ranks; none: all were lost
  std::vector<LearnerId> evicted;  // connected, but their links keep breaking
  bool operator==(const Recovery&) const = default;
};

// Decides when the current membership must be replaced at once, and by which members.
class FaultEvidence {
 public:
  FaultEvidence(const CoordinatorOptions& options, TimePoint started)
      : options_(options), started_(started) {}

  // The time since which the current membership is broken; none: it is not.
  const std::optional<TimePoint>& broken_since() const { return broken_since_; }
  // Checks whether it is broken: a member of it, or of the announced one, is gone, or one is out of
  // contact while no tick advances.
  bool Detect(const MembershipHistory& history, const std::optional<Membership>& announced,
              const Roster& roster, TimePoint now);
  // A member aborted the current membership.
  void Report(const LearnerId& reporter, const std::vector<LearnerId>& accused, TimePoint now);
  // Another membership is current: returns the members that had aborted the previous one.
  std::set<LearnerId> Reset();
  // All members opened it: the links between them work.
  void OnAllOpened(const Membership& membership);

  // How to replace the broken membership, with `candidates` as members; none: it is too early to
  // decide.
  std::optional<Recovery> Resolve(const std::vector<Member>& candidates, const Roster& roster,
                                  const MembershipHistory& history, TimePoint now);

 private:
  void MarkBroken(TimePoint now);
  // The connected candidates; none: one may still reconnect or send a message.
  std::optional<std::vector<Member>> Survivors(const std::vector<Member>& candidates,
                                               const Roster& roster, bool state_is_safe,
                                               TimePoint now) const;
  // The links between survivors that must not be tried once more.
  std::set<BrokenLink> BrokenLinks(const std::vector<Member>& survivors, TimePoint now);

  const CoordinatorOptions options_;
  const TimePoint started_;
  std::optional<TimePoint> broken_since_;
  std::map<LearnerId, std::set<LearnerId>> accused_by_;  // by reporter
  std::map<BrokenLink, std::vector<TimePoint>> breaks_;  // when each link broke
  // Links that kept breaking; erased after kLinkMemory, or when a membership with both ends opens.
  std::map<BrokenLink, TimePoint> broken_links_;
};

}  // namespace pliant
