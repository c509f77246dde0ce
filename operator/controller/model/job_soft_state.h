#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "operator/api/time.h"
#include "operator/controller/model/checked_template.h"
#include "operator/controller/model/claim_history.h"
#include "operator/controller/model/coordinator_retry.h"
#include "operator/controller/model/grant_refusals.h"
#include "operator/controller/model/known_speed.h"
#include "operator/controller/model/learner_clocks.h"
#include "operator/controller/model/learner_contacts.h"
#include "operator/controller/model/mount_cause.h"
#include "operator/controller/model/node_history.h"
#include "operator/controller/model/reporting.h"
#include "operator/controller/model/resize_meter.h"
#include "operator/controller/model/service_meter.h"
#include "operator/controller/model/times_ahead.h"

namespace pliant::controller {

// The operator's knowledge of a job beyond its objects. In memory only: a new leader rebuilds it,
// or its loss only costs time. Each part is changed by the functions declared with it, and by the
// decision that owns it.
struct JobSoftState {
  LearnerClocks clocks;
  LearnerContacts contacts;
  ClaimHistory claims;
  NodeHistory nodes;
  MountCauses mount_causes;
  CheckedTemplate checked_template;
  GrantRefusals refusals;
  CoordinatorRetry coordinator_retry;
  Reporting reporting;
  ServiceMeter meter;
  TimesAhead times_ahead;
  KnownSpeed speed;
  ResizeMeter resizes;
  // The lowest committed step seen since the newest failure was counted. It falls when the job is
  // restored from a checkpoint.
  std::optional<std::int64_t> lowest_step;
  bool operator==(const JobSoftState&) const = default;
};

// Updates the soft state from the job's objects and its coordinator. Call it before planning, which
// reads the result. Returns what its owner should hear.
std::vector<Eviction> ObserveJob(JobView& view, api::WallTime now);

}  // namespace pliant::controller
