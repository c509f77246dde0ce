#include "trainer/process/learner_environment.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <ranges>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "base/host_port.h"
#include "trainer/collective/gradient_rounds.h"
#include "trainer/collective/reduction.h"

namespace pliant {
namespace {

constexpr std::uint64_t kMaxSeconds = 365 * 24 * 3600;
constexpr int kMaxLearners = 1 << 16;
constexpr int kMaxLearnersDefault = 8;  // of a job
constexpr std::uint64_t kMinBucketBytes = std::uint64_t{4} << 10;
constexpr std::uint64_t kMaxBucketBytes = std::uint64_t{1} << 30;

class Reader {
 public:
  explicit Reader(const GetEnvironment& get) : get_(get) {}

  std::optional<std::string> Text(const char* name) const {
    const char* const value = get_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }

  // A variable that is required with a coordinator, apart from its address.
  Result<std::string> Needed(const char* name, std::string_view what) const {
    auto value = Text(name);
    if (value) return *std::move(value);
    return Invalid(std::string(name) + " is not set: with PLIANT_COORDINATOR it must be " +
                   std::string(what));
  }

  template <typename T>
  Status Number(const char* name, std::uint64_t least, std::uint64_t most, T& into) const {
    const auto text = Text(name);
    if (!text) return {};
    std::uint64_t value = 0;
    const char* const end = text->data() + text->size();
    const auto [rest, error] = std::from_chars(text->data(), end, value);
    if (error != std::errc() || rest != end || value < least || value > most) {
      return Invalid(std::string(name) + " is '" + *text + "': it must be a whole number from " +
                     std::to_string(least) + " to " + std::to_string(most));
    }
    into = static_cast<T>(value);
    return {};
  }

  template <typename T>
  Status Number(const char* name, std::uint64_t least, std::uint64_t most,
                std::optional<T>& into) const {
    if (!Text(name)) return {};
    T value{};
    RETURN_IF_ERROR(Number(name, least, most, value));
    into = value;
    return {};
  }

  Status Seconds(const char* name, std::uint64_t least, Duration& into) const {
    std::optional<std::uint64_t> seconds;
    RETURN_IF_ERROR(Number(name, least, kMaxSeconds, seconds));
    if (seconds) into = std::chrono::seconds(*seconds);
    return {};
  }

  // Whether a variable with two values has the first one.
  Result<bool> IsFirst(const char* name, const std::string& first, const std::string& second,
                       const std::string& absent) const {
    const std::string value = Text(name).value_or(absent);
    if (value != first && value != second)
      return Invalid(Format("{} is '{}': it must be {} or {}", name, value, first, second));
    return value == first;
  }

 private:
  const GetEnvironment& get_;
};

// "10.0.0.1:8443", "name:8443" or "[::1]:8443".
Result<LearnerEnvironment::Coordinator> ParseAddress(const std::string& text) {
  auto address = ParseHostPort(text);
  if (!address || address->host.empty() || address->port == 0)
    return Invalid("PLIANT_COORDINATOR is '" + text + "': it must be host:port");
  return LearnerEnvironment::Coordinator{.host = std::move(address->host),
                                         .port = std::to_string(address->port)};
}

// The content of the file that the variable `name` names.
Result<std::string> ReadKey(const Reader& reader, const char* name, std::string_view what) {
  ASSIGN_OR_RETURN(const std::string path, reader.Needed(name, what));
  auto key = ReadFile(path);
  if (!key) return std::unexpected(InContext(name, std::move(key).error()));
  while (!key->empty() && (key->back() == '\n' || key->back() == '\r')) key->pop_back();
  if (key->empty()) return Invalid(std::string(name) + ": " + path + " is empty");
  return key;
}

Status ReadCoordinator(const Reader& reader, LearnerEnvironment& environment) {
  const auto address = reader.Text("PLIANT_COORDINATOR");
  if (!address) return {};
  ASSIGN_OR_RETURN(LearnerEnvironment::Coordinator coordinator, ParseAddress(*address));
  ASSIGN_OR_RETURN(environment.learner, reader.Needed("PLIANT_LEARNER", "the name of this pod"));
  ASSIGN_OR_RETURN(environment.job_uid, reader.Needed("PLIANT_JOB_UID", "the uid of the job"));
  ASSIGN_OR_RETURN(environment.pod_ip,
                   reader.Needed("PLIANT_POD_IP", "the address at which peers reach this pod"));
  ASSIGN_OR_RETURN(coordinator.token,
                   ReadKey(reader, "PLIANT_TOKEN_FILE", "the file that holds the learners' token"));
  ASSIGN_OR_RETURN(
      coordinator.peer_key,
      ReadKey(reader, "PLIANT_PEER_KEY_FILE", "the file that holds the key of the job's learners"));
  ASSIGN_OR_RETURN(const std::string tls_dir,
                   reader.Needed("PLIANT_TLS_DIR", "the folder that holds ca.crt"));
  coordinator.ca_file = std::filesystem::path(tls_dir) / "ca.crt";
  if (auto ca = ReadFile(coordinator.ca_file); !ca) {
    return std::unexpected(InContext("PLIANT_TLS_DIR", std::move(ca).error()));
  }
  RETURN_IF_ERROR(reader.Number("PLIANT_TERM", 0, std::numeric_limits<std::uint64_t>::max(),
                                coordinator.min_term));
  environment.coordinator = std::move(coordinator);
  return {};
}

Status ReadBatch(const Reader& reader, LearnerEnvironment& environment) {
  ASSIGN_OR_RETURN(const bool constant,
                   reader.IsFirst("PLIANT_BATCH_MODE", "Constant", "FromState", "Constant"));
  const bool grows = !constant;
  RETURN_IF_ERROR(reader.Number("PLIANT_MAX_BATCH_SIZE", 1, std::uint64_t{1} << 32,
                                environment.max_batch_size));
  if (grows != environment.max_batch_size.has_value()) {
    return Invalid(grows
                       ? "PLIANT_BATCH_MODE is FromState: PLIANT_MAX_BATCH_SIZE must be set, to "
                         "the largest batch that the training may use"
                       : "PLIANT_MAX_BATCH_SIZE is set, but PLIANT_BATCH_MODE is Constant: set it "
                         "to FromState, or remove the size");
  }
  if (grows && environment.reproducibility == Reproducibility::kStatistical) {
    return Invalid(
        "PLIANT_BATCH_MODE is FromState: PLIANT_REPRODUCIBILITY must be Bitwise, because "
        "the noise scale of Statistical mode depends on the number of learners");
  }
  return {};
}

Status ReadTraining(const Reader& reader, LearnerEnvironment& environment) {
  RETURN_IF_ERROR(reader.Number("PLIANT_GLOBAL_BATCH_SIZE", 1, std::uint64_t{1} << 32,
                                environment.global_batch_size));
  RETURN_IF_ERROR(
      reader.Number("PLIANT_LOGICAL_SHARDS", 1, kMaxLearners, environment.logical_shards));
  RETURN_IF_ERROR(
      reader.Number("PLIANT_SEED", 0, std::numeric_limits<std::uint64_t>::max(), environment.seed));
  RETURN_IF_ERROR(reader.Number("PLIANT_MIN_LEARNERS", 1, kMaxLearners, environment.min_learners));
  RETURN_IF_ERROR(reader.Number("PLIANT_MAX_LEARNERS", 1, kMaxLearners, environment.max_learners));
  if (environment.logical_shards &&
      !std::has_single_bit(static_cast<unsigned>(*environment.logical_shards))) {
    return Invalid("PLIANT_LOGICAL_SHARDS is " + std::to_string(*environment.logical_shards) +
                   ": it must be a power of two");
  }
  ASSIGN_OR_RETURN(const bool bitwise,
                   reader.IsFirst("PLIANT_REPRODUCIBILITY", "Bitwise", "Statistical", "Bitwise"));
  environment.reproducibility = bitwise ? Reproducibility::kBitwise : Reproducibility::kStatistical;
  return ReadBatch(reader, environment);
}

// A replay uses no coordinator. The job's uid says where its checkpoints are.
Status ReadReplay(const Reader& reader, LearnerEnvironment& environment) {
  const auto text = reader.Text("PLIANT_VERIFY_REPLAY");
  if (!text) return {};
  auto range = ParseReplayRange(*text);
  if (!range) return std::unexpected(InContext("PLIANT_VERIFY_REPLAY", std::move(range).error()));
  environment.replay = *range;
  environment.job_uid = reader.Text("PLIANT_JOB_UID").value_or(environment.job_uid);
  return {};
}

// Settings that only tests have, "bucketBytes=4096,sampleLedger=/tmp/ledger". Tests of objects pass
// them as options. Tests of real learner processes have nothing but the environment.
Status ReadTestSettings(const Reader& reader, LearnerEnvironment& environment) {
  constexpr const char* kVariable = "PLIANT_TEST_SETTINGS";
  constexpr std::array<std::string_view, 4> kNames = {"bucketBytes", "checkpointSliceBytes",
                                                      "checkStateEverySteps", "sampleLedger"};
  const auto text = reader.Text(kVariable);
  if (!text) return {};
  std::map<std::string, std::string, std::less<>> settings;
  for (const auto part : std::views::split(*text, ',')) {
    const std::string_view setting(part);
    const std::string_view name = setting.substr(0, setting.find('='));
    if (name.size() == setting.size() || !std::ranges::contains(kNames, name)) {
      return Invalid(
          Format("{} has '{}': it must be a list of name=value, with the names bucketBytes, "
                 "checkpointSliceBytes, checkStateEverySteps and sampleLedger",
                 kVariable, setting));
    }
    settings.emplace(name, setting.substr(name.size() + 1));
  }
  const GetEnvironment get = [&](const char* name) {
    const auto found = settings.find(name);
    return found == settings.end() ? nullptr : found->second.c_str();
  };
  const Reader each(get);
  environment.test.ledger_dir = each.Text("sampleLedger").value_or("");
  Status read =
      each.Number("bucketBytes", kMinBucketBytes, kMaxBucketBytes, environment.test.bucket_bytes);
  if (read) {
    read = each.Number("checkpointSliceBytes", 1, std::uint64_t{1} << 50,
                       environment.test.checkpoint_slice_bytes);
  }
  if (read) {
    read = each.Number("checkStateEverySteps", 1, std::uint64_t{1} << 40,
                       environment.test.check_state_every_steps);
  }
  if (!read) return std::unexpected(InContext(kVariable, std::move(read).error()));
  return {};
}

Status ReadCheckpoints(const Reader& reader, LearnerEnvironment& environment) {
  if (const auto folder = reader.Text("PLIANT_CHECKPOINT_DIR")) {
    environment.checkpoint_dir = *folder;
  } else if (environment.coordinator) {
    return Invalid(
        "PLIANT_CHECKPOINT_DIR is not set: it must be the folder where the volume of "
        "spec.checkpoint is mounted");
  }
  if (const auto folder = reader.Text("PLIANT_RESUME_FROM")) {
    environment.resume_from = environment.checkpoint_dir / *folder;
  }
  RETURN_IF_ERROR(reader.Number("PLIANT_CHECKPOINT_EVERY_STEPS", 0, std::uint64_t{1} << 40,
                                environment.checkpoint_every_steps));
  RETURN_IF_ERROR(
      reader.Seconds("PLIANT_CHECKPOINT_EVERY_SECONDS", 0, environment.checkpoint_every));
  return reader.Number("PLIANT_CHECKPOINT_KEEP", 1, 10000, environment.checkpoints_kept);
}

}  // namespace

std::filesystem::path TerminationLogPath(const GetEnvironment& get) {
  const Reader reader(get);
  if (auto path = reader.Text("PLIANT_TERMINATION_LOG")) return *std::move(path);
  return reader.Text("PLIANT_COORDINATOR") ? "/dev/termination-log" : "";
}

Result<LearnerEnvironment> ReadLearnerEnvironment(const GetEnvironment& get) {
  const Reader reader(get);
  LearnerEnvironment environment;
  RETURN_IF_ERROR(ReadCoordinator(reader, environment));
  environment.pod_uid = reader.Text("PLIANT_POD_UID").value_or("");
  environment.job = reader.Text("PLIANT_JOB").value_or("");
  environment.shared_memory_dir = reader.Text("PLIANT_SHARED_MEMORY_DIR").value_or("");
  environment.pace_file = reader.Text("PLIANT_PACE_FILE").value_or("");
  environment.termination_log = TerminationLogPath(get);
  RETURN_IF_ERROR(reader.Number("PLIANT_RANKS_PER_LEARNER", 1, kMaxRanksPerLearner,
                                environment.ranks_per_learner));
  RETURN_IF_ERROR(reader.Number("PLIANT_LOCAL_RANK", 0, environment.ranks_per_learner - 1,
                                environment.local_rank));
  RETURN_IF_ERROR(reader.Number("PLIANT_NONCE", 0, std::numeric_limits<std::uint64_t>::max(),
                                environment.nonce));
  if (environment.ranks_per_learner > 1 && !environment.coordinator) {
    return Invalid(
        "PLIANT_RANKS_PER_LEARNER is more than 1: without a coordinator a program trains alone, in "
        "one process");
  }
  RETURN_IF_ERROR(ReadTraining(reader, environment));
  RETURN_IF_ERROR(ReadCheckpoints(reader, environment));
  RETURN_IF_ERROR(ReadReplay(reader, environment));
  RETURN_IF_ERROR(ReadTestSettings(reader, environment));
  ASSIGN_OR_RETURN(environment.exchange_over_nccl,
                   reader.IsFirst("PLIANT_EXCHANGE", "Auto", "Frames", "Frames"));
  RETURN_IF_ERROR(reader.Seconds("PLIANT_GRACE_SECONDS", 0, environment.grace));
  RETURN_IF_ERROR(reader.Seconds("PLIANT_STEP_TIMEOUT_SECONDS", 0, environment.step_timeout));
  RETURN_IF_ERROR(reader.Number("PLIANT_METRICS_PORT", 0, 65535, environment.metrics_port));
  return environment;
}

Result<ReplayRange> ParseReplayRange(const std::string& text) {
  const std::size_t dash = text.find('-');
  ReplayRange range;
  const auto number = [](std::string_view digits, std::uint64_t& into) {
    const auto [rest, error] = std::from_chars(digits.begin(), digits.end(), into);
    return error == std::errc() && rest == digits.end();
  };
  const bool open = dash == text.npos;
  const bool understood = number(std::string_view(text).substr(0, dash), range.from) &&
                          (open || number(std::string_view(text).substr(dash + 1), range.to));
  if (!understood || (!open && range.to <= range.from)) {
    return Invalid("'" + text +
                   "' is no range of steps to compute again: it must be FROM or FROM-TO, the steps "
                   "of checkpoints");
  }
  return range;
}

namespace {

BucketSizes SizesOf(const LearnerEnvironment& environment, BucketSizes sizes) {
  if (!environment.test.bucket_bytes) return sizes;
  sizes.rest = *environment.test.bucket_bytes / sizeof(float);
  sizes.first = std::min(sizes.first, sizes.rest);
  return sizes;
}

}  // namespace

BucketSizes BucketSizesOf(const LearnerEnvironment& environment) {
  return SizesOf(environment, Reduction::kBucketSizes);
}

BucketSizes BucketSizesOfRounds(const LearnerEnvironment& environment) {
  return SizesOf(environment, GradientRounds::kBucketSizes);
}

int MaxLearnersOf(const LearnerEnvironment& environment) {
  return environment.max_learners.value_or(environment.coordinator ? kMaxLearnersDefault : 1);
}

}  // namespace pliant
