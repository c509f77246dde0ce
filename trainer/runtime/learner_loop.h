#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/event_loop.h"
#include "trainer/checkpoint/checkpointer.h"
#include "trainer/collective/memory_source.h"
#include "trainer/collective/peer_transport.h"
#include "trainer/collective/reduction.h"
#include "trainer/data/schedule.h"
#include "trainer/membership/messages.h"
#include "trainer/protocol/metrics.h"
#include "trainer/protocol/work_split.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/coordinator_link.h"
#include "trainer/runtime/learner_stats.h"
#include "trainer/runtime/sample_ledger.h"

namespace pliant {

struct LearnerOptions {
  LearnerId self;
  int ranks = 1;  // of its learner
  Fingerprint fingerprint;
  std::uint64_t min_term = 0;  // coordinators of lower terms are not obeyed
  std::string framework;       // written to checkpoints
  Reproducibility reproducibility = Reproducibility::kBitwise;

  std::uint64_t checkpoint_every_steps = 0;  // 0: not by steps
  Duration checkpoint_every{};               // zero: not by time
  std::set<Tick> checkpoint_at;              // besides, after so many ticks
  int checkpoints_kept = 3;
  std::size_t checkpoint_slice_bytes = std::size_t{1} << 30;  // what is worth a writer of its own

  // Members compare their states so often. 0: never.
  std::uint64_t check_state_every_steps = 100;

  BucketSizes buckets = Reduction::kBucketSizes;  // of the gradient: equal on all learners

  Duration grace = std::chrono::seconds(60);            // when the coordinator says leave
  Duration opening_timeout = std::chrono::seconds(10);  // to be connected to all members
  // One call to the program may take so long. Zero: any time.
  Duration step_timeout{};
  // Of the state that is sent to a learner while the others go on: what is worth a sender, and what
  // is sent before more is asked for.
  std::size_t state_slice_bytes = std::size_t{1} << 20;
  std::size_t state_batch_bytes = std::size_t{4} << 20;
  // Of the gradients that wait there for the state; four of them, if that is more.
  std::size_t backlog_bytes = std::size_t{256} << 20;
  // Unix time less the event loop's time.
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
  // With kFailed: kInvalid when the program or its input is wrong, and trying again is of no use.
  ErrorCode code = ErrorCode::kInternal;
  std::uint64_t step = 0;
  std::string message;
  std::string parameters_sha256;
  bool program_hangs = false;  // it will not come back: nobody is to wait for it
};

// A learner's elastic loop: takes part in one membership after the other until the job is complete
// or it is to leave. It owns no thread: everything happens on the event loop, compute and disk
// behind their seams.
class LearnerLoop {
 public:
  // `on_exit` is called once, on the event loop; nothing happens after it.
  LearnerLoop(LearnerOptions options, Schedule schedule, LearnerParts parts,
              std::function<void(LearnerExit)> on_exit);
  ~LearnerLoop();

  void Start();
  // SIGTERM: go at the next boundary, at the latest when the grace is over.
  void RequestLeave(Duration grace);
  // The program wants to train on so many; 0: on as many as there are. Told by rank 0.
  void AskForLearners(int learners);
  // What trains has failed outside of what Compute was asked to do.
  void Fail(const Error& error);

  Tick applied_ticks() const;
  LearnerStats stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pliant
