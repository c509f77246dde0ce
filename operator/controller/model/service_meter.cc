#include "operator/controller/model/service_meter.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "operator/controller/model/job_view.h"
#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

// Seconds that live learners have run since `begin`, from their pods: a running job has attained at
// least that.
double GpuSecondsOf(const std::vector<api::Pod>& learners, WallTime begin, WallTime now) {
  double sum = 0;
  for (const api::Pod& pod : learners) {
    const api::ContainerStatus* program = api::FindContainer(pod, kLearnerContainer);
    if (pod.ended() || program == nullptr || !program->running_since) continue;
    const WallTime from = std::max<WallTime>(*program->running_since, begin);
    sum += std::max(0.0, std::chrono::duration<double>(now - from).count());
  }
  return sum;
}

double Decayed(double gpu_seconds, std::chrono::duration<double> age,
               std::chrono::seconds half_life) {
  return gpu_seconds *
         std::exp2(-std::max(age.count(), 0.0) / static_cast<double>(half_life.count()));
}

void ObserveWaiting(const api::ElasticTrainingJob& job, WallTime now, ServiceMeter& meter) {
  const api::JobStatus& status = job.status;
  const bool waits = status.share.desired_learners == 0 && !job.spec.suspend && !job.meta.deleted &&
                     !status.finished();
  if (!waits) {
    meter.waiting_since.reset();
  } else if (!meter.waiting_since) {
    // An earlier process has written it for a job that this one sees for the first time. A job that
    // never had a GPU, and of which nothing is written, has waited since its creation.
    const bool seen = meter.until.has_value();
    const WallTime began = status.waiting.attained_gpu_seconds > 0 ? now : job.meta.created;
    meter.waiting_since = seen ? now : std::min(status.waiting.since.value_or(began), now);
  }
}

// The GPU time of a job that this process sees for the first time. An earlier process has written
// it with its last status; the rest is found in the pods.
void ReadGpuSeconds(const api::ElasticTrainingJob& job, const std::vector<api::Pod>& learners,
                    std::chrono::seconds half_life, WallTime now, ServiceMeter& meter) {
  const int gpus = job.spec.elastic.gpus_per_learner;
  meter.gpu_seconds = std::max(meter.gpu_seconds, gpus * GpuSecondsOf(learners, WallTime(), now));
  const auto& recent = job.status.waiting.recent_service;
  if (!recent) {
    meter.recent_gpu_seconds = meter.gpu_seconds;
    return;
  }
  meter.recent_gpu_seconds =
      Decayed(static_cast<double>(recent->gpu_seconds), now - recent->time, half_life) +
      gpus * GpuSecondsOf(learners, recent->time, now);
}

// A GPU counts from when its learner's program runs. Attained time alone causes no write of status.
void ObserveGpuSeconds(const api::ElasticTrainingJob& job, const std::vector<api::Pod>& learners,
                       std::chrono::seconds half_life, WallTime now, ServiceMeter& meter) {
  meter.gpu_seconds =
      std::max(meter.gpu_seconds, static_cast<double>(job.status.waiting.attained_gpu_seconds));
  if (!meter.until) {
    ReadGpuSeconds(job, learners, half_life, now, meter);
  } else if (now > *meter.until) {
    const std::chrono::duration<double> passed = now - *meter.until;
    const double more = passed.count() * static_cast<double>(meter.gpus);
    meter.gpu_seconds += more;
    meter.recent_gpu_seconds = Decayed(meter.recent_gpu_seconds, passed, half_life) + more;
  }
  meter.until = now;
  meter.gpus = job.spec.elastic.gpus_per_learner *
               std::ranges::count_if(
                   learners, [](const api::Pod& pod) { return !pod.ended() && IsRunning(pod); });
}

}  // namespace

void ObserveService(const api::ElasticTrainingJob& job, const std::vector<api::Pod>& learners,
                    std::chrono::seconds half_life, WallTime now, ServiceMeter& meter) {
  ObserveWaiting(job, now, meter);
  ObserveGpuSeconds(job, learners, half_life, now, meter);
}

}  // namespace pliant::controller
