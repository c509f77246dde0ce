#include "trainer/process/learner_process.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "base/log.h"
#include "base/unix_offset.h"
#include "trainer/checkpoint/file_store.h"
#include "trainer/collective/gradient_accumulator.h"
#include "trainer/collective/gradient_device.h"
#include "trainer/collective/socket_transport.h"
#include "trainer/membership/fingerprint_keys.h"
#include "trainer/process/fingerprint.h"
#include "trainer/process/metrics_file.h"
#include "trainer/runtime/gradient_place.h"

namespace pliant {
namespace {

constexpr std::string_view kCoordinatorDomain = "coordinator.pliant.internal";
constexpr std::string_view kLearnerPath = "/v1/learner";
// Time for the last message to reach the coordinator. If it does not arrive, the coordinator sees
// the closed connection.
constexpr auto kFarewell = std::chrono::seconds(1);

LearnerOptions MakeLearnerOptions(const ProgramInfo& info, const RunLearnerOptions& options,
                                  const LearnerId& self, const EventLoop& loop) {
  const LearnerEnvironment& environment = options.environment;
  const std::string cpuinfo = ReadFile("/proc/cpuinfo").value_or("");
  Fingerprint fingerprint = MakeFingerprint(environment, options.framework, info, cpuinfo);
  if (!options.gpu_problem.empty()) fingerprint[kFingerprintGpuProblem] = options.gpu_problem;
  return {.self = self,
          .ranks = environment.ranks_per_learner,
          .fingerprint = std::move(fingerprint),
          .min_term = environment.coordinator ? environment.coordinator->min_term : 0,
          .framework = options.framework,
          .reproducibility = environment.reproducibility,
          .checkpoint_every_steps = options.training.checkpoint_every_steps,
          .checkpoint_every = environment.checkpoint_every,
          .checkpoints_kept = environment.checkpoints_kept,
          .checkpoint_slice_bytes = environment.test.checkpoint_slice_bytes,
          // In Statistical mode machines may be of different kinds, which round differently.
          .check_state_every_steps = environment.reproducibility == Reproducibility::kBitwise
                                         ? environment.test.check_state_every_steps
                                         : 0,
          .buckets = BucketSizesOf(environment),
          .buckets_of_rounds = BucketSizesOfRounds(environment),
          .grace = environment.grace,
          .step_timeout = environment.step_timeout,
          .unix_offset_seconds = UnixOffsetSeconds(loop)};
}

// The server's certificate has to name the learner's own job, so that the token is sent to no
// other.
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

// nullptr if no port is set. A port that is taken, for example by the program itself, does not
// prevent training.
std::unique_ptr<HttpServer> ServeMetrics(RealEventLoop& loop, const LearnerEnvironment& environment,
                                         std::function<std::string()> text) {
  // A pod has one such port, served by local rank 0.
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
                                    .max_connections = 16},
                                   std::move(routes));
  if (!server) {
    log::Warning("no metrics", {{"error", server.error().message}});
    return nullptr;
  }
  return *std::move(server);
}

// nullptr: no device copies gradients.
std::unique_ptr<MemorySource> PinnedFor(ProgramView& program, MemorySource& source) {
  GradientDevice* const device = program.gradient_device();
  return device == nullptr ? nullptr : device->Pinned(source);
}

// The memory is allocated now, while nobody waits for this learner. If it were allocated when the
// job shrinks, in the middle of a step, a memory limit would cost the step and the learner.
Result<std::unique_ptr<Compute>> MakeCompute(EventLoop& loop, ProgramThread& thread,
                                             const RunLearnerOptions& options, const DataSpec& data,
                                             MemorySource& gradients) {
  const ProgramInfo& info = thread.program().info();
  GradientDevice* const device = thread.program().gradient_device();
  // Statistical mode: one leaf for the batch, and one that fills up the tree.
  const bool bitwise = options.environment.reproducibility == Reproducibility::kBitwise;
  const int shards_ever = bitwise ? MostShards(data) : 2;
  const int max_shards = bitwise ? options.training.max_shards_of_learner << data.max_doublings : 2;
  const std::size_t bytes = GradientAccumulator::BytesFor(info.gradient_elements, max_shards);
  const auto no_room = [&](std::string_view why) {
    return Fail(ErrorCode::kUnavailable,
                Format("no room for the gradients of {} shards, {} bytes: {}. {}, or "
                       "spec.elastic.minLearners",
                       max_shards, bytes, why,
                       device ? "Use a smaller micro-batch or a GPU with more memory"
                              : "Raise the memory limit of the learner's container"));
  };
  // A process that exceeds its memory limit is killed without a message: then this is the last line
  // of its log.
  log::Info("takes the memory for gradients",
            {{"bytes", bytes}, {"shards", max_shards}, {"device", device != nullptr}});
  try {
    auto place = MakeGradientPlace(thread.program(), {.expected = max_shards, .ever = shards_ever},
                                   gradients);
    if (!place) return no_room(place.error().message);
    return NewThreadedCompute(loop, thread, *std::move(place));
  } catch (const std::bad_alloc&) {
    return no_room(device ? "the GPU's memory is used up" : "the address space is used up");
  }
}

LearnerId IdOf(const LearnerEnvironment& environment) {
  return {.name = environment.learner,
          .pod_uid = environment.pod_uid,
          .nonce = environment.nonce ? *environment.nonce : DrawNonce(),
          .local_rank = environment.local_rank};
}

}  // namespace

LearnerProcess::LearnerProcess(ProgramThread& thread, const RunLearnerOptions& options,
                               Schedule schedule)
    : options_(options),
      environment_(options.environment),
      schedule_(std::move(schedule)),
      self_(IdOf(environment_)),
      pinned_gradients_(
          PinnedFor(thread.program(), environment_.shared_memory_dir.empty()
                                          ? HeapMemory()
                                          : static_cast<MemorySource&>(shared_memory_))),
      gradients_(pinned_gradients_                        ? *pinned_gradients_
                 : environment_.shared_memory_dir.empty() ? HeapMemory()
                                                          : shared_memory_),
      thread_(thread),
      paced_(thread, environment_.pace_file),
      learner_metrics_(environment_.job) {}

Status LearnerProcess::Prepare() {
  RETURN_IF_ERROR(OpenTransport());
  const std::filesystem::path folder = environment_.checkpoint_dir / environment_.job_uid;
  std::optional<ResumeSource> resume;
  if (!environment_.resume_from.empty()) resume = ResumeFromFolder(environment_.resume_from);
  checkpointer_ = NewThreadedCheckpointer(
      loop_, std::make_unique<FileStore>(folder, Format("{:x}", DrawNonce())), std::move(resume));
  metrics_file_ = NewBackgroundMetrics(NewMetricsFile(folder / "metrics.jsonl"));
  metrics_ = NewShownMetrics(*metrics_file_, options_.on_metrics_line);
  RETURN_IF_ERROR(OpenCompute());
  return OpenLedger();
}

Status LearnerProcess::OpenTransport() {
  if (!environment_.coordinator) return {};
  ASSIGN_OR_RETURN(transport_, MakeSocketTransport(
                                   loop_, {.self = self_,
                                           .listen_ip = environment_.pod_ip,
                                           .peer_key = environment_.coordinator->peer_key,
                                           .shared_memory_folder = environment_.shared_memory_dir,
                                           .shared_memory = &shared_memory_}));
  link_ = std::make_unique<WebSocketLink>(
      loop_, MakeLinkOptions(*environment_.coordinator, environment_.job_uid));
  return {};
}

Status LearnerProcess::OpenCompute() {
  ProgramThread& thread = environment_.pace_file.empty() ? thread_ : paced_;
  ASSIGN_OR_RETURN(compute_, MakeCompute(loop_, thread, options_, schedule_.spec(), gradients_));
  return {};
}

Status LearnerProcess::OpenLedger() {
  if (environment_.test.ledger_dir.empty()) return {};
  std::string name = environment_.learner;
  if (environment_.local_rank > 0) name += Format(".{}", environment_.local_rank);
  ASSIGN_OR_RETURN(ledger_, NewSampleLedgerFile(environment_.test.ledger_dir / (name + ".jsonl")));
  return {};
}

void LearnerProcess::MakeLearner() {
  learner_.emplace(MakeLearnerOptions(info(), options_, self_, loop_), schedule_,
                   LearnerParts{.loop = loop_,
                                .link = link_.get(),
                                .transport = transport_.get(),
                                .compute = *compute_,
                                .checkpointer = *checkpointer_,
                                .metrics = *metrics_,
                                .ledger = ledger_.get(),
                                .gradients = gradients_},
                   [this](LearnerExit exit) {
                     exit_ = std::move(exit);
                     if (link_) {
                       link_->Finish(kFarewell, [this] { loop_.Stop(); });
                     } else {
                       loop_.Stop();
                     }
                   });
}

std::optional<LearnerExit> LearnerProcess::Run() {
  MakeLearner();
  server_ = ServeMetrics(loop_, environment_,
                         [this] { return learner_metrics_.Serialize(learner_->stats()); });
  if (options_.take_signals) signals_.emplace(loop_, [this](int signal) { OnSignal(signal); });
  port_.emplace(loop_, *learner_, environment_.grace);
  if (options_.on_start) options_.on_start(port_->control());
  LogStart();
  learner_->Start();
  loop_.Run();
  return exit_;
}

void LearnerProcess::OnSignal(int signal) {
  // A second request, by Ctrl-C: the user does not want to wait.
  if (++signals_seen_ > 1 && signal == SIGINT) return loop_.Stop();
  if (signals_seen_ > 1) return;
  interrupted_ = signal == SIGINT && !environment_.coordinator;
  log::Info("asked to stop, leaving at the next boundary", {{"step", learner_->applied_ticks()}});
  learner_->RequestLeave(environment_.grace);
}

void LearnerProcess::LogStart() const {
  log::Info("learner starts", {{"learner", ToString(self_)},
                               {"job", environment_.job},
                               {"program", info().name},
                               {"alone", !environment_.coordinator},
                               {"address", transport_ ? transport_->address() : ""},
                               {"metricsPort", server_ ? server_->port() : 0},
                               {"steps", schedule_.total_steps()},
                               {"globalBatchSize", schedule_.spec().global_batch_size},
                               {"logicalShards", schedule_.spec().logical_shards},
                               {"seed", schedule_.spec().seed},
                               {"framework", options_.framework}});
}

}  // namespace pliant
