#pragma once

#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/result.h"

namespace pliant::kube {

// The fields of a coordination.k8s.io/v1 Lease used for leader election.
struct LeaseRecord {
  std::string holder;  // "" after a release
  int duration_seconds = 0;
  int transitions = 0;
  // Text from the object ("2026-01-01T00:00:00.000000Z"), compared for equality only, because other
  // machines' clocks may differ from ours.
  std::string acquire_time;
  std::string renew_time;

  bool operator==(const LeaseRecord&) const = default;
};

struct LeaseTiming {
  // others wait this long after the last renewal they saw
  Duration lease = std::chrono::seconds(15);
  // we stop leading this long after our last renewal
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry = std::chrono::seconds(2);
  double retry_jitter = 1.2;  // a standby reads the lease every retry / (1 + jitter · random)

  // Keeps the proportions of the defaults. `lease` is at least three seconds.
  static LeaseTiming Of(Duration lease) {
    return {.lease = lease, .renew_deadline = lease * 2 / 3, .retry = lease * 2 / 15};
  }

  // kInvalid unless lease > renew_deadline > 2 · retry.
  Status Validate() const;
};

// Decides who leads from the lease as read and the time of the read. Pure: no clock, no I/O.
// Another replica's lease has expired when this replica has seen it unchanged for the lease's
// duration, by its own monotonic clock.
class LeasePolicy {
 public:
  enum class Action {
    kRead,     // get the lease, then OnRead
    kCreate,   // create it with `record`, then OnWritten
    kReplace,  // replace it, conditional on the version that was read, then OnWritten
    kWait,     // wait for `wait`, then call NextStep again
  };
  struct Step {
    Action action = Action::kRead;
    LeaseRecord record;
    Duration wait{};
  };

  LeasePolicy(std::string identity, LeaseTiming timing)
      : identity_(std::move(identity)), timing_(timing) {}

  // The next action; not to be called after leadership was lost. `wall_time` is written to the
  // lease for people to read, and numbers the first one; `random` in [0, 1).
  Step NextStep(const std::string& wall_time, double random);

  // `seen` is nullopt if there is no such lease.
  void OnRead(const std::optional<LeaseRecord>& seen, TimePoint now);
  void OnReadFailed();
  // `began`: when the request was sent. A failed write may have been applied, so the lease is read
  // again.
  void OnWritten(bool success, TimePoint began, TimePoint now);

  // If this replica leads, returns the record to write to release the lease. It no longer leads
  // afterwards.
  std::optional<LeaseRecord> Release(TimePoint now, const std::string& wall_time);

  // Whether this replica leads: until the renew deadline after the start of its last successful
  // write. Once it changes from true to false it stays false: the program then exits.
  bool Leads(TimePoint now) const { return now < leads_until_; }
  TimePoint leads_until() const { return leads_until_; }
  // Whether it led and no longer does.
  bool Lost(TimePoint now) const { return has_led_ && !Leads(now); }
  // Increases with each change of leader; while we lead, the number of our own term.
  int transitions() const { return transitions_.value_or(0); }
  // The holder as last seen; "" if there is none.
  std::string holder() const { return seen_ ? seen_->holder : ""; }

 private:
  enum class Next { kRead, kReadLater, kTake, kRenew, kRenewLater };

  LeaseRecord OwnRecord(const std::string& wall_time) const;

  const std::string identity_;
  const LeaseTiming timing_;
  Next next_ = Next::kRead;
  std::optional<LeaseRecord> seen_;     // as last read, or as last written by us
  std::optional<int> transitions_;      // maximum seen: kept even if the lease is deleted
  TimePoint changed_at_{};              // when this replica first saw the present `seen_`
  std::optional<Duration> expires_in_;  // from the last read: there is no point in waiting longer
  LeaseRecord writing_;
  TimePoint leads_until_ = TimePoint::min();
  bool has_led_ = false;
};

}  // namespace pliant::kube
