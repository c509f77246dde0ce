#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/api/elastic_training_job.h"

namespace pliant::controller {

// The types of a job's conditions. Readable appears once it was false, Quarantined and Limited once
// they were true.
inline constexpr std::string_view kConditionReadable = "Readable";
inline constexpr std::string_view kConditionQuarantined = "Quarantined";
inline constexpr std::string_view kConditionLimited = "Limited";
inline constexpr std::string_view kConditionAdmitted = "Admitted";
inline constexpr std::string_view kConditionHasPlace = "HasPlace";
inline constexpr std::string_view kConditionRunning = "Running";
inline constexpr std::string_view kConditionProgressing = "Progressing";
inline constexpr std::string_view kConditionCheckpointsWritten = "CheckpointsWritten";
inline constexpr std::string_view kConditionComplete = "Complete";
inline constexpr std::string_view kConditionFailed = "Failed";

struct Verdict {
  api::ConditionStatus status = api::ConditionStatus::kUnknown;
  std::string reason;   // CamelCase
  std::string message;  // the same as long as the facts are
};

// Sets one of `conditions`, keeping the list sorted by type. Its transition time changes only with
// its status; nothing changes if the verdict is the same.
void SetCondition(std::vector<api::Condition>& conditions, std::string_view type, Verdict verdict,
                  std::int64_t generation, api::WallTime now);
inline void SetCondition(api::JobStatus& status, std::string_view type, Verdict verdict,
                         std::int64_t generation, api::WallTime now) {
  SetCondition(status.conditions, type, std::move(verdict), generation, now);
}

// The condition, if its status or reason is another than before; else null. Points into `after`.
const api::Condition* FindNews(const std::vector<api::Condition>& before,
                               const std::vector<api::Condition>& after, std::string_view type);

// Sets why the job has its size. As in a condition, a text that comes from elsewhere is cut, so
// that it reads back as it was written: otherwise it would be news forever.
void SetReason(api::JobStatus& status, std::string_view sentence);

bool IsTrue(const api::JobStatus& status, std::string_view type);

}  // namespace pliant::controller
