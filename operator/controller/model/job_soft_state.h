#pragma once

#include <cstdint>
#include <optional>

#include "operator/api/time.h"
#include "operator/controller/model/checked_template.h"
#include "operator/controller/model/coordinator_retry.h"
#include "operator/controller/model/grant_refusals.h"
#include "operator/controller/model/learner_clocks.h"
#include "operator/controller/model/learner_contacts.h"
#include "operator/controller/model/mount_cause.h"
#include "operator/controller/model/node_history.h"
#include "operator/controller/model/reporting.h"
#include "operator/controller/model/service_meter.h"
#include "operator/controller/model/times_ahead.h"

namespace pliant::controller {

// What is known of a job beyond its objects: in memory only. A new leader finds all of it out
// again, or it only costs time. Each part is changed by the functions beside it, and by the
// decision that owns it.
struct JobSoftState {
  LearnerClocks clocks;
  LearnerContacts contacts;
  NodeHistory nodes;
  MountCauses mount_causes;
  CheckedTemplate checked_template;
  GrantRefusals refusals;
  CoordinatorRetry coordinator_retry;
  Reporting reporting;
  ServiceMeter meter;
  TimesAhead times_ahead;
  // The lowest committed step that was seen since the newest failure was counted: it falls when the
  // job is restored from a checkpoint.
  std::optional<std::int64_t> lowest_step;
  bool operator==(const JobSoftState&) const = default;
};

// Takes over what the job's objects and its coordinator show now. Before planning, which asks for
// it.
void ObserveJob(JobView& view, api::WallTime now);

}  // namespace pliant::controller
