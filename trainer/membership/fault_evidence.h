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

// What a recovery does.
struct Recovery {
  std::vector<Member> survivors;   // in the order of their ranks; none: all were lost
  std::vector<LearnerId> evicted;  // though they are there: their links keep breaking
  bool operator==(const Recovery&) const = default;
};

// Why the current membership has to be replaced at once, and by whom.
class FaultEvidence {
 public:
  FaultEvidence(const CoordinatorOptions& options, TimePoint started)
      : options_(options), started_(started) {}

  // Since when the current membership is broken; none: it is not.
  const std::optional<TimePoint>& broken_since() const { return broken_since_; }
  // Whether it is, or cannot go on: nor can the one that was announced to follow.
  bool Detect(const MembershipHistory& history, const std::optional<Membership>& announced,
              const Roster& roster, TimePoint now);
  // A member gave the current membership up.
  void Report(const LearnerId& reporter, const std::vector<LearnerId>& accused, TimePoint now);
  // Another membership is current: returns who had given up the one before.
  std::set<LearnerId> Reset();
  // Links between its members work.
  void OnAllOpened(const Membership& membership);

  // How to replace the broken membership, with `candidates` as members; none: it is too early to
  // tell.
  std::optional<Recovery> Resolve(const std::vector<Member>& candidates, const Roster& roster,
                                  const MembershipHistory& history, TimePoint now);

 private:
  void MarkBroken(TimePoint now);
  // The candidates that are there; none: somebody may still come back, or speak.
  std::optional<std::vector<Member>> Survivors(const std::vector<Member>& candidates,
                                               const Roster& roster, bool state_is_safe,
                                               TimePoint now) const;
  // The links between survivors that are not to be tried once more.
  std::set<BrokenLink> BrokenLinks(const std::vector<Member>& survivors, TimePoint now);

  const CoordinatorOptions options_;
  const TimePoint started_;
  std::optional<TimePoint> broken_since_;
  std::map<LearnerId, std::set<LearnerId>> accused_by_;  // by reporter
  std::map<BrokenLink, std::vector<TimePoint>> breaks_;  // when each link broke
  // Those that kept breaking, until a membership with both ends has opened.
  std::map<BrokenLink, TimePoint> broken_links_;
};

}  // namespace pliant
