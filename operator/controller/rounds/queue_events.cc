#include "operator/controller/rounds/queue_events.h"

#include <string_view>

#include "base/format.h"
#include "operator/controller/lifecycle/conditions.h"
#include "operator/controller/rounds/queue_status.h"

namespace pliant::controller {
namespace {

// How a condition becomes an event.
struct Telling {
  std::string_view type;
  api::ConditionStatus good = api::ConditionStatus::kTrue;
  // Reason of the event while the condition is not good; "": the condition's own.
  std::string_view bad_reason;
  // Reason of the event once it is good again.
  std::string_view good_reason;
};

constexpr Telling kOfQueues[] = {
    {.type = kConditionActive, .bad_reason = "", .good_reason = "Active"},
    {.type = kConditionGuaranteeMet, .bad_reason = "GuaranteeUnmet", .good_reason = "GuaranteeMet"},
};
constexpr Telling kOfPools[] = {
    {.type = kConditionReady, .bad_reason = "", .good_reason = "Ready"},
    {.type = kConditionOverlapping,
     .good = api::ConditionStatus::kFalse,
     .bad_reason = "Overlapping",
     .good_reason = "Disjoint"},
};

// The owner stopped the queue: that is no problem.
bool IsWanted(const api::Condition& condition) {
  return condition.reason == "Held" || condition.reason == "Drained";
}

template <std::size_t kCount>
std::vector<ObjectEvent> EventsFrom(const std::vector<api::Condition>& before,
                                    const std::vector<api::Condition>& after,
                                    const Telling (&tellings)[kCount]) {
  std::vector<ObjectEvent> events;
  for (const Telling& telling : tellings) {
    const api::Condition* news = FindNews(before, after, telling.type);
    if (news == nullptr) continue;
    const bool is_known = std::ranges::contains(before, telling.type, &api::Condition::type);
    const bool is_good = news->status == telling.good;
    if (is_good && !is_known) continue;  // a new object begins well
    const std::string_view reason = is_good                      ? telling.good_reason
                                    : telling.bad_reason.empty() ? news->reason
                                                                 : telling.bad_reason;
    events.push_back({.warning = !is_good && !IsWanted(*news),
                      .reason = std::string(reason),
                      .note = news->message});
  }
  return events;
}

}  // namespace

std::vector<ObjectEvent> EventsOf(const api::TrainingQueueStatus& before,
                                  const api::TrainingQueueStatus& after) {
  return EventsFrom(before.conditions, after.conditions, kOfQueues);
}

std::vector<ObjectEvent> EventsOf(const api::GpuPoolStatus& before,
                                  const api::GpuPoolStatus& after) {
  return EventsFrom(before.conditions, after.conditions, kOfPools);
}

ObjectEvent EventOf(const Reclaimed& reclaimed, bool is_loser) {
  return {
      .warning = is_loser,
      .reason = "Reclaimed",
      .note = Format("queue {} took {} back from job {} of queue {}: {}", reclaimed.by,
                     Counted(reclaimed.gpus, "GPU"), reclaimed.job, reclaimed.from, reclaimed.why)};
}

}  // namespace pliant::controller
