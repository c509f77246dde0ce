#include "trainer/cuda/nccl_rounds.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/hex.h"
#include "trainer/cuda/polling.h"

namespace pliant {
namespace {

using std::chrono::steady_clock;

std::unexpected<Error> Aborted(const char* what) {
  return Fail(ErrorCode::kCancelled, Format("NCCL: {}: aborted", what));
}

// The size of the messages with which two ranks connect.
constexpr std::size_t kGreetingBytes = 64;

}  // namespace

Result<std::unique_ptr<NcclRounds>> NcclRounds::Make(std::shared_ptr<CudaMemory> memory,
                                                     const Options& options) {
  ASSIGN_OR_RETURN(const NcclLibrary library, NcclLibrary::Load("libnccl.so.2"));
  ASSIGN_OR_RETURN(const NcclFunctions functions, FindNcclFunctions(library));
  // It counts more than what a program asks for.
  if (const char* const blocking = std::getenv("NCCL_COMM_BLOCKING");
      blocking != nullptr && std::string_view(blocking) != "0")
    return Fail(
        ErrorCode::kUnavailable,
        Format("NCCL_COMM_BLOCKING is {}: a communicator that blocks cannot be aborted when "
               "a peer is lost; remove it from the pod's template",
               blocking));
  std::unique_ptr<NcclRounds> rounds(new NcclRounds(std::move(memory), options, functions));
  RETURN_IF_ERROR(rounds->Prepare(library));
  return rounds;
}

NcclRounds::NcclRounds(std::shared_ptr<CudaMemory> memory, const Options& options,
                       const NcclFunctions& functions)
    : memory_(std::move(memory)), driver_(memory_->driver()), options_(options), nccl_(functions) {}

Status NcclRounds::Prepare(const NcclLibrary& library) {
  const CurrentCudaContext current(*driver_, memory_->context());
  RETURN_IF_ERROR(current.status());
  std::array<std::byte, 16> uuid{};
  RETURN_IF_ERROR(
      driver_->Check(driver_->device_get_uuid(uuid.data(), memory_->ordinal()), "the GPU's UUID"));
  partner_ = {.version = library.version(), .device = Hex(uuid)};
  // NCCL takes ranks with different values of this variable for ranks of different hosts.
  if (const char* const host = std::getenv("NCCL_HOSTID")) partner_.device += Format("/{}", host);
  ASSIGN_OR_RETURN(kernels_, CudaKernels::Load(driver_, memory_->ordinal()));
  RETURN_IF_ERROR(
      driver_->Check(driver_->stream_create(&stream_, kCudaNonBlockingStream), "a stream"));
  RETURN_IF_ERROR(
      driver_->Check(driver_->event_create(&reached_, kCudaEventWithoutTime), "an event"));
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  return {};
}

NcclRounds::~NcclRounds() {
  if (thread_.joinable()) {
    stopping_ = true;
    Do([] {});  // wakes it
    thread_.request_stop();
    thread_.join();
  }
  const CurrentCudaContext current(*driver_, memory_->context());
  for (const CudaEvent event : spare_) driver_->event_destroy(event);
  if (reached_ != nullptr) driver_->event_destroy(reached_);
  if (stream_ != nullptr) driver_->stream_destroy(stream_);
  kernels_.reset();
}

// ---- Any thread ----

void NcclRounds::Do(std::function<void()> command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  changed_.notify_all();
}

void NcclRounds::NewId(std::function<void(Result<CommunicatorId>)> done) {
  Do([this, done = std::move(done)] {
    if (interrupted()) return done(Aborted("an id"));  // NCCL would listen for its ranks
    NcclUniqueId id{};
    AwaitEnd();
    if (const Status made = Check(nccl_.get_unique_id(&id), "ncclGetUniqueId"); !made)
      return done(std::unexpected(made.error()));
    CommunicatorId bytes{};
    static_assert(sizeof bytes == sizeof id);
    std::memcpy(bytes.data(), id.internal, sizeof id);
    done(bytes);
  });
}

void NcclRounds::Join(const Seat& seat, std::function<void(Status)> done) {
  Do([this, seat, done = std::move(done)] {
    CHECK(communicator_ == nullptr, "one communicator at a time");
    if (interrupted()) return done(Aborted("making a communicator"));
    AwaitEnd();
    Status created = Create(seat);
    if (!created) End();
    done(std::move(created));
  });
}

void NcclRounds::Abort(std::function<void()> done) {
  ++aborts_;
  Do([this, done = std::move(done)] {
    End();
    AwaitEnd();
    --aborts_;
    done();
  });
}

// ---- The program's thread ----

void NcclRounds::Begin(Sum sum) {
  auto running = std::make_shared<Running>(std::move(sum));
  {
    const std::lock_guard lock(mutex_);
    CHECK(running_ == nullptr || running_->over, "one sum at a time");
    running_ = running;
  }
  Do([this, running] { Exchange(running); });
}

void NcclRounds::Add(std::span<const HeldNode> nodes, std::uint32_t bucket) {
  const CurrentCudaContext current(*driver_, memory_->context());
  const std::lock_guard lock(mutex_);
  Running& running = *running_;
  if (running.over) return;  // with an error; what is kept now would stay until the next sum
  CHECK(running.ready[bucket] == nullptr, "a bucket is added once");
  CudaEvent event = nullptr;
  const auto record = [&]() -> Status {
    ASSIGN_OR_RETURN(const CudaStream program, memory_->program_stream());
    if (spare_.empty()) {
      RETURN_IF_ERROR(
          driver_->Check(driver_->event_create(&event, kCudaEventWithoutTime), "an event"));
    } else {
      event = spare_.back();
      spare_.pop_back();
    }
    return driver_->Check(driver_->event_record(event, program), "an event");
  };
  if (Status recorded = record(); !recorded && running.queued) running.queued = recorded;
  // NCCL's thread reads them without the lock once the first bucket is there.
  if (running.nodes.empty()) running.nodes.assign(nodes.begin(), nodes.end());
  running.ready[bucket] = event;
  changed_.notify_all();
}

void NcclRounds::WhenOver(std::function<void(Status)> done) {
  Status result;
  {
    const std::lock_guard lock(mutex_);
    CHECK(running_ != nullptr, "a sum was begun");
    if (!running_->over) {
      running_->when_over = std::move(done);
      return;
    }
    result = running_->result;
  }
  done(std::move(result));
}

// ---- NCCL's thread ----

void NcclRounds::Run(const std::stop_token& stop) {
  SleepPrecisely();
  const CurrentCudaContext current(*driver_, memory_->context());
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !commands_.empty(); })) {
    const std::function<void()> command = std::move(commands_.front());
    commands_.pop_front();
    lock.unlock();
    command();
    lock.lock();
  }
  lock.unlock();
  End();
  AwaitEnd();
}

Status NcclRounds::Check(int result, const char* what) const {
  if (result == kNcclSuccess || result == kNcclInProgress) return {};
  return Fail(ErrorCode::kUnavailable,
              Format("NCCL: {}: {}", what, nccl_.get_error_string(result)));
}

Status NcclRounds::Poll(const Deadline& deadline, const char* what,
                        const std::function<std::optional<Status>()>& over) const {
  for (;;) {
    if (const std::optional<Status> status = over()) return *status;
    if (interrupted()) return Aborted(what);
    if (deadline && steady_clock::now() > *deadline)
      return Fail(ErrorCode::kTimeout, Format("NCCL: {}: it takes too long", what));
    std::this_thread::sleep_for(kDevicePoll);
  }
}

Status NcclRounds::PollCommunicator(const Deadline& deadline, const char* what) {
  launching_ = true;
  Status status = Poll(deadline, what, [&]() -> std::optional<Status> {
    int state = kNcclInProgress;
    if (const int result = nccl_.comm_get_async_error(communicator_, &state);
        result != kNcclSuccess)
      return Check(result, what);
    if (state == kNcclInProgress) return std::nullopt;
    return Check(state, what);
  });
  if (status) launching_ = false;
  return status;
}

Status NcclRounds::PollStream(const Deadline& deadline, const char* what) const {
  RETURN_IF_ERROR(driver_->Check(driver_->event_record(reached_, stream_), what));
  return Poll(deadline, what, [&]() -> std::optional<Status> {
    if (const int result = driver_->event_query(reached_); result != kCudaNotReady)
      return driver_->Check(result, what);
    // A rank that is lost shows here.
    int state = kNcclSuccess;
    const int result = nccl_.comm_get_async_error(communicator_, &state);
    if (Status status = Check(result == kNcclSuccess ? state : result, what); !status)
      return status;
    return std::nullopt;
  });
}

Status NcclRounds::Create(const Seat& seat) {
  const Deadline deadline = steady_clock::now() + options_.max_creation;
  NcclUniqueId id{};
  std::memcpy(id.internal, seat.id.data(), sizeof id);
  NcclConfig config{.blocking = 0};
  RETURN_IF_ERROR(
      Check(nccl_.comm_init_rank_config(&communicator_, seat.world_size, id, seat.rank, &config),
            "making a communicator"));
  RETURN_IF_ERROR(PollCommunicator(deadline, "making a communicator"));
  return Warm(seat, deadline);
}

// NCCL connects two ranks when they first exchange something, which takes longer than a step.
Status NcclRounds::Warm(const Seat& seat, const Deadline& deadline) {
  const auto ranks = static_cast<std::size_t>(seat.world_size);
  RETURN_IF_ERROR(Reserve(kGreetingBytes * ranks));
  RETURN_IF_ERROR(driver_->Check(
      driver_->fill(CudaAddress(scratch_.get()), 0, kGreetingBytes * ranks, stream_), "zeros"));
  const auto place = [&](int rank) {
    return scratch_.get() + kGreetingBytes * static_cast<std::size_t>(rank);
  };
  constexpr const char* kWhat = "connecting the ranks";
  const auto greet = [&]() -> Status {
    for (int rank = 0; rank < seat.world_size; ++rank) {
      if (rank == seat.rank) continue;
      RETURN_IF_ERROR(Check(
          nccl_.send(place(seat.rank), kGreetingBytes, kNcclInt8, rank, communicator_, stream_),
          kWhat));
      RETURN_IF_ERROR(Check(
          nccl_.recv(place(rank), kGreetingBytes, kNcclInt8, rank, communicator_, stream_), kWhat));
    }
    return {};
  };
  RETURN_IF_ERROR(Group(deadline, greet));
  const auto add = [&] {
    return Check(nccl_.all_reduce(scratch_.get(), scratch_.get(), kGreetingBytes / sizeof(float),
                                  kNcclFloat32, kNcclSum, communicator_, stream_),
                 kWhat);
  };
  if (seat.all_reduce) RETURN_IF_ERROR(Group(deadline, add));
  return PollStream(deadline, kWhat);
}

Status NcclRounds::Group(const Deadline& deadline, const std::function<Status()>& operations) {
  RETURN_IF_ERROR(Check(nccl_.group_start(), "a round"));
  Status given = operations();
  launching_ = true;
  const int ended = nccl_.group_end();
  RETURN_IF_ERROR(given);
  RETURN_IF_ERROR(Check(ended, "a round"));
  return PollCommunicator(deadline, "a round");
}

// Kernels of NCCL end as soon as they see the abort. Nothing on the stream waits for an event that
// another rank must bring about, so the rest of it ends, too.
void NcclRounds::End() {
  if (communicator_ == nullptr) return;
  ending_ = std::jthread([this, communicator = std::exchange(communicator_, nullptr)] {
    nccl_.comm_abort(communicator);
  });
  if (std::exchange(launching_, false)) AwaitEnd();
  if (driver_->event_record(reached_, stream_) != kCudaSuccess) return AwaitEnd();
  while (driver_->event_query(reached_) == kCudaNotReady) std::this_thread::sleep_for(kDevicePoll);
}

void NcclRounds::AwaitEnd() {
  if (ending_.joinable()) ending_.join();
}

void NcclRounds::Exchange(const std::shared_ptr<Running>& running) {
  Status status = communicator_ == nullptr
                      ? Fail(ErrorCode::kUnavailable, "NCCL: there is no communicator")
                      : (running->sum.all_reduce ? Reduce(*running) : Rounds(*running));
  if (!status) End();
  std::function<void(Status)> when_over;
  {
    const std::lock_guard lock(mutex_);
    running->over = true;
    running->result = status;
    running->nodes.clear();
    running->sum.mean = {};
    when_over = std::exchange(running->when_over, nullptr);
    for (CudaEvent& event : running->ready)
      if (event != nullptr) spare_.push_back(std::exchange(event, nullptr));
  }
  if (when_over) when_over(std::move(status));
}

NcclRounds::Deadline NcclRounds::RoundsEnd(const ReductionPlan& plan) const {
  if (options_.max_shard == Duration::zero()) return std::nullopt;
  return steady_clock::now() + options_.max_shard * (plan.most_shards() + 1);
}

Status NcclRounds::AwaitBucket(Running& running, std::uint32_t bucket) {
  constexpr const char* kWhat = "the gradient of a step";
  CudaEvent ready = nullptr;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(
        lock, [&] { return running.ready[bucket] != nullptr || !running.queued || interrupted(); });
    RETURN_IF_ERROR(running.queued);
    ready = running.ready[bucket];
  }
  if (ready == nullptr) return Aborted(kWhat);
  return Poll({}, kWhat, [&]() -> std::optional<Status> {
    const int result = driver_->event_query(ready);
    if (result == kCudaNotReady) return std::nullopt;
    return driver_->Check(result, kWhat);
  });
}

Status NcclRounds::Rounds(Running& running) {
  const ReductionPlan& plan = *running.sum.plan;
  const BucketLayout& buckets = running.sum.buckets;
  static_assert(GradientRounds::kMaxNodes <= cuda::kMaxTreeInputs);
  // All buckets but the first and the last have the size of the second one.
  held_elements_ = 0;
  for (std::uint32_t bucket = 0; bucket < std::min(buckets.count(), 2U); ++bucket)
    held_elements_ = std::max(held_elements_, plan.MaxPiece(buckets.RangeOf(bucket).size));
  RETURN_IF_ERROR(Reserve(plan.held().size() * held_elements_ * sizeof(float)));
  Deadline deadline;
  for (std::size_t round = 0; round < plan.rounds(buckets.count()); ++round) {
    if (round < buckets.count())
      RETURN_IF_ERROR(AwaitBucket(running, static_cast<std::uint32_t>(round)));
    if (round + 1 >= buckets.count() && !deadline) deadline = RoundsEnd(plan);
    RETURN_IF_ERROR(Round(running, round, deadline));
  }
  return PollStream(deadline, "the rounds of a step");
}

Status NcclRounds::Round(const Running& running, std::size_t round, const Deadline& deadline) {
  const ReductionPlan& plan = *running.sum.plan;
  const BucketLayout& buckets = running.sum.buckets;
  using Body = std::function<Status(const ReductionPlan::Stage&, std::uint32_t bucket)>;
  const auto for_stages = [&](const Body& body) -> Status {
    for (std::size_t stage = 0; stage < plan.stages().size(); ++stage)
      if (stage <= round && round - stage < buckets.count())
        RETURN_IF_ERROR(body(plan.stages()[stage], static_cast<std::uint32_t>(round - stage)));
    return {};
  };
  const auto elements = [&](std::uint32_t bucket, const ReductionPlan::Part& part) {
    return plan.RangeOf(buckets.RangeOf(bucket), part.piece).size;
  };
  const auto transfer = [&] {
    return for_stages([&](const ReductionPlan::Stage& stage, std::uint32_t bucket) -> Status {
      for (const auto& [rank, part] : stage.sends) {
        const std::size_t count = elements(bucket, part);
        if (count == 0) continue;
        RETURN_IF_ERROR(Check(nccl_.send(PlaceOf(running, bucket, part), count, kNcclFloat32, rank,
                                         communicator_, stream_),
                              "sending"));
      }
      for (const auto& [rank, part] : stage.receives) {
        const std::size_t count = elements(bucket, part);
        if (count == 0) continue;
        RETURN_IF_ERROR(Check(nccl_.recv(PlaceOf(running, bucket, part), count, kNcclFloat32, rank,
                                         communicator_, stream_),
                              "receiving"));
      }
      return {};
    });
  };
  bool transfers = false;
  RETURN_IF_ERROR(for_stages([&](const ReductionPlan::Stage& stage, std::uint32_t) -> Status {
    transfers = transfers || !stage.sends.empty() || !stage.receives.empty();
    return {};
  }));
  if (transfers) RETURN_IF_ERROR(Group(deadline, transfer));  // NCCL leaks memory for an empty one
  return for_stages([&](const ReductionPlan::Stage& stage, std::uint32_t bucket) -> Status {
    for (const ReductionPlan::Addition& addition : stage.additions)
      if (elements(bucket, addition.sum) > 0) RETURN_IF_ERROR(Carry(running, bucket, addition));
    return {};
  });
}

Status NcclRounds::Carry(const Running& running, std::uint32_t bucket,
                         const ReductionPlan::Addition& addition) {
  const int piece = addition.sum.piece;
  const bool is_mean = addition.sum.node == ReductionPlan::kMean;
  const ReductionPlan& plan = *running.sum.plan;
  cuda::TreeSumArguments sum{
      .divisor = is_mean ? running.sum.divisor : 1,
      .out = PlaceOf(running, bucket, addition.sum),
      .elements = plan.RangeOf(running.sum.buckets.RangeOf(bucket), piece).size};
  for (std::size_t i = 0; i < addition.nodes.size(); ++i)
    sum.inputs[i] = PlaceOf(running, bucket, {.node = addition.nodes[i], .piece = piece});
  return kernels_->TreeSum(sum, addition.levels, stream_);
}

float* NcclRounds::PlaceOf(const Running& running, std::uint32_t bucket,
                           const ReductionPlan::Part& part) const {
  const ReductionPlan& plan = *running.sum.plan;
  const ElementRange range = plan.RangeOf(running.sum.buckets.RangeOf(bucket), part.piece);
  if (part.node == ReductionPlan::kMean) return running.sum.mean.view().data() + range.begin;
  if (const auto held = plan.HeldIndex(part))
    return reinterpret_cast<float*>(scratch_.get()) + *held * held_elements_;
  const auto own = std::ranges::find(running.nodes, part.node, &HeldNode::node);
  CHECK(own != running.nodes.end(), "a node of this rank, or one that it receives");
  return own->sum.view().data() + range.begin;
}

// Statistical: NCCL adds. A rank without nodes adds zeros.
Status NcclRounds::Reduce(Running& running) {
  const std::span<float> mean = running.sum.mean.view();
  Deadline deadline;
  const std::uint32_t buckets = running.sum.buckets.count();
  for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
    RETURN_IF_ERROR(AwaitBucket(running, bucket));
    if (bucket + 1 == buckets) deadline = RoundsEnd(*running.sum.plan);
    const ElementRange range = running.sum.buckets.RangeOf(bucket);
    float* const out = mean.data() + range.begin;
    cuda::TreeSumArguments sum{.out = out, .elements = range.size};
    CHECK(running.nodes.size() <= cuda::kMaxTreeInputs, "a learner's blocks are fewer");
    for (std::size_t i = 0; i < running.nodes.size(); ++i)
      sum.inputs[i] = running.nodes[i].sum.view().data() + range.begin;
    if (running.nodes.empty()) {
      RETURN_IF_ERROR(driver_->Check(
          driver_->fill(CudaAddress(out), 0, range.size * sizeof(float), stream_), "zeros"));
    } else {
      RETURN_IF_ERROR(kernels_->TreeSum(sum, ChainOf(running.nodes.size()), stream_));
    }
    const auto add = [&] {
      return Check(
          nccl_.all_reduce(out, out, range.size, kNcclFloat32, kNcclSum, communicator_, stream_),
          "adding");
    };
    RETURN_IF_ERROR(Group(deadline, add));
    sum = {.divisor = running.sum.divisor, .out = out, .elements = range.size};
    sum.inputs[0] = out;
    RETURN_IF_ERROR(kernels_->TreeSum(sum, ChainOf(1), stream_));
  }
  return PollStream(deadline, "the sum of a step");
}

Status NcclRounds::Reserve(std::size_t bytes) {
  if (bytes <= scratch_bytes_) return {};
  scratch_ = nullptr;
  scratch_bytes_ = 0;
  ASSIGN_OR_RETURN(scratch_, memory_->Allocate(bytes));
  scratch_bytes_ = bytes;
  return {};
}

}  // namespace pliant
