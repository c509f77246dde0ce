#include "operator/controller/model/learner_ending.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/format.h"
#include "base/json.h"
#include "base/utf8.h"
#include "operator/api/fields.h"
#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

constexpr std::size_t kMaxTerminationMessage = 512;

struct ExitReport {
  std::string reason;
  std::string message;
  std::optional<std::int64_t> step;
  std::string parameters_sha256;
};

std::string LastLine(std::string_view text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return "";
  text = text.substr(0, end + 1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

// Reads what the program wrote before it exited, or logged last before it crashed. A program that
// is not ours may write anything.
ExitReport ReadExitReport(const std::string& text) {
  const std::string line = LastLine(text);
  const auto object = ParseJson(line);
  if (!object.is_object()) return {.message = CutAtCharacter(line, kMaxTerminationMessage)};
  api::Fields fields(object);
  return {.reason = fields.String("reason"),
          .message = fields.Sentence("message", kMaxTerminationMessage),
          .step = fields.OptionalInt("step", 0, INT64_MAX),
          .parameters_sha256 = fields.String("parametersSha256", "", 64)};
}

bool IsDisruption(const api::Pod& pod) {
  const api::PodCondition* target = api::FindCondition(pod, "DisruptionTarget");
  return pod.deleting() || (target != nullptr && target->status);
}

std::string WordsFor(int exit_code) {
  return exit_code == 0 ? "its program ended before the training was complete"
                        : "it left no message";
}

// For a learner that never ran: describes the container that failed before it, usually an init
// container.
std::string WordsOfOthers(const api::Pod& pod) {
  for (const api::ContainerStatus& container : pod.containers) {
    if (!container.terminated || container.terminated->exit_code == 0) continue;
    const api::Termination& ended = *container.terminated;
    const std::string words = CutAtCharacter(LastLine(ended.message), kMaxTerminationMessage);
    return Format("container {} exited with {}: {}", container.name,
                  DescribeExitCode(ended.exit_code),
                  words.empty() ? WordsFor(ended.exit_code) : words);
  }
  return "it ended before its program started";
}

}  // namespace

std::string DescribeExitCode(int exit_code) {
  const char* signal = exit_code > 128 ? sigabbrev_np(exit_code - 128) : nullptr;
  return signal == nullptr ? Format("code {}", exit_code)
                           : Format("code {} (SIG{})", exit_code, signal);
}

std::optional<LearnerEnding> EndingOf(const api::Pod& pod) {
  if (!pod.ended()) return std::nullopt;
  LearnerEnding ending;
  const api::ContainerStatus* container = api::FindContainer(pod, kLearnerContainer);
  const bool ran = container != nullptr && container->terminated.has_value();
  ExitReport words;
  if (ran) {
    words = ReadExitReport(container->terminated->message);
    ending.exit_code = container->terminated->exit_code;
    ending.finished = container->terminated->finished;
    ending.step = words.step;
    ending.parameters_sha256 = words.parameters_sha256;
  }
  ending.message =
      !words.message.empty() ? words.message : CutAtCharacter(pod.message, kMaxTerminationMessage);

  const bool out_of_memory = ran && container->terminated->reason == "OOMKilled";
  if (out_of_memory) {
    ending.message =
        "it needed more memory than its limit (OOMKilled): raise resources.limits.memory";
  }

  const bool succeeded = pod.phase == api::PodPhase::kSucceeded && ran && ending.exit_code == 0;
  if (succeeded && words.reason == "Completed") {
    ending.end = LearnerEnd::kCompleted;
  } else if (succeeded && words.reason == "Drained") {
    ending.end = LearnerEnd::kDrained;
  } else if (IsDisruption(pod)) {
    ending.end = LearnerEnd::kDisrupted;
  } else if (ran && container->terminated->reason == "ContainerStatusUnknown") {
    // The kubelet restarted, and the container was gone: how it ended is unknown.
    ending.end = LearnerEnd::kNodeFault;
    ending.message = "its node restarted, or lost it";
  } else if (ran && ending.exit_code != 0 && words.reason == "GpuFault") {
    // A false report only keeps the program's own job off a node for a while.
    ending.end = LearnerEnd::kNodeFault;
    ending.message = Format("its GPU is broken: {}", ending.message);
  } else if (!ran && !pod.reason.empty()) {  // "UnexpectedAdmissionError", "OutOfcpu", "NodeLost"
    ending.end = LearnerEnd::kNodeFault;
    if (ending.message.empty()) ending.message = pod.reason;
  } else {
    ending.end = LearnerEnd::kFailed;
    if (ending.message.empty()) {
      ending.message = ran ? WordsFor(*ending.exit_code) : WordsOfOthers(pod);
    }
  }
  return ending;
}

}  // namespace pliant::controller
