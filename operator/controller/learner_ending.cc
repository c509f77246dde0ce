#include "operator/controller/learner_ending.h"

#include <nlohmann/json.hpp>

#include "operator/api/fields.h"
#include "operator/controller/names.h"

namespace pliant::controller {
namespace {

constexpr std::size_t kMessageMax = 512;

struct LastWords {
  std::string reason;
  std::string message;
  std::optional<std::int64_t> step;
  std::string parameters_sha256;
};

// What the program wrote before it exited. A program that is not ours may write anything.
LastWords ReadLastWords(const std::string& text) {
  const auto object = nlohmann::json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return {.message = text.substr(0, kMessageMax)};
  api::Fields fields(object);
  return {.reason = fields.String("reason"),
          .message = fields.String("message").substr(0, kMessageMax),
          .step = fields.OptionalInt("step", 0, INT64_MAX),
          .parameters_sha256 = fields.String("parametersSha256", "", 64)};
}

bool IsDisruption(const api::Pod& pod) {
  const api::PodCondition* target = api::FindCondition(pod, "DisruptionTarget");
  return pod.deleting() || (target != nullptr && target->status);
}

}  // namespace

std::optional<LearnerEnding> EndingOf(const api::Pod& pod) {
  if (!pod.ended()) return std::nullopt;
  LearnerEnding ending;
  const api::ContainerStatus* container = api::FindContainer(pod, kLearnerContainer);
  const bool ran = container != nullptr && container->terminated.has_value();
  LastWords words;
  if (ran) {
    words = ReadLastWords(container->terminated->message);
    ending.exit_code = container->terminated->exit_code;
    ending.finished = container->terminated->finished;
    ending.step = words.step;
    ending.parameters_sha256 = words.parameters_sha256;
  }
  ending.message = !words.message.empty() ? words.message : pod.message.substr(0, kMessageMax);

  const bool succeeded = pod.phase == api::PodPhase::kSucceeded && ran && ending.exit_code == 0;
  if (succeeded && words.reason == "Completed") {
    ending.end = LearnerEnd::kCompleted;
  } else if (succeeded && words.reason == "Drained") {
    ending.end = LearnerEnd::kDrained;
  } else if (IsDisruption(pod)) {
    ending.end = LearnerEnd::kDisrupted;
  } else if (!ran && !pod.reason.empty()) {  // "UnexpectedAdmissionError", "OutOfcpu", "NodeLost"
    ending.end = LearnerEnd::kNodeFault;
    if (ending.message.empty()) ending.message = pod.reason;
  } else {
    ending.end = LearnerEnd::kFailed;
    if (ending.message.empty()) {
      ending.message =
          ending.exit_code == 0 ? "it ended without having been told to" : "it left no message";
    }
  }
  return ending;
}

}  // namespace pliant::controller
