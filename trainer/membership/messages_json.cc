#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/utf8.h"
#include "trainer/membership/evaluation_json.h"
#include "trainer/membership/json_fields.h"
#include "trainer/membership/messages.h"

namespace pliant {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxNameBytes = 253;  // limit of Kubernetes
constexpr std::size_t kMaxMembers = 4096;
constexpr std::size_t kMaxFingerprint = 64;

// ---- Values that several messages hold ----

// Text for people may be an exception's, of any length. It is cut: otherwise the receiver would
// reject it with the rest of the message.
std::string Words(std::string_view text) { return CutAtCharacter(text, kMaxTextBytes); }

Json ToJson(const LearnerId& id) {
  Json json = {{"name", id.name}, {"podUid", id.pod_uid}, {"nonce", Format("{:x}", id.nonce)}};
  if (id.local_rank != 0) json["localRank"] = id.local_rank;
  return json;
}

LearnerId ReadLearnerId(JsonFields& fields) {
  LearnerId id{.name = fields.String("name", kMaxNameBytes),
               .pod_uid = fields.String("podUid", kMaxNameBytes)};
  const std::string nonce = fields.String("nonce", 16);
  const char* const end = nonce.data() + nonce.size();
  const auto parsed = std::from_chars(nonce.data(), end, id.nonce, 16);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    fields.Wrong("nonce", "must be hexadecimal, of up to 16 digits");
  }
  if (id.name.empty()) fields.Wrong("name", "must not be empty");
  if (fields.Has("localRank")) {
    const std::uint64_t rank = fields.Unsigned("localRank");
    if (rank >= kMaxRanksPerLearner) fields.Wrong("localRank", "must be less than 16");
    id.local_rank = static_cast<int>(std::min<std::uint64_t>(rank, kMaxRanksPerLearner - 1));
  }
  return id;
}

LearnerId ReadLearnerId(JsonFields& fields, std::string_view name) {
  LearnerId id;
  fields.Object(name, [&](JsonFields& inner) { id = ReadLearnerId(inner); });
  return id;
}

MembershipId ReadMembershipId(JsonFields& fields, std::string_view name) {
  const std::string text = fields.String(name, 64);
  const Result<MembershipId> id = ParseMembershipId(text);
  if (!id) fields.Wrong(name, "must be \"term.counter\"");
  return id.value_or(MembershipId{});
}

std::optional<MembershipId> ReadOptionalId(JsonFields& fields, std::string_view name) {
  if (!fields.Has(name)) return std::nullopt;
  return ReadMembershipId(fields, name);
}

Json ToJson(const std::optional<MembershipId>& id) { return id ? Json(ToString(*id)) : Json(); }

Json ToJson(const Membership& membership) {
  Json members = Json::array();
  for (const Member& member : membership.members) {
    members.push_back({{"learner", ToJson(member.id)}, {"address", member.address}});
  }
  return {{"id", ToString(membership.id)}, {"members", std::move(members)}};
}

Membership ReadMembership(JsonFields& fields) {
  Membership membership{.id = ReadMembershipId(fields, "id")};
  fields.Objects("members", kMaxMembers, [&](JsonFields& item) {
    Member member{.id = ReadLearnerId(item, "learner"), .address = item.String("address", 256)};
    if (membership.RankOf(member.id)) item.Wrong("learner", "is listed twice");
    membership.members.push_back(std::move(member));
  });
  return membership;
}

Membership ReadMembership(JsonFields& fields, std::string_view name) {
  Membership membership;
  fields.Object(name, [&](JsonFields& inner) { membership = ReadMembership(inner); });
  return membership;
}

Json ToJson(const CheckpointReport& report) {
  return {{"step", report.step},
          {"membership", ToString(report.membership)},
          {"unixSeconds", report.unix_seconds},
          {"error", Words(report.error)},
          {"reason", report.reason}};
}

CheckpointReport ReadCheckpointReport(JsonFields& fields) {
  return {.step = fields.Unsigned("step"),
          .membership = ReadMembershipId(fields, "membership"),
          .unix_seconds = fields.Number("unixSeconds"),
          .error = fields.String("error"),
          .reason = fields.String("reason", 64)};
}

Json ToJson(const Progress::Stats& stats) {
  Json json = {{"epoch", stats.epoch},
               {"totalSteps", stats.total_steps},
               {"samples", stats.samples},
               {"batchSize", stats.batch_size}};
  PutNumber(json, "loss", stats.loss);
  PutNumber(json, "samplesPerSecond", stats.samples_per_second);
  PutNumber(json, "noiseScale", stats.noise_scale);
  if (!stats.evaluations.empty()) json["evaluations"] = Encoded(stats.evaluations);
  if (stats.learners_asked) json["learnersAsked"] = *stats.learners_asked;
  if (stats.last_checkpoint) json["lastCheckpoint"] = ToJson(*stats.last_checkpoint);
  return json;
}

constexpr std::uint64_t kMaxLearnersAsked = 1 << 20;
constexpr double kMaxHeartbeatSeconds = 3600;

Progress::Stats ReadStats(JsonFields& fields) {
  Progress::Stats stats{.epoch = fields.Unsigned("epoch"),
                        .total_steps = fields.Unsigned("totalSteps"),
                        .samples = fields.Unsigned("samples"),
                        .loss = fields.OptionalNumber("loss"),
                        .samples_per_second = fields.OptionalNumber("samplesPerSecond"),
                        .noise_scale = fields.OptionalNumber("noiseScale"),
                        .batch_size = fields.Unsigned("batchSize")};
  if (stats.batch_size == 0) fields.Wrong("batchSize", "must be at least 1");
  stats.evaluations = ReadEvaluations(fields);
  if (fields.Has("learnersAsked")) {
    stats.learners_asked =
        static_cast<int>(std::min(fields.Unsigned("learnersAsked"), kMaxLearnersAsked));
  }
  if (fields.Has("lastCheckpoint")) {
    fields.Object("lastCheckpoint",
                  [&](JsonFields& inner) { stats.last_checkpoint = ReadCheckpointReport(inner); });
  }
  return stats;
}

Json ToJson(const TickTimes& times) {
  return {{"shardSeconds", times.shard_seconds},        {"computeSeconds", times.compute_seconds},
          {"dataWaitSeconds", times.data_wait_seconds}, {"waitSeconds", times.wait_seconds},
          {"commitSeconds", times.commit_seconds},      {"sentBytes", times.sent_bytes},
          {"receivedBytes", times.received_bytes}};
}

TickTimes ReadTickTimes(JsonFields& fields) {
  return {.shard_seconds = fields.Number("shardSeconds"),
          .compute_seconds = fields.Number("computeSeconds"),
          .data_wait_seconds = fields.Number("dataWaitSeconds"),
          .wait_seconds = fields.Number("waitSeconds"),
          .commit_seconds = fields.Number("commitSeconds"),
          .sent_bytes = fields.Number("sentBytes"),
          .received_bytes = fields.Number("receivedBytes")};
}

LeftReason ReadLeftReason(JsonFields& fields, std::string_view name) {
  const std::string text = fields.String(name, 64);
  for (const LeftReason reason :
       {LeftReason::kDrained, LeftReason::kCompleted, LeftReason::kFailed}) {
    if (text == ToString(reason)) return reason;
  }
  fields.Wrong(name, "must be Drained, Completed or Failed");
  return LeftReason::kFailed;
}

// ---- Messages: a pair of functions per type ----

Json Body(const Hello& hello) {
  return {{"protocol", hello.protocol},
          {"learner", ToJson(hello.learner)},
          {"ranks", hello.ranks},
          {"address", hello.address},
          {"fingerprint", hello.fingerprint},
          {"membership", hello.membership ? ToJson(*hello.membership) : Json()},
          {"before", hello.before ? ToJson(*hello.before) : Json()},
          {"appliedTicks", hello.applied_ticks},
          {"hasState", hello.has_state},
          {"leaving", hello.leaving},
          {"done", hello.done}};
}

Hello ReadHello(JsonFields& fields) {
  Hello hello;
  hello.protocol = static_cast<int>(std::min<std::uint64_t>(fields.Unsigned("protocol"), 1 << 30));
  // From another protocol version only the id and the version are read: enough to refuse the
  // learner.
  hello.learner = ReadLearnerId(fields, "learner");
  if (hello.protocol != kProtocolVersion) return hello;
  const std::uint64_t ranks = fields.Unsigned("ranks");
  hello.ranks = static_cast<int>(std::clamp<std::uint64_t>(ranks, 1, kMaxRanksPerLearner));
  if (ranks < 1 || ranks > kMaxRanksPerLearner) fields.Wrong("ranks", "must be 1 to 16");
  if (hello.learner.local_rank >= hello.ranks) fields.Wrong("learner", "has no such local rank");
  hello.address = fields.String("address", 256);
  fields.Strings("fingerprint", kMaxFingerprint, [&](std::string name, std::string value) {
    hello.fingerprint.emplace(std::move(name), std::move(value));
  });
  if (fields.Has("membership")) hello.membership = ReadMembership(fields, "membership");
  if (fields.Has("before")) hello.before = ReadMembership(fields, "before");
  hello.applied_ticks = fields.Unsigned("appliedTicks");
  hello.has_state = fields.Bool("hasState");
  hello.leaving = fields.Bool("leaving");
  hello.done = fields.Bool("done");
  return hello;
}

Json Body(const Prepared& prepared) { return {{"membership", ToString(prepared.membership)}}; }
Prepared ReadPrepared(JsonFields& fields) { return {ReadMembershipId(fields, "membership")}; }

Json Body(const Entered& entered) {
  return {{"membership", ToJson(entered.membership)}, {"appliedTicks", entered.applied_ticks}};
}
Entered ReadEntered(JsonFields& fields) {
  return {.membership = ReadMembership(fields, "membership"),
          .applied_ticks = fields.Unsigned("appliedTicks")};
}

Json Body(const Opened& opened) {
  return {{"membership", ToString(opened.membership)},
          {"appliedTicks", opened.applied_ticks},
          {"pauseSeconds", opened.pause_seconds},
          {"ticksLost", opened.ticks_lost}};
}
Opened ReadOpened(JsonFields& fields) {
  return {.membership = ReadMembershipId(fields, "membership"),
          .applied_ticks = fields.Unsigned("appliedTicks"),
          .pause_seconds = fields.Number("pauseSeconds"),
          .ticks_lost = fields.Unsigned("ticksLost")};
}

Json Body(const Leaving& leaving) { return {{"graceSeconds", leaving.grace_seconds}}; }
Leaving ReadLeaving(JsonFields& fields) { return {fields.Number("graceSeconds")}; }

Json Body(const Lost& lost) {
  Json accused = Json::array();
  for (const LearnerId& id : lost.accused) accused.push_back(ToJson(id));
  return {{"membership", ToString(lost.membership)},
          {"tick", lost.tick},
          {"accused", std::move(accused)},
          {"cause", Words(lost.cause)}};
}
Lost ReadLost(JsonFields& fields) {
  Lost lost{.membership = ReadMembershipId(fields, "membership"), .tick = fields.Unsigned("tick")};
  fields.Objects("accused", kMaxMembers,
                 [&](JsonFields& item) { lost.accused.push_back(ReadLearnerId(item)); });
  lost.cause = fields.String("cause");
  return lost;
}

Json Body(const Progress& progress) {
  Json json = {{"membership", ToJson(progress.membership)},
               {"tick", progress.tick},
               {"step", progress.step}};
  if (progress.following) json["following"] = true;
  if (progress.times) json["times"] = ToJson(*progress.times);
  if (progress.stats) json["figures"] = ToJson(*progress.stats);
  return json;
}
Progress ReadProgress(JsonFields& fields) {
  Progress progress{.membership = ReadOptionalId(fields, "membership"),
                    .tick = fields.Unsigned("tick"),
                    .step = fields.Unsigned("step"),
                    .following = fields.Has("following") && fields.Bool("following")};
  if (fields.Has("times")) {
    fields.Object("times", [&](JsonFields& inner) { progress.times = ReadTickTimes(inner); });
  }
  if (fields.Has("figures")) {
    fields.Object("figures", [&](JsonFields& inner) { progress.stats = ReadStats(inner); });
  }
  return progress;
}

Json Body(const Left& left) {
  return {{"appliedTicks", left.applied_ticks},
          {"reason", ToString(left.reason)},
          {"message", Words(left.message)},
          {"parametersSha256", left.parameters_sha256}};
}
Left ReadLeft(JsonFields& fields) {
  return {.applied_ticks = fields.Unsigned("appliedTicks"),
          .reason = ReadLeftReason(fields, "reason"),
          .message = fields.String("message"),
          .parameters_sha256 = fields.String("parametersSha256", 64)};
}

Json Body(const Welcome& welcome) {
  return {{"term", welcome.term}, {"heartbeatSeconds", welcome.heartbeat_seconds}};
}
Welcome ReadWelcome(JsonFields& fields) {
  const Welcome welcome{.term = fields.Unsigned("term"),
                        .heartbeat_seconds = fields.Number("heartbeatSeconds")};
  // Bounded, because a learner counts it in nanoseconds.
  if (welcome.heartbeat_seconds < 0 || welcome.heartbeat_seconds > kMaxHeartbeatSeconds) {
    fields.Wrong("heartbeatSeconds", Format("must be at most {}", kMaxHeartbeatSeconds));
  }
  return welcome;
}

Json Body(const Refused& refused) {
  return {{"reason", refused.reason}, {"message", Words(refused.message)}};
}
Refused ReadRefused(JsonFields& fields) {
  return {.reason = fields.String("reason"), .message = fields.String("message")};
}

Json Body(const Prepare& prepare) {
  return {{"membership", ToJson(prepare.membership)}, {"replaces", ToJson(prepare.replaces)}};
}
Prepare ReadPrepare(JsonFields& fields) {
  return {.membership = ReadMembership(fields, "membership"),
          .replaces = ReadOptionalId(fields, "replaces")};
}

Json Body(const Announce& announce) {
  return {{"membership", ToJson(announce.membership)}, {"replaces", ToJson(announce.replaces)}};
}
Announce ReadAnnounce(JsonFields& fields) {
  return {.membership = ReadMembership(fields, "membership"),
          .replaces = ReadOptionalId(fields, "replaces")};
}

Json Body(const Withdraw& withdraw) { return {{"membership", ToString(withdraw.membership)}}; }
Withdraw ReadWithdraw(JsonFields& fields) { return {ReadMembershipId(fields, "membership")}; }

Json Body(const Recover& recover) { return {{"membership", ToJson(recover.membership)}}; }
Recover ReadRecover(JsonFields& fields) { return {ReadMembership(fields, "membership")}; }

Json Body(const Leave& leave) { return {{"atOnce", leave.at_once}}; }
Leave ReadLeave(JsonFields& fields) { return {fields.Bool("atOnce")}; }

// ---- The variants ----

constexpr std::array<std::string_view, 8> kLearnerNames = {
    "hello", "prepared", "entered", "opened", "leaving", "lost", "progress", "left"};
constexpr std::array<std::string_view, 7> kCoordinatorNames = {
    "welcome", "refused", "prepare", "announce", "withdraw", "recover", "leave"};
static_assert(kLearnerNames.size() == std::variant_size_v<LearnerMessage>);
static_assert(kCoordinatorNames.size() == std::variant_size_v<CoordinatorMessage>);

template <typename Message>
std::string EncodeTyped(const Message& message) {
  Json json = std::visit([](const auto& value) { return Body(value); }, message);
  json["type"] = NameOf(message);
  return WriteJson(json);
}

LearnerMessage ReadLearnerMessage(JsonFields& fields) {
  const std::string type = fields.String("type", 32);
  if (type == "hello") return ReadHello(fields);
  if (type == "prepared") return ReadPrepared(fields);
  if (type == "entered") return ReadEntered(fields);
  if (type == "opened") return ReadOpened(fields);
  if (type == "leaving") return ReadLeaving(fields);
  if (type == "lost") return ReadLost(fields);
  if (type == "progress") return ReadProgress(fields);
  if (type == "left") return ReadLeft(fields);
  fields.Wrong("type", "is not one that a learner sends");
  return Hello{};
}

CoordinatorMessage ReadCoordinatorMessage(JsonFields& fields) {
  const std::string type = fields.String("type", 32);
  if (type == "welcome") return ReadWelcome(fields);
  if (type == "refused") return ReadRefused(fields);
  if (type == "prepare") return ReadPrepare(fields);
  if (type == "announce") return ReadAnnounce(fields);
  if (type == "withdraw") return ReadWithdraw(fields);
  if (type == "recover") return ReadRecover(fields);
  if (type == "leave") return ReadLeave(fields);
  fields.Wrong("type", "is not one that a coordinator sends");
  return Leave{};
}

}  // namespace

std::string_view ToString(LeftReason reason) {
  switch (reason) {
    case LeftReason::kDrained:
      return "Drained";
    case LeftReason::kCompleted:
      return "Completed";
    case LeftReason::kFailed:
      return "Failed";
  }
  return "Failed";
}

std::string_view NameOf(const LearnerMessage& message) { return kLearnerNames[message.index()]; }
std::string_view NameOf(const CoordinatorMessage& message) {
  return kCoordinatorNames[message.index()];
}

std::string Encode(const LearnerMessage& message) { return EncodeTyped(message); }
std::string Encode(const CoordinatorMessage& message) { return EncodeTyped(message); }

Result<LearnerMessage> DecodeLearnerMessage(std::string_view json) {
  return ReadJson<LearnerMessage>(json, kMaxMessageBytes, ReadLearnerMessage);
}

Result<CoordinatorMessage> DecodeCoordinatorMessage(std::string_view json) {
  return ReadJson<CoordinatorMessage>(json, kMaxMessageBytes, ReadCoordinatorMessage);
}

std::string EncodeMembership(const Membership& membership) { return WriteJson(ToJson(membership)); }

Result<Membership> DecodeMembership(std::string_view json) {
  return ReadJson<Membership>(json, kMaxMessageBytes,
                              [](JsonFields& fields) { return ReadMembership(fields); });
}

Result<MembershipId> ParseMembershipId(std::string_view text) {
  MembershipId id;
  const char* const end = text.data() + text.size();
  const auto term = std::from_chars(text.data(), end, id.term);
  if (term.ec != std::errc() || term.ptr == end || *term.ptr != '.') {
    return Invalid("not a membership id");
  }
  const auto counter = std::from_chars(term.ptr + 1, end, id.counter);
  if (counter.ec != std::errc() || counter.ptr != end) return Invalid("not a membership id");
  return id;
}

}  // namespace pliant
