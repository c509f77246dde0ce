#include "operator/controller/model/mount_cause.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "operator/api/fields.h"

namespace pliant::controller {
namespace {

constexpr std::size_t kMaxText = 1024;
constexpr std::array<std::string_view, 4> kReasons = {"FailedMount", "FailedAttachVolume",
                                                      "FailedCreatePodSandBox", "NetworkNotReady"};
// The kubelet's summary, which only names the volumes. It follows the event that says why.
constexpr std::string_view kSummary = "Unable to attach or mount volumes";

struct Cause {
  std::string text;
  api::WallTime last;

  auto Rank() const { return std::tuple(!text.starts_with(kSummary), last); }
};

std::optional<Cause> Decode(const nlohmann::json& object) {
  api::Fields event(object);
  if (!std::ranges::contains(kReasons, event.String("reason"))) return std::nullopt;
  Cause cause{.text = event.Sentence("note", kMaxText)};
  // The kubelet writes events of the older API: a repetition updates count and time of the same
  // event.
  cause.last = event.OptionalTime("deprecatedLastTimestamp")
                   .value_or(event.OptionalTime("eventTime").value_or(api::WallTime{}));
  return cause;
}

}  // namespace

void ForgetMounted(const LearnerClocks& clocks, MountCauses& causes) {
  std::erase_if(causes,
                [&](const auto& entry) { return !clocks.starting_since.contains(entry.first); });
}

void OnMountCause(const std::string& pod, std::string text, api::WallTime now,
                  MountCauses& causes) {
  causes[pod] = {.text = std::move(text), .asked = now};
}

std::string MountCauseIn(const std::vector<nlohmann::json>& events) {
  Cause best;
  for (const nlohmann::json& event : events) {
    auto cause = Decode(event);
    if (cause && (best.text.empty() || cause->Rank() > best.Rank())) best = *std::move(cause);
  }
  return best.text;
}

}  // namespace pliant::controller
