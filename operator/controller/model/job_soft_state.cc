#include "operator/controller/model/job_soft_state.h"

#include "operator/controller/model/job_view.h"

namespace pliant::controller {

std::vector<Eviction> ObserveJob(JobView& view, WallTime now) {
  JobSoftState& state = view.soft_state;
  const bool first_look = !state.meter.until;
  ObserveClaim(*view.job, view.job->status.progress.learners_asked, now, state.claims);
  std::vector<Eviction> evictions = ObserveNodes(view.learners, state.clocks, now, state.nodes);
  ObserveClocks(view, now, state.clocks);
  ObserveResizes(view, first_look, now, state.resizes);
  ForgetMounted(state.clocks, state.mount_causes);
  ObserveContacts(view, first_look, state.contacts);
  ObserveService(*view.job, view.learners, view.membership.half_life, now, state.meter);
  ObserveTimes(view.job->status, now, state.times_ahead);
  ObserveTemplate(*view.job, view.learners, state.checked_template);
  // One that answers may yet refuse each plan.
  const auto& progress = view.coordinator.progress;
  const bool is_useful = view.coordinator.reachable && !view.coordinator.refused_since &&
                         progress && progress->plan_accepted;
  if (is_useful) state.coordinator_retry.tries = 0;
  return first_look ? std::vector<Eviction>() : evictions;
}

}  // namespace pliant::controller
