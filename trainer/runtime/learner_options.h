#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/event_loop.h"
#include "trainer/checkpoint/checkpointer.h"
#include "trainer/collective/gradient_rounds.h"
#include "trainer/collective/memory_source.h"
#include "trainer/collective/peer_transport.h"
#include "trainer/collective/reduction.h"
#include "trainer/data/schedule.h"
#include "trainer/membership/messages.h"
#include "trainer/protocol/metrics.h"
#include "trainer/protocol/work_split.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/coordinator_link.h"
#include "trainer/runtime/sample_ledger.h"

namespace pliant {

struct LearnerOptions {
  LearnerId self;
  int ranks = 1;  // in its learner
  Fingerprint fingerprint;
  std::uint64_t min_term = 0;  // coordinators of lower terms are not obeyed
  std::string framework;       // written to checkpoints
  Reproducibility reproducibility = Reproducibility::kBitwise;

  std::uint64_t checkpoint_every_steps = 0;  // 0: not by steps
  Duration checkpoint_every{};               // zero: not by time
  std::set<Tick> checkpoint_at;              // also after these numbers of ticks
  int checkpoints_kept = 3;
  std::size_t checkpoint_slice_bytes = std::size_t{1} << 30;  // minimum bytes per writer

  // Steps between two comparisons of the members' states. 0: never.
  std::uint64_t check_state_every_steps = 100;

  // The cuts of the gradient: equal on all learners.
  BucketSizes buckets = Reduction::kBucketSizes;
  BucketSizes buckets_of_rounds = GradientRounds::kBucketSizes;

  Duration grace = std::chrono::seconds(60);            // after the coordinator asks to leave
  Duration opening_timeout = std::chrono::seconds(10);  // for connecting to all members
  // Maximum duration of one call to the program. Zero: no limit.
  Duration step_timeout{};
  // The state that is sent to a learner that catches up: minimum bytes per sender, and bytes after
  // which the receiver asks for more.
  std::size_t state_slice_bytes = std::size_t{1} << 20;
  std::size_t state_batch_bytes = std::size_t{4} << 20;
  // Maximum memory of that learner for gradients not applied yet; at least four gradients.
  std::size_t backlog_bytes = std::size_t{256} << 20;
  // Unix time minus the event loop's time.
  double unix_offset_seconds = 0;
};

// Borrowed; all outlive the loop.
struct LearnerParts {
  EventLoop& loop;
  CoordinatorLink* link = nullptr;     // none: alone, a membership of one
  PeerTransport* transport = nullptr;  // none: alone
  Compute& compute;
  Checkpointer& checkpointer;
  MetricsSink& metrics;
  SampleLedger* ledger = nullptr;  // none: not kept
  MemorySource& gradients = HeapMemory();
};

// How a learner ended.
struct LearnerExit {
  LeftReason reason = LeftReason::kDrained;
  // With kFailed: kInvalid when the program or its input is wrong, so that a retry cannot help.
  ErrorCode code = ErrorCode::kInternal;
  std::uint64_t step = 0;
  std::string message;
  std::string parameters_sha256;
  bool program_hangs = false;  // its call will not return: do not wait for it
};

}  // namespace pliant
