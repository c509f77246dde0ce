#include "operator/controller/model/progress.h"

#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/significant.h"
#include "base/utf8.h"
#include "operator/api/fields.h"
#include "operator/api/finite_number.h"

namespace pliant::controller {
namespace {

using api::Fields;
using api::FiniteNumber;

constexpr std::size_t kMaxLearners = 4096;  // four times what a job may have
constexpr std::size_t kMaxReportedMessage = 1024;
constexpr std::size_t kMaxPlanReason = 1024;               // a coordinator refuses more
constexpr std::int64_t kMaxStamp = std::int64_t{1} << 53;  // plans are numbered from there on

std::optional<CoordinatorState> StateOf(std::string_view text) {
  using enum CoordinatorState;
  constexpr std::pair<std::string_view, CoordinatorState> kStates[] = {
      {"Waiting", kWaiting},       {"Running", kRunning}, {"Resizing", kResizing},
      {"Recovering", kRecovering}, {"Drained", kDrained}, {"Completed", kCompleted}};
  for (const auto& [name, state] : kStates) {
    if (name == text) return state;
  }
  return std::nullopt;
}

// Returns one of a fixed set: the reason comes from a learner, and becomes that of a condition.
std::string WriteProblem(std::string_view reason) {
  for (const std::string_view known : {"VolumeFull", "VolumeReadOnly"}) {
    if (reason == known) return std::string(known);
  }
  return "WriteFailed";
}

// Returns one of a fixed set, too: the reason comes from a coordinator, which runs in its owner's
// namespace.
std::string ProblemReason(std::string_view reason) {
  if (reason.empty()) return "";
  for (const std::string_view known : {"Fingerprint", "GpusUnusable", "Protocol"}) {
    if (reason == known) return std::string(known);
  }
  return "LearnerFailed";
}

int CountOf(Fields& fields, const char* name) { return fields.Int(name, 0, 0, 1 << 20); }

void ReadLists(Fields& root, Progress& progress) {
  root.Objects("learners", kMaxLearners, [&](Fields& learner) {
    progress.learners.push_back({.name = learner.String("name", "", 253),
                                 .pod_uid = learner.String("podUid", "", 128),
                                 .state = learner.String("state", "", 64)});
  });
  root.Objects("resizes", 1024, [&](Fields& resize) {
    ReportedResize read{.membership = ParseMembershipId(resize.String("membership")),
                        .from = CountOf(resize, "from"),
                        .to = CountOf(resize, "to")};
    const std::optional<double> pause = FiniteNumber(resize, "longestPauseSeconds");
    const bool is_planned = resize.String("kind", "", 16) == "Planned";
    if (is_planned && pause && *pause >= 0 && *pause <= ReportedResize::kMaxPauseSeconds)
      read.pause_seconds = pause;
    progress.resizes.push_back(read);
  });
}

void ReadSpeed(Fields& root, Progress& progress) {
  root.Object("speed", [&](Fields& fields) {
    const ReportedSpeed speed{
        .samples_per_second = FiniteNumber(fields, "samplesPerSecond").value_or(0),
        .compute_seconds = FiniteNumber(fields, "computeSeconds").value_or(0),
        .seconds = FiniteNumber(fields, "seconds").value_or(0)};
    // It comes from a program, which may report anything.
    if (speed.samples_per_second > 0 && speed.compute_seconds > 0) progress.speed = speed;
  });
}

void ReadStats(Fields& root, Progress& progress) {
  progress.step = root.OptionalInt("step", 0, INT64_MAX);
  progress.epoch = root.OptionalInt("epoch", 0, INT64_MAX);
  progress.total_steps = root.OptionalInt("totalSteps", 0, INT64_MAX);
  progress.batch_size = root.OptionalInt("batchSize", 1, INT64_MAX);
  progress.loss = FiniteNumber(root, "loss");
  if (const auto speed = FiniteNumber(root, "samplesPerSecond"))
    progress.samples_per_second = WithDigits(*speed, 4);
  progress.accuracy = FiniteNumber(root, "accuracy");
  progress.evaluations = api::ReadEvaluations(root);
  if (const int asked = root.Int("learnersAsked", 0, 0, 1 << 20); asked > 0) {
    progress.learners_asked = asked;
  }
  progress.parameters_sha256 = root.String("parametersSha256", "", 64);
  root.Object("lastCheckpoint", [&](Fields& checkpoint) {
    ReportedCheckpoint& reported = progress.last_checkpoint.emplace();
    reported.error = checkpoint.Sentence("error", kMaxReportedMessage);
    if (!reported.error.empty()) reported.reason = WriteProblem(checkpoint.String("reason"));
    const auto step = checkpoint.OptionalInt("step", 0, INT64_MAX);
    const double time = FiniteNumber(checkpoint, "unixSeconds").value_or(0);
    if (!step || time <= 0) return;  // no attempt has succeeded yet
    reported.saved = api::SavedCheckpoint{
        .step = *step,
        .time = std::chrono::floor<std::chrono::seconds>(api::FromUnixSeconds(time))};
  });
}

}  // namespace

std::string_view ToString(DesiredLearnerState wish) {
  switch (wish) {
    case DesiredLearnerState::kWanted:
      return "Wanted";
    case DesiredLearnerState::kLeaving:
      return "Leaving";
    case DesiredLearnerState::kEnded:
      return "Ended";
  }
  return "";
}

MembershipId ParseMembershipId(std::string_view text) {
  MembershipId id;
  const char* end = text.data() + text.size();
  const auto term = std::from_chars(text.data(), end, id.term);
  if (term.ec != std::errc{} || term.ptr == end || *term.ptr != '.') return {};
  const auto counter = std::from_chars(term.ptr + 1, end, id.counter);
  if (counter.ec != std::errc{} || counter.ptr != end) return {};
  return id;
}

Result<Progress> DecodeProgress(std::string_view body) {
  const auto object = ParseJson(body);
  if (object.is_discarded()) return Invalid("progress: not JSON");
  Fields root(object, "progress");
  Progress progress;
  progress.term = root.Long("term", 0, 0, INT64_MAX);
  if (const auto state = StateOf(root.String("state"))) {
    progress.state = *state;
  } else {
    root.Wrong("state", "not a known state");
  }
  root.Object("membership", [&](Fields& membership) {
    progress.membership_id = membership.String("id", "", 64);
    progress.members = membership.StringList("learners", kMaxLearners);
  });
  root.Object("planAccepted", [&](Fields& accepted) {
    progress.plan_accepted =
        PlanStamp{.lease_transitions = accepted.Long("leaseTransitions", 0, 0, kMaxStamp),
                  .sequence = accepted.Long("sequence", 0, 0, kMaxStamp)};
  });
  ReadStats(root, progress);
  ReadSpeed(root, progress);
  ReadLists(root, progress);
  root.Object("problem", [&](Fields& problem) {
    progress.problem_reason = ProblemReason(problem.String("reason"));
    progress.problem_message = problem.Sentence("message", kMaxReportedMessage);
  });
  if (root.error()) return std::unexpected(*root.error());
  return progress;
}

std::string EncodePlan(const CoordinatorPlan& plan) {
  nlohmann::json learners = nlohmann::json::array();
  for (const PlannedLearner& learner : plan.learners) {
    learners.push_back(
        {{"name", learner.name}, {"podUid", learner.pod_uid}, {"state", ToString(learner.state)}});
  }
  return nlohmann::json{{"leaseTransitions", plan.stamp.lease_transitions},
                        {"sequence", plan.stamp.sequence},
                        {"reason", CutAtCharacter(plan.reason, kMaxPlanReason)},
                        {"learners", std::move(learners)}}
      .dump();
}

}  // namespace pliant::controller
