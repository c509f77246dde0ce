#pragma once

#include "trainer/checkpoint/checkpointer.h"
#include "trainer/protocol/membership_view.h"
#include "trainer/protocol/metrics.h"
#include "trainer/protocol/state_server.h"
#include "trainer/protocol/work_split.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/coordinator_session.h"
#include "trainer/runtime/learner_stats.h"
#include "trainer/runtime/moves.h"
#include "trainer/runtime/peers.h"
#include "trainer/runtime/sample_ledger.h"
#include "trainer/runtime/tasks.h"
#include "trainer/runtime/training_state.h"
#include "trainer/runtime/volume_retry.h"

namespace pliant {

// The objects that live as long as a learner, for its parts that live as long as a membership.
// Borrowed.
struct LearnerContext {
  Tasks& tasks;
  Moves& moves;
  Compute& compute;
  Checkpointer& checkpointer;
  MetricsSink& metrics;
  SampleLedger* ledger = nullptr;  // none: not kept
  const WorkSplit& split;
  MembershipView& view;
  Peers& peers;
  StateServer& states;
  CoordinatorSession& session;
  VolumeRetry& volume_retry;
  LearnerStats& stats;
  TrainingState& state;
};

}  // namespace pliant
