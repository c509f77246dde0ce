#include "operator/controller/model/service_meter.h"

#include <algorithm>
#include <chrono>

#include "operator/controller/model/job_view.h"
#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

// Seconds that live learners have run, from their pods: a running job has attained at least that.
double GpuSecondsOf(const std::vector<api::Pod>& learners, WallTime now) {
  double sum = 0;
  for (const api::Pod& pod : learners) {
    const api::ContainerStatus* program = api::FindContainer(pod, kLearnerContainer);
    if (pod.ended() || program == nullptr || !program->running_since) continue;
    sum += std::max(0.0, std::chrono::duration<double>(now - *program->running_since).count());
  }
  return sum;
}

void ObserveWaiting(const api::ElasticTrainingJob& job, WallTime now, ServiceMeter& meter) {
  const api::JobStatus& status = job.status;
  const bool waits = status.desired_learners == 0 && !job.spec.suspend && !status.finished();
  if (!waits) {
    meter.waiting_since.reset();
  } else if (!meter.waiting_since) {
    // A job that this process sees for the first time, and that never had a GPU, has waited since
    // its creation.
    const bool seen = meter.until.has_value();
    meter.waiting_since = seen || status.attained_gpu_seconds > 0 ? now : job.meta.created;
  }
}

// A GPU counts from when its learner's program runs. Attained time alone causes no write of status:
// a new leader finds the rest in the pods.
void ObserveGpuSeconds(const api::ElasticTrainingJob& job, const std::vector<api::Pod>& learners,
                       WallTime now, ServiceMeter& meter) {
  meter.gpu_seconds =
      std::max(meter.gpu_seconds, static_cast<double>(job.status.attained_gpu_seconds));
  const int gpus = job.spec.elastic.gpus_per_learner;
  if (!meter.until) {
    meter.gpu_seconds = std::max(meter.gpu_seconds, gpus * GpuSecondsOf(learners, now));
  } else if (now > *meter.until) {
    const auto passed = std::chrono::duration<double>(now - *meter.until).count();
    meter.gpu_seconds += passed * static_cast<double>(meter.gpus);
  }
  meter.until = now;
  meter.gpus = gpus * std::ranges::count_if(learners, [](const api::Pod& pod) {
                 return !pod.ended() && IsRunning(pod);
               });
}

}  // namespace

void ObserveService(const api::ElasticTrainingJob& job, const std::vector<api::Pod>& learners,
                    WallTime now, ServiceMeter& meter) {
  ObserveWaiting(job, now, meter);
  ObserveGpuSeconds(job, learners, now, meter);
}

}  // namespace pliant::controller
