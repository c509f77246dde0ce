#pragma once

#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/result.h"

namespace pliant::kube {

// The part of a coordination.k8s.io/v1 Lease that elects.
struct LeaseRecord {
  std::string holder;  // "" after a release
  int duration_seconds = 0;
  int transitions = 0;
  // As text of the object ("2026-01-01T00:00:00.000000Z"): compared for equality only, because
  // other machines' clocks are not ours.
  std::string acquire_time;
  std::string renew_time;

  bool operator==(const LeaseRecord&) const = default;
};

struct LeaseTiming {
  Duration lease = std::chrono::seconds(15);           // others wait this long after the last sign
  Duration renew_deadline = std::chrono::seconds(10);  // we stop this long after our last renewal
  Duration retry = std::chrono::seconds(2);
  double retry_jitter =
      1.2;  // whoever waits for the lease reads it every retry / (1 + jitter · random)

  // The defaults' proportions: others wait for `lease`, which is three seconds or more.
  static LeaseTiming Of(Duration lease) {
    return {.lease = lease, .renew_deadline = lease * 2 / 3, .retry = lease * 2 / 15};
  }

  // kInvalid unless lease > renew_deadline > 2 · retry.
  Status Validate() const;
};

// Who leads, decided from what was read of the lease and when. Pure: no clock, no I/O. Another
// replica's lease has run out when this one has seen it unchanged for the lease's duration, by its
// own monotonic clock.
class LeasePolicy {
 public:
  enum class Action {
    kRead,     // get the lease, then OnRead
    kCreate,   // create it with `record`, then OnWritten
    kReplace,  // replace it, conditional on the version that was read, then OnWritten
    kWait,     // for `wait`, then ask again
  };
  struct Step {
    Action action = Action::kRead;
    LeaseRecord record;
    Duration wait{};
  };

  LeasePolicy(std::string identity, LeaseTiming timing)
      : identity_(std::move(identity)), timing_(timing) {}

  // What to do now, unless it has lost. `wall_time` is written to the lease for people to read;
  // `random` in [0, 1).
  Step NextStep(const std::string& wall_time, double random);

  // Nothing: there is no such lease.
  void OnRead(const std::optional<LeaseRecord>& seen, TimePoint now);
  void OnReadFailed();
  // `began`: when the request was sent. A write that failed may have been done: it reads again.
  void OnWritten(bool success, TimePoint began, TimePoint now);

  // What to write to give the lease back, if this replica leads. It leads no more from then on.
  std::optional<LeaseRecord> Release(TimePoint now, const std::string& wall_time);

  // Whether this replica leads: until the renew deadline after the start of its last successful
  // write. Once false after true it stays false: the program ends then.
  bool Leads(TimePoint now) const { return now < leads_until_; }
  TimePoint leads_until() const { return leads_until_; }
  // Whether it led and does so no more.
  bool Lost(TimePoint now) const { return has_led_ && !Leads(now); }
  // Grows with each change of leaders; that of our own term while we lead.
  int transitions() const { return transitions_.value_or(0); }
  // Who holds it as far as is known; "" if nobody.
  std::string holder() const { return seen_ ? seen_->holder : ""; }

 private:
  enum class Next { kRead, kReadLater, kTake, kRenew, kRenewLater };

  LeaseRecord OwnRecord(const std::string& wall_time) const;

  const std::string identity_;
  const LeaseTiming timing_;
  Next next_ = Next::kRead;
  std::optional<LeaseRecord> seen_;  // as last read, or as last written by us
  std::optional<int> transitions_;   // the most that was seen: kept when somebody deletes the lease
  TimePoint changed_at_{};           // when this replica first saw `seen_` as it is
  std::optional<Duration> expires_in_;  // from the last read: no use in waiting longer
  LeaseRecord writing_;
  TimePoint leads_until_ = TimePoint::min();
  bool has_led_ = false;
};

}  // namespace pliant::kube
