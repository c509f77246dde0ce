#include "trainer/membership/plan.h"

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "trainer/membership/evaluation_json.h"
#include "trainer/membership/json_fields.h"

namespace pliant {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxLearners = 16384;

constexpr std::array<std::pair<WantedState, std::string_view>, 3> kWantedStates = {{
    {WantedState::kWanted, "Wanted"},
    {WantedState::kLeaving, "Leaving"},
    {WantedState::kEnded, "Ended"},
}};

WantedState ReadWantedState(JsonFields& fields) {
  const std::string text = fields.String("state", 32);
  for (const auto& [state, name] : kWantedStates) {
    if (text == name) return state;
  }
  fields.Wrong("state", "must be Wanted, Leaving or Ended");
  return WantedState::kWanted;
}

void PutStats(Json& json, const Progress::Stats& stats) {
  json["epoch"] = stats.epoch;
  json["totalSteps"] = stats.total_steps;
  json["samples"] = stats.samples;
  PutNumber(json, "loss", stats.loss);
  PutNumber(json, "samplesPerSecond", stats.samples_per_second);
  if (!stats.evaluations.empty()) {
    PutNumber(json, "accuracy", stats.evaluations.back().accuracy);
    json["evaluations"] = Encoded(stats.evaluations);
  }
  PutNumber(json, "noiseScale", stats.noise_scale);
  json["batchSize"] = stats.batch_size;
  if (stats.learners_asked) json["learnersAsked"] = *stats.learners_asked;
  if (const auto& checkpoint = stats.last_checkpoint) {
    json["lastCheckpoint"] = {{"step", checkpoint->step},
                              {"membership", ToString(checkpoint->membership)},
                              {"unixSeconds", checkpoint->unix_seconds},
                              {"error", checkpoint->error},
                              {"reason", checkpoint->reason}};
  }
}

Json ToJson(const Resize& resize) {
  Json json = {{"membership", ToString(resize.membership)},
               {"kind", resize.kind == Resize::Kind::kPlanned ? "Planned" : "Recovery"},
               {"reason", resize.reason},
               {"from", resize.from},
               {"to", resize.to},
               {"requestedUnixSeconds", resize.requested_unix_seconds},
               {"stepsLost", resize.steps_lost},
               {"step", resize.step}};
  PutNumber(json, "runningUnixSeconds", resize.running_unix_seconds);
  PutNumber(json, "longestPauseSeconds", resize.longest_pause_seconds);
  return json;
}

}  // namespace

std::string_view ToString(JobState state) {
  switch (state) {
    case JobState::kWaiting:
      return "Waiting";
    case JobState::kRunning:
      return "Running";
    case JobState::kResizing:
      return "Resizing";
    case JobState::kRecovering:
      return "Recovering";
    case JobState::kDrained:
      return "Drained";
    case JobState::kCompleted:
      return "Completed";
  }
  return "Waiting";
}

std::string_view ToString(LearnerState state) {
  switch (state) {
    case LearnerState::kReady:
      return "Ready";
    case LearnerState::kPreparing:
      return "Preparing";
    case LearnerState::kMember:
      return "Member";
    case LearnerState::kLeaving:
      return "Leaving";
    case LearnerState::kRefused:
      return "Refused";
  }
  return "Ready";
}

Result<Plan> DecodePlan(std::string_view json) {
  return ReadJson<Plan>(json, kMaxPlanBytes, [](JsonFields& fields) {
    Plan plan{.version = {.lease_transitions = fields.Unsigned("leaseTransitions"),
                          .sequence = fields.Unsigned("sequence")}};
    std::set<std::pair<std::string, std::string>> seen;
    fields.Objects("learners", kMaxLearners, [&](JsonFields& item) {
      PlannedLearner learner{.name = item.String("name", 253),
                             .pod_uid = item.String("podUid", 253),
                             .state = ReadWantedState(item)};
      if (learner.name.empty()) item.Wrong("name", "must not be empty");
      if (!seen.emplace(learner.name, learner.pod_uid).second) {
        item.Wrong("name", "is listed twice with this podUid");
      }
      plan.learners.push_back(std::move(learner));
    });
    // An operator that does not know the field sends none.
    if (fields.Has("reason")) plan.reason = fields.String("reason", kMaxReasonBytes);
    return plan;
  });
}

std::string Encode(const JobProgress& progress) {
  Json json = {
      {"term", progress.term},
      {"membership", nullptr},
      {"state", ToString(progress.state)},
      {"planAccepted", nullptr},
      {"learners", Json::array()},
      {"resizes", Json::array()},
      {"problem", {{"reason", progress.problem.reason}, {"message", progress.problem.message}}},
      {"parametersSha256", progress.parameters_sha256}};
  if (const auto& membership = progress.membership) {
    Json names = Json::array();
    for (const Member& member : membership->members) {
      if (names.empty() || names.back() != member.id.name) names.push_back(member.id.name);
    }
    json["membership"] = {{"id", ToString(membership->id)}, {"learners", std::move(names)}};
  }
  if (const auto& version = progress.plan_accepted) {
    json["planAccepted"] = {{"leaseTransitions", version->lease_transitions},
                            {"sequence", version->sequence}};
  }
  if (progress.tick) json["tick"] = *progress.tick;
  if (progress.step) json["step"] = *progress.step;
  if (progress.stats) PutStats(json, *progress.stats);
  for (const LearnerProgress& learner : progress.learners) {
    Json item = {{"name", learner.id.name},
                 {"podUid", learner.id.pod_uid},
                 {"state", ToString(learner.state)},
                 {"step", learner.step}};
    if (const auto& times = learner.times) {
      item["times"] = {
          {"shardSeconds", times->shard_seconds},        {"computeSeconds", times->compute_seconds},
          {"dataWaitSeconds", times->data_wait_seconds}, {"waitSeconds", times->wait_seconds},
          {"commitSeconds", times->commit_seconds},      {"sentBytes", times->sent_bytes},
          {"receivedBytes", times->received_bytes}};
    }
    json["learners"].push_back(std::move(item));
  }
  if (progress.slowest && progress.slowest->slowdown >= kStragglerSlowdown) {
    json["straggler"] = {{"name", progress.slowest->id.name},
                         {"podUid", progress.slowest->id.pod_uid},
                         {"slowdown", progress.slowest->slowdown}};
    const int rank = progress.slowest->id.local_rank;
    if (rank != 0) json["straggler"]["localRank"] = rank;
  }
  for (const Resize& resize : progress.resizes) json["resizes"].push_back(ToJson(resize));
  if (const auto& speed = progress.speed) {
    json["speed"] = {{"samplesPerSecond", speed->samples_per_second},
                     {"computeSeconds", speed->compute_seconds},
                     {"seconds", speed->seconds}};
  }
  return WriteJson(json);
}

}  // namespace pliant
