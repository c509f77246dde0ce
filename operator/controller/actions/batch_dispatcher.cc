#include "operator/controller/actions/batch_dispatcher.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "operator/controller/actions/look_again.h"
#include "operator/controller/actions/record_result.h"

namespace pliant::controller {
namespace {

// Whether learners could not be served: anything else that is done for the job may continue.
bool FailedToServe(const Batch& batch, const BatchResult& result) {
  if (result.failed) return ServesLearners(batch.actions[*result.failed]);
  return !result.error;  // the server did not say whether it made a pod, and has not made it
}

bool MakesPods(const Batch& batch) {
  return std::ranges::any_of(batch.actions,
                             [](const Action& each) { return PropertiesOf(each).makes_pod; });
}

}  // namespace

BatchDispatcher::BatchDispatcher(BatchDispatcherParts parts, BatchDispatcherOptions options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      pod_making_calls_(parts_.loop, parts_.pod_making_calls, options_.pod_making_calls) {}

void BatchDispatcher::AddJob(const std::string& job_uid, const kube::NamespacedName& key) {
  jobs_.try_emplace(job_uid, Job{.key = key,
                                 .retry = RetryState(options_.first_conflict_delay),
                                 .serving = RetryState(options_.first_conflict_delay),
                                 .waits = {}});
}

void BatchDispatcher::ForgetJob(const std::string& job_uid) {
  const auto job = jobs_.extract(job_uid);
  if (!job || !job.mapped().waits) return;
  const Wait& wait = *job.mapped().waits;
  parts_.loop.Cancel(wait.timer);
  parts_.table.Settle(*wait.batch, {}, options_.now());
  parts_.queue.Done(job.mapped().key);
}

const kube::NamespacedName* BatchDispatcher::KeyOfJob(const std::string& job_uid) const {
  const auto job = jobs_.find(job_uid);
  return job == jobs_.end() ? nullptr : &job->second.key;
}

BatchDispatcher::Rests BatchDispatcher::RestsOf(const std::string& job_uid, WallTime now) const {
  const auto rests = [now](const RetryState& retry) {
    return now < retry.not_before ? std::optional(retry.not_before) : std::nullopt;
  };
  const Job& job = jobs_.at(job_uid);
  return {.all = rests(job.retry), .serving = rests(job.serving)};
}

void BatchDispatcher::Dispatch(BatchOrder order) {
  parts_.table.Begin(order.batch, options_.now());
  auto batch = order.batch;
  Run({.order = std::move(order), .batch = std::move(batch), .ordered = parts_.loop.Now()});
}

void BatchDispatcher::Run(Try tried) {
  const bool makes_pods = !tried.resolves && MakesPods(*tried.batch);
  const std::string name_space = tried.batch->job.meta.name_space;
  auto call = [this, watch = lifetime_.watch(), tried = std::move(tried), &loop = parts_.loop,
               &runner = parts_.runner] {
    auto result = std::make_shared<const BatchResult>(
        tried.resolves ? runner.ResolveUnknownOutcome(*tried.batch) : runner.Run(*tried.batch));
    loop.Post([this, watch, tried, result] {
      if (!watch.over()) OnDone(tried, *result);
    });
  };
  if (makes_pods) {
    pod_making_calls_.Run(name_space, std::move(call));
  } else {
    parts_.api_calls(std::move(call));
  }
}

void BatchDispatcher::OnDone(const Try& tried, const BatchResult& result) {
  const api::ObjectMeta& job = tried.batch->job.meta;
  const kube::NamespacedName key{job.name_space, job.name};
  const WallTime now = options_.now();
  parts_.table.Settle(*tried.batch, result, now);
  options_.on_result(tried.order, result, parts_.loop.Now() - tried.ordered);
  const auto known = jobs_.find(job.uid);
  if (known == jobs_.end()) {  // the job has gone meanwhile
    parts_.queue.Done(key);
    return;
  }
  RecordResult(*tried.batch, tried.order.reported_before, tried.unanswered_before, result, now,
               parts_.table.SoftState(job.uid));
  Job& of_job = known->second;
  const bool all_done = IsAllDone(result, tried.unanswered_before);
  const bool to_serve = !all_done && FailedToServe(*tried.batch, result);
  RetryState& retry = to_serve ? of_job.serving : of_job.retry;
  const NextStep next = StepAfter(result, tried.unanswered_before, now, retry);
  if (all_done && !tried.batch->held_back) {
    of_job.serving = RetryState(options_.first_conflict_delay);
  }
  if (next.log_error) {
    log::Warning("an action on a job failed",
                 {{"job", kube::ToString(key)}, {"error", result.error->message}});
  }
  using enum NextStep::Kind;
  if (next.kind == kResolve) {
    ResolveUnknownOutcome(tried, result, next.delay, of_job);
    return;
  }
  parts_.queue.Done(key);
  if (next.kind == kLookAgain || (next.kind == kRest && to_serve)) {
    parts_.queue.Add(key);
    LookAgainAt(tried.order.look_again, now, key, parts_.queue);
  } else if (next.kind != kNothing) {
    parts_.queue.AddAfter(key, next.delay);
  }
}

// Until the outcome is known, nothing else is done for the job, and the action counts as done.
void BatchDispatcher::ResolveUnknownOutcome(const Try& tried, const BatchResult& result,
                                            Duration delay, Job& job) {
  auto rest = std::make_shared<Batch>(
      Batch{.job = tried.batch->job, .actions = {tried.batch->actions[*result.failed]}});
  if (result.job) rest->job = *result.job;
  Try again = tried;
  again.batch = rest;
  again.resolves = true;
  again.unanswered_before = tried.unanswered_before || !result.unanswered.empty();
  again.order.look_again.reset();  // it is for a batch that is all done
  const TimerId timer = parts_.loop.PostAfter(
      delay, lifetime_.Guard([this, &waits = job.waits, again = std::move(again)]() mutable {
        waits.reset();
        Run(std::move(again));
      }));
  job.waits = Wait{timer, std::move(rest)};
}

}  // namespace pliant::controller
