#include "operator/controller/lifecycle/conditions.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/utf8.h"

namespace pliant::controller {
namespace {

constexpr std::size_t kMaxConditionMessage = 4096;

}  // namespace

void SetCondition(std::vector<api::Condition>& conditions, std::string_view type, Verdict verdict,
                  std::int64_t generation, api::WallTime now) {
  const auto place = std::ranges::lower_bound(conditions, type, {}, &api::Condition::type);
  const bool known = place != conditions.end() && place->type == type;
  api::Condition& condition =
      known ? *place : *conditions.insert(place, {.type = std::string(type)});
  if (!known || condition.status != verdict.status) {
    // API times are whole seconds: a fraction would not read back as written.
    condition.last_transition = std::chrono::floor<std::chrono::seconds>(now);
  }
  condition.status = verdict.status;
  condition.reason = std::move(verdict.reason);
  condition.message = CutAtCharacter(verdict.message, kMaxConditionMessage);
  condition.observed_generation = generation;
}

const api::Condition* FindNews(const std::vector<api::Condition>& before,
                               const std::vector<api::Condition>& after, std::string_view type) {
  const auto now = std::ranges::find(after, type, &api::Condition::type);
  if (now == after.end()) return nullptr;
  const auto then = std::ranges::find(before, type, &api::Condition::type);
  const bool same =
      then != before.end() && then->status == now->status && then->reason == now->reason;
  return same ? nullptr : &*now;
}

void SetReason(api::JobStatus& status, std::string_view sentence) {
  status.reason = CutAtCharacter(sentence, api::kMaxReasonBytes);
}

bool IsTrue(const api::JobStatus& status, std::string_view type) {
  const api::Condition* condition = api::FindCondition(status, type);
  return condition != nullptr && condition->status == api::ConditionStatus::kTrue;
}

}  // namespace pliant::controller
