#include "operator/controller/rounds/queue_reporter.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "base/earliest.h"
#include "base/log.h"
#include "operator/controller/rounds/queue_events.h"

namespace pliant::controller {
namespace {

// Whether anything but texts and times differs: that is what administrators and programs wait for.
bool SameConditions(const std::vector<api::Condition>& a, const std::vector<api::Condition>& b) {
  return std::ranges::equal(a, b, [](const api::Condition& left, const api::Condition& right) {
    return std::tie(left.type, left.status, left.reason) ==
           std::tie(right.type, right.status, right.reason);
  });
}

bool IsNews(const api::TrainingQueueStatus& before, const api::TrainingQueueStatus& after) {
  return before.observed_generation != after.observed_generation ||
         before.entitled != after.entitled || !SameConditions(before.conditions, after.conditions);
}

bool IsNews(const api::GpuPoolStatus& before, const api::GpuPoolStatus& after) {
  return before.observed_generation != after.observed_generation ||
         before.capacity_gpus != after.capacity_gpus ||
         (before.requested_gpus > 0) != (after.requested_gpus > 0) ||
         before.yielded_gpus != after.yielded_gpus ||
         !SameConditions(before.conditions, after.conditions);
}

template <typename Objects, typename Written>
void ForgetGone(const Objects& objects, Written& written) {
  std::erase_if(written, [&](const auto& item) { return !objects.contains(item.first); });
}

}  // namespace

template <typename T, typename Status>
std::optional<api::WallTime> QueueReporter::ReportOn(const kube::ResourceType& type,
                                                     const T& object, const Status& status,
                                                     bool is_news,
                                                     std::map<std::string, Written>& written,
                                                     api::WallTime now) {
  const std::string& name = object.meta.name;
  Written& last = written[name];
  if (last.uid != object.meta.uid) last = {.uid = object.meta.uid};
  if (last.is_under_way || status == object.status) return std::nullopt;
  const std::chrono::seconds pace = is_news && !last.failed ? pace_.news : pace_.numbers;
  if (last.at && now < *last.at + pace) return *last.at + pace;
  last.at = now;
  last.is_under_way = true;
  parts_.api_calls([this, alive = std::weak_ptr(alive_), &loop = parts_.loop,
                    &writer = parts_.writer, &type, meta = object.meta, status, &written,
                    events = EventsOf(object.status, status)] {
    const kube::KubeStatus done = writer.Write(meta, status);
    loop.Post([this, alive, &type, meta, done, events, &written] {
      if (alive.expired()) return;
      if (done) {
        for (const ObjectEvent& event : events) parts_.on_event(type, meta, event);
      }
      const auto found = written.find(meta.name);
      if (found == written.end() || found->second.uid != meta.uid) return;
      Written& its = found->second;
      its.is_under_way = false;
      const bool is_new_failure = !done && !std::exchange(its.failed, !done);
      if (done) its.failed = false;
      if (is_new_failure && done.error().code != ErrorCode::kNotFound) {
        log::Warning("cannot write the status of a queue or pool; retrying",
                     {{"name", meta.name}, {"error", done.error().message}});
      }
      parts_.request_round();
    });
  });
  return std::nullopt;
}

std::optional<api::WallTime> QueueReporter::Report(const PlannedCluster& cluster,
                                                   api::WallTime now) {
  ForgetGone(parts_.book.queues(), queues_);
  ForgetGone(parts_.book.pools(), pools_);
  std::optional<api::WallTime> again_at;
  for (const auto& [name, queue] : parts_.book.queues()) {
    const api::TrainingQueueStatus status = StatusOf(*queue, cluster, now);
    KeepEarliest(
        ReportOn(kTrainingQueues, *queue, status, IsNews(queue->status, status), queues_, now),
        again_at);
  }
  for (const auto& [name, pool] : parts_.book.pools()) {
    const api::GpuPoolStatus status = StatusOf(*pool, parts_.book, cluster, now);
    KeepEarliest(ReportOn(kGpuPools, *pool, status, IsNews(pool->status, status), pools_, now),
                 again_at);
  }
  return again_at;
}

}  // namespace pliant::controller
