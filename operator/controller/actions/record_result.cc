#include "operator/controller/actions/record_result.h"

#include <span>

namespace pliant::controller {
namespace {

void RecordTemplateCheck(const Batch& batch, const BatchResult& result, api::WallTime now,
                         CheckedTemplate& known) {
  if (!result.template_unchecked.empty()) {
    OnTemplateUnchecked(batch.job, result.template_unchecked, known);
  } else if (result.template_refusal && result.template_refusal->empty()) {
    OnTemplateAccepted(batch.job, result.admitted_needs, known);
  } else if (result.template_refusal) {
    OnTemplateRefused(batch.job, *result.template_refusal, now, known);
  }
}

}  // namespace

void RecordResult(const Batch& batch, const LastReported& reported_before, bool unanswered_before,
                  const BatchResult& result, api::WallTime now, JobSoftState& state) {
  // Nothing was reported: the next try must not treat it as old news.
  if (batch.write_status && !result.job) state.reporting.last = reported_before;
  RecordTemplateCheck(batch, result, now, state.checked_template);
  for (const LookForPod& pod : result.gone) {
    if (!pod.uid.empty()) OnPodGone(pod.uid, state.contacts);
  }
  for (const auto& [pod, cause] : result.mount_causes) {
    OnMountCause(pod, cause, now, state.mount_causes);
  }
  // The job's owner gets to see refusals of the server, but no errors that pass by themselves.
  const std::span undone = std::span(batch.actions).subspan(result.failed.value_or(0));
  if (!result.unanswered.empty()) {
    OnNoAnswer(batch.job.meta, undone, result.unanswered, now, state.refusals);
  }
  if (result.lacks_quota && !OnQuotaFull(now, state.refusals)) return;
  if (result.error && kube::IsRefusal(*result.error)) {
    OnRefusal(undone, result.error->message, now, state.refusals);
  } else if (!batch.held_back && IsAllDone(result, unanswered_before)) {
    OnAllDone(state.refusals);
  }
}

}  // namespace pliant::controller
