#pragma once

#include <string>
#include <string_view>

#include "operator/api/elastic_training_job.h"

namespace pliant::controller {

// Conditions of a job, and what their reasons may be.
inline constexpr std::string_view kConditionReadable = "Readable";        // once it was not
inline constexpr std::string_view kConditionQuarantined = "Quarantined";  // once it was
inline constexpr std::string_view kConditionLimited = "Limited";          // once it was
inline constexpr std::string_view kConditionAdmitted = "Admitted";
inline constexpr std::string_view kConditionRunning = "Running";
inline constexpr std::string_view kConditionProgressing = "Progressing";
inline constexpr std::string_view kConditionCheckpointsWritten = "CheckpointsWritten";
inline constexpr std::string_view kConditionComplete = "Complete";
inline constexpr std::string_view kConditionFailed = "Failed";

struct Verdict {
  api::ConditionStatus status = api::ConditionStatus::kUnknown;
  std::string reason;   // CamelCase
  std::string message;  // says the same as long as the facts are the same
};

// Sets a condition, keeping the list sorted by type. Its time changes only when its status does;
// nothing changes when the verdict is what it was.
void SetCondition(api::JobStatus& status, std::string_view type, Verdict verdict,
                  std::int64_t generation, api::WallTime now);

// Why the job has the size that it has. As in a condition, a text that comes from elsewhere is cut,
// and reads back as it was written: otherwise it would be news for ever.
void SetReason(api::JobStatus& status, std::string_view sentence);

bool IsTrue(const api::JobStatus& status, std::string_view type);

}  // namespace pliant::controller
