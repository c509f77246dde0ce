#include "trainer/runtime/run_learner.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "base/exceptions.h"
#include "base/file.h"
#include "base/format.h"
#include "base/http_server.h"
#include "base/log.h"
#include "base/real_event_loop.h"
#include "trainer/checkpoint/checkpointer.h"
#include "trainer/checkpoint/file_store.h"
#include "trainer/collective/shard_folder.h"
#include "trainer/collective/shared_memory.h"
#include "trainer/collective/tcp_transport.h"
#include "trainer/data/schedule.h"
#include "trainer/membership/fingerprint_keys.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/control_port.h"
#include "trainer/runtime/fingerprint.h"
#include "trainer/runtime/freed_memory.h"
#include "trainer/runtime/learner_loop.h"
#include "trainer/runtime/learner_metrics.h"
#include "trainer/runtime/metrics_file.h"
#include "trainer/runtime/paced_program.h"
#include "trainer/runtime/replay.h"
#include "trainer/runtime/signals.h"
#include "trainer/runtime/termination_message.h"
#include "trainer/runtime/websocket_link.h"

namespace pliant {
namespace {

constexpr std::string_view kCoordinatorDomain = "coordinator.pliant.internal";
constexpr std::string_view kLearnerPath = "/v1/learner";
// For the last message to reach the coordinator; without it the closed connection says enough.
constexpr auto kFarewell = std::chrono::seconds(1);
constexpr int kInterruptedExitCode = 130;  // as shells know it

double UnixOffsetSeconds(const EventLoop& loop) {
  const auto unix_now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(unix_now).count() - ToSeconds(loop.Now().time_since_epoch());
}

int ExitCodeOf(ErrorCode code) {
  return code == ErrorCode::kInvalid || code == ErrorCode::kNotFound ? 2 : 1;
}

void WriteTermination(const std::filesystem::path& path, const TerminationMessage& message) {
  if (path.empty()) return;
  if (const Status written = WriteTerminationMessage(path, message); !written) {
    log::Warning("no termination message", {{"error", written.error().message}});
  }
}

Result<Schedule> MakeSchedule(const ProgramInfo& info, const RunLearnerOptions& options) {
  return Schedule::Make({.train_samples = info.train_samples,
                         .test_samples = info.test_samples,
                         .epochs = info.epochs,
                         .global_batch_size = options.global_batch_size,
                         .logical_shards = LogicalShardsOf(options),
                         .seed = options.seed,
                         .last_batch = options.last_batch,
                         .order = options.order});
}

LearnerOptions MakeLearnerOptions(const ProgramInfo& info, const RunLearnerOptions& options,
                                  const LearnerId& self, const EventLoop& loop) {
  const LearnerEnvironment& environment = options.environment;
  const std::string cpuinfo = ReadFile("/proc/cpuinfo").value_or("");
  Fingerprint fingerprint = MakeFingerprint(environment, options.framework, info, cpuinfo);
  if (!options.gpu_problem.empty()) fingerprint[kFingerprintGpuProblem] = options.gpu_problem;
  return {.self = self,
          .ranks = environment.ranks_per_learner,
          .fingerprint = std::move(fingerprint),
          .term_least = environment.coordinator ? environment.coordinator->term_least : 0,
          .framework = options.framework,
          .reproducibility = environment.reproducibility,
          .checkpoint_every_steps = environment.checkpoint_every_steps,
          .checkpoint_every = environment.checkpoint_every,
          .checkpoints_kept = environment.checkpoints_kept,
          .checkpoint_slice_bytes = environment.checkpoint_slice_bytes,
          // In Statistical mode machines may be of different kinds, which round differently.
          .check_state_every_steps = environment.reproducibility == Reproducibility::kBitwise
                                         ? environment.check_state_every_steps
                                         : 0,
          .grace = environment.grace,
          .step_timeout = environment.step_timeout,
          .unix_offset_seconds = UnixOffsetSeconds(loop)};
}

// The server's certificate has to name the learner's own job: the token is sent to no other.
WebSocketLinkOptions MakeLinkOptions(const LearnerEnvironment::Coordinator& coordinator,
                                     std::string_view job_uid) {
  return {.endpoint = {.host = coordinator.host,
                       .port = coordinator.port,
                       .path = std::string(kLearnerPath),
                       .bearer_token = coordinator.token,
                       .tls = WebSocketEndpoint::Tls{
                           .ca_file = coordinator.ca_file,
                           .server_name = Format("{}.{}", job_uid, kCoordinatorDomain)}}};
}

// None where it was not asked for. A port that is taken, for example by the program itself, is no
// reason not to train.
std::unique_ptr<HttpServer> ServeMetrics(RealEventLoop& loop, const LearnerEnvironment& environment,
                                         std::function<std::string()> text) {
  // A pod has one such port.
  if (!environment.metrics_port || environment.local_rank > 0) return nullptr;
  std::vector<HttpRoute> routes;
  routes.push_back({.method = "GET",
                    .path = "/metrics",
                    .handle = [text = std::move(text)](const ServerRequest&) {
                      return ServerResponse{.body = text(), .content_type = kMetricsContentType};
                    }});
  auto server = HttpServer::Listen(loop,
                                   {.name = "metrics",
                                    .address = environment.pod_ip,
                                    .port = *environment.metrics_port,
                                    .connections_max = 16},
                                   std::move(routes));
  if (!server) {
    log::Warning("no metrics", {{"error", server.error().message}});
    return nullptr;
  }
  return *std::move(server);
}

// Its memory is taken now, while nobody waits for this learner: not when the job is shrunk, in mid
// step, where a memory limit would lose the step and the learner.
Result<ShardFolder> MakeFolder(const ProgramInfo& info, const RunLearnerOptions& options,
                               MemorySource& gradients) {
  // Statistical: a batch, and a leaf that fills the tree up.
  const bool bitwise = options.environment.reproducibility == Reproducibility::kBitwise;
  const int shards_ever = bitwise ? LogicalShardsOf(options) : 2;
  const int shards_most = bitwise ? ShardsOfALearnerMost(options) : 2;
  const std::size_t bytes = ShardFolder::BytesFor(info.gradient_elements, shards_most);
  const auto no_room = [&](std::string_view why) {
    return Fail(ErrorCode::kUnavailable,
                Format("no room for the gradients of {} shards, {} bytes: {}. A higher memory "
                       "limit of the learner's container helps, or a higher "
                       "spec.elastic.minLearners",
                       shards_most, bytes, why));
  };
  // A limit that is met ends the process without a word: this is what its log ends with.
  log::Info("takes the memory for gradients", {{"bytes", bytes}, {"shards", shards_most}});
  try {
    ShardFolder folder(info.gradient_elements, shards_ever, gradients);
    if (const Status taken = folder.Populate(shards_most); !taken)
      return no_room(taken.error().message);
    return folder;
  } catch (const std::bad_alloc&) {
    return no_room("the address space is used up");
  }
}

int EndWith(const LearnerExit& exit, const std::filesystem::path& termination_log) {
  WriteTermination(termination_log, {.reason = exit.reason,
                                     .step = exit.step,
                                     .message = exit.message,
                                     .parameters_sha256 = exit.parameters_sha256});
  const bool failed = exit.reason == LeftReason::kFailed;
  log::Write(failed ? log::Level::kError : log::Level::kInfo, "learner ends",
             {{"reason", ToString(exit.reason)},
              {"step", exit.step},
              {"cause", exit.message},
              {"parametersSha256", exit.parameters_sha256}});
  return failed ? ExitCodeOf(exit.code) : 0;
}

}  // namespace

std::uint64_t DrawNonce() {
  std::random_device random;
  return (static_cast<std::uint64_t>(random()) << 32U) | random();
}

std::unique_ptr<KeptOutput> KeptOutput::Of(const LearnerEnvironment& environment) {
  if (!environment.coordinator) return nullptr;
  std::string name = environment.learner + "-" + environment.pod_uid;
  if (environment.local_rank > 0) name += Format(".{}", environment.local_rank);
  const std::filesystem::path file =
      environment.checkpoint_dir / environment.job_uid / "logs" / (name + ".log");
  return std::unique_ptr<KeptOutput>(new KeptOutput(NewOutputKeeper(file)));
}

KeptOutput::KeptOutput(std::unique_ptr<OutputKeeper> keeper) : keeper_(std::move(keeper)) {
  log::CopyLinesTo([this](std::string_view line) { keeper_->Keep(line); });
}

KeptOutput::~KeptOutput() { log::CopyLinesTo(nullptr); }

Status CheckCheckpointFolder(const LearnerEnvironment& environment) {
  if (environment.coordinator || environment.replay) return {};
  const std::filesystem::path folder = environment.checkpoint_dir / environment.job_uid;
  const auto refuse = [&](std::string_view why) {
    return Invalid(
        Format("checkpoints cannot be written to {}: {}. Name another folder by the "
               "program's setting or PLIANT_CHECKPOINT_DIR",
               folder.string(), why));
  };
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return refuse(error.message());
  const std::filesystem::path probe = folder / Format(".probe-{:x}", DrawNonce());
  const Status written = WriteFileAtomically(probe, "can this folder be written to?\n");
  std::filesystem::remove(probe, error);
  if (!written) return refuse(written.error().message);
  return {};
}

int LogicalShardsOf(const RunLearnerOptions& options) {
  const LearnerEnvironment& environment = options.environment;
  if (environment.logical_shards) return *environment.logical_shards;
  // Whoever trains alone and expects nobody gets what a loop without us would do.
  if (!environment.coordinator && !environment.max_learners) return 1;
  return DefaultLogicalShards(options.global_batch_size,
                              MaxLearnersOf(environment) * environment.ranks_per_learner);
}

int ShardsOfALearnerMost(const RunLearnerOptions& options) {
  const LearnerEnvironment& environment = options.environment;
  const int ranks = environment.min_learners * environment.ranks_per_learner;
  return (LogicalShardsOf(options) - 1) / ranks + 1;
}

int FailLearner(const std::filesystem::path& termination_log, const Error& error) {
  return EndWith({.reason = LeftReason::kFailed, .code = error.code, .message = error.message},
                 termination_log);
}

namespace {

int End(const RunLearnerOptions& options, const LearnerExit& exit, bool interrupted = false) {
  int code = EndWith(exit, options.environment.termination_log);
  if (interrupted && exit.reason == LeftReason::kDrained) code = kInterruptedExitCode;
  if (options.on_exit) options.on_exit(exit, code);
  return code;
}

int Refuse(const RunLearnerOptions& options, const Error& error) {
  return End(options,
             {.reason = LeftReason::kFailed, .code = error.code, .message = error.message});
}

int Train(Program& program, const RunLearnerOptions& options) {
  const LearnerEnvironment& environment = options.environment;
  const auto refuse = [&](const Error& error) { return Refuse(options, error); };
  auto schedule = MakeSchedule(program.info(), options);
  if (!schedule) return refuse(schedule.error());
  if (environment.replay) {
    const auto verdict = VerifyReplay(program, *schedule, options);
    if (!verdict) return refuse(verdict.error());
    return End(options, {.reason = LeftReason::kDrained, .message = *verdict});
  }

  // In the order of who uses whom: later ones are destroyed first.
  SharedMemory shared_memory;
  MemorySource& gradients = environment.shared_memory_dir.empty() ? HeapMemory() : shared_memory;
  RealEventLoop loop;
  const LearnerId self{.name = environment.learner,
                       .pod_uid = environment.pod_uid,
                       .nonce = environment.nonce ? *environment.nonce : DrawNonce(),
                       .local_rank = environment.local_rank};
  std::unique_ptr<PeerTransport> transport;
  std::unique_ptr<WebSocketLink> link;
  if (environment.coordinator) {
    auto made = MakeTcpTransport(loop, {.self = self,
                                        .listen_ip = environment.pod_ip,
                                        .peer_key = environment.coordinator->peer_key,
                                        .shared_memory_folder = environment.shared_memory_dir,
                                        .shared_memory = &shared_memory});
    if (!made) return refuse(made.error());
    transport = *std::move(made);
    link = std::make_unique<WebSocketLink>(
        loop, MakeLinkOptions(*environment.coordinator, environment.job_uid));
  }
  const std::filesystem::path folder = environment.checkpoint_dir / environment.job_uid;
  std::optional<ResumeSource> resume;
  if (!environment.resume_from.empty()) resume = ResumeFromFolder(environment.resume_from);
  const auto checkpointer = NewThreadedCheckpointer(
      loop, std::make_unique<FileStore>(folder, Format("{:x}", DrawNonce())), std::move(resume));
  const auto metrics_file = NewBackgroundMetrics(NewMetricsFile(folder / "metrics.jsonl"));
  const auto metrics = NewShownMetrics(*metrics_file, options.on_metrics_line);
  auto shard_folder = MakeFolder(program.info(), options, gradients);
  if (!shard_folder) return refuse(shard_folder.error());
  PacedProgram paced(program, environment.pace_file);
  Program& computed = environment.pace_file.empty() ? program : paced;
  const auto compute = NewThreadedCompute(loop, computed, *std::move(shard_folder));

  std::unique_ptr<SampleLedger> ledger;
  if (!environment.ledger_dir.empty()) {
    std::string name = environment.learner;
    if (environment.local_rank > 0) name += Format(".{}", environment.local_rank);
    auto made = NewSampleLedgerFile(environment.ledger_dir / (name + ".jsonl"));
    if (!made) return refuse(made.error());
    ledger = *std::move(made);
  }

  std::optional<LearnerExit> exit;
  LearnerLoop learner(MakeLearnerOptions(program.info(), options, self, loop), *schedule,
                      {.loop = loop,
                       .link = link.get(),
                       .transport = transport.get(),
                       .compute = *compute,
                       .checkpointer = *checkpointer,
                       .metrics = *metrics,
                       .ledger = ledger.get(),
                       .gradients = gradients},
                      [&](LearnerExit how) {
                        exit = std::move(how);
                        if (link) {
                          link->Finish(kFarewell, [&loop] { loop.Stop(); });
                        } else {
                          loop.Stop();
                        }
                      });
  LearnerMetrics learner_metrics(environment.job);
  const auto server =
      ServeMetrics(loop, environment, [&] { return learner_metrics.Serialize(learner.figures()); });
  int signals_seen = 0;
  bool interrupted = false;
  std::optional<StopSignals> signals;
  const auto on_signal = [&](int signal) {
    // Who asks a second time at a terminal does not want to wait.
    if (++signals_seen > 1 && signal == SIGINT) return loop.Stop();
    if (signals_seen > 1) return;
    interrupted = signal == SIGINT && !environment.coordinator;
    log::Info("asked to stop, leaving at the next boundary", {{"step", learner.applied_ticks()}});
    learner.RequestLeave(environment.grace);
  };
  if (options.take_signals) signals.emplace(loop, on_signal);
  ControlPort port(loop, learner, environment.grace);
  if (options.on_start) options.on_start(port.control());
  log::Info("learner starts", {{"learner", ToString(self)},
                               {"job", environment.job},
                               {"program", program.info().name},
                               {"alone", !environment.coordinator},
                               {"address", transport ? transport->address() : ""},
                               {"metricsPort", server ? server->port() : 0},
                               {"steps", schedule->total_steps()},
                               {"globalBatchSize", options.global_batch_size},
                               {"logicalShards", schedule->spec().logical_shards},
                               {"seed", options.seed},
                               {"framework", options.framework}});
  learner.Start();
  loop.Run();
  if (exit) {
    const int code = End(options, *exit, interrupted);
    // Its thread cannot be joined, and uses what lies here.
    if (exit->program_hangs) std::_Exit(code);
    return code;
  }
  if (options.on_exit) options.on_exit({.message = "interrupted"}, kInterruptedExitCode);
  return kInterruptedExitCode;
}

}  // namespace

int RunLearner(Program& program, const RunLearnerOptions& options) {
  if (options.take_signals) HoldStopSignals();
  if (options.keep_freed_memory) KeepFreedMemory();
  const auto code = CatchAll([&]() -> Result<int> { return Train(program, options); });
  // What it held is let go of by now: there is memory again for the last words.
  return code ? *code : Refuse(options, code.error());
}

}  // namespace pliant
