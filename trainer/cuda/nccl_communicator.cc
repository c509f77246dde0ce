#include "trainer/cuda/nccl_communicator.h"

#include <cstring>
#include <utility>

#include "base/format.h"
#include "trainer/cuda/polling.h"

namespace pliant {
namespace {

using std::chrono::steady_clock;

// Elements of the messages with which two ranks connect.
constexpr std::size_t kGreeting = 16;

}  // namespace

NcclCommunicator::NcclCommunicator(std::shared_ptr<CudaMemory> memory,
                                   const NcclFunctions& functions,
                                   std::function<bool()> interrupted)
    : memory_(std::move(memory)),
      driver_(memory_->driver()),
      nccl_(functions),
      interrupted_(std::move(interrupted)) {}

NcclCommunicator::~NcclCommunicator() {
  End();
  AwaitEnd();
  if (reached_ != nullptr) driver_->event_destroy(reached_);
  if (stream_ != nullptr) driver_->stream_destroy(stream_);
}

Status NcclCommunicator::Prepare() {
  RETURN_IF_ERROR(
      driver_->Check(driver_->stream_create(&stream_, kCudaNonBlockingStream), "a stream"));
  return driver_->Check(driver_->event_create(&reached_, kCudaEventWithoutTime), "an event");
}

// ---- Waiting ----

Status NcclCommunicator::Check(int result, const char* what) const {
  if (result == kNcclSuccess || result == kNcclInProgress) return {};
  return Fail(ErrorCode::kUnavailable,
              Format("NCCL: {}: {}", what, nccl_.get_error_string(result)));
}

Status NcclCommunicator::Interrupted(const char* what) const {
  if (!interrupted_()) return {};
  return Fail(ErrorCode::kCancelled, Format("NCCL: {}: aborted", what));
}

Status NcclCommunicator::Poll(const Deadline& deadline, const char* what,
                              const std::function<std::optional<Status>()>& over) const {
  for (;;) {
    if (const std::optional<Status> status = over()) return *status;
    RETURN_IF_ERROR(Interrupted(what));
    if (deadline && steady_clock::now() > *deadline)
      return Fail(ErrorCode::kTimeout, Format("NCCL: {}: it takes too long", what));
    std::this_thread::sleep_for(kDevicePoll);
  }
}

// Waits until NCCL's asynchronous call has returned.
Status NcclCommunicator::PollState(const Deadline& deadline, const char* what) {
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

Status NcclCommunicator::AwaitStream(const Deadline& deadline, const char* what) {
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

// ---- Beginning ----

Result<CommunicatorId> NcclCommunicator::NewId() {
  // A new id starts a listener, which nothing would stop.
  RETURN_IF_ERROR(Interrupted("an id"));
  AwaitEnd();
  NcclUniqueId id{};
  RETURN_IF_ERROR(Check(nccl_.get_unique_id(&id), "ncclGetUniqueId"));
  CommunicatorId bytes{};
  static_assert(sizeof bytes == sizeof id);
  std::memcpy(bytes.data(), id.internal, sizeof id);
  return bytes;
}

Status NcclCommunicator::Create(const Communicators::Seat& seat, const Deadline& deadline) {
  constexpr const char* kWhat = "making a communicator";
  RETURN_IF_ERROR(Interrupted(kWhat));
  AwaitEnd();
  NcclUniqueId id{};
  std::memcpy(id.internal, seat.id.data(), sizeof id);
  NcclConfig config{.blocking = 0};
  RETURN_IF_ERROR(Check(
      nccl_.comm_init_rank_config(&communicator_, seat.world_size, id, seat.rank, &config), kWhat));
  RETURN_IF_ERROR(PollState(deadline, kWhat));
  return Warm(seat, deadline);
}

// NCCL connects two ranks when they first exchange something, which takes longer than a step.
Status NcclCommunicator::Warm(const Communicators::Seat& seat, const Deadline& deadline) {
  const std::size_t bytes = kGreeting * sizeof(float) * static_cast<std::size_t>(seat.world_size);
  RETURN_IF_ERROR(Reserve(bytes));
  RETURN_IF_ERROR(
      driver_->Check(driver_->fill(CudaAddress(scratch_.get()), 0, bytes, stream_), "zeros"));
  const auto place = [&](int rank) {
    return std::span(
        reinterpret_cast<float*>(scratch_.get()) + kGreeting * static_cast<std::size_t>(rank),
        kGreeting);
  };
  const auto greet = [&]() -> Status {
    for (int rank = 0; rank < seat.world_size; ++rank) {
      if (rank == seat.rank) continue;
      RETURN_IF_ERROR(Send(place(seat.rank), rank));
      RETURN_IF_ERROR(Receive(place(rank), rank));
    }
    return {};
  };
  RETURN_IF_ERROR(Group(deadline, greet));
  if (seat.all_reduce) RETURN_IF_ERROR(Group(deadline, [&] { return Add(place(0)); }));
  return AwaitStream(deadline, "connecting the ranks");
}

Status NcclCommunicator::Reserve(std::size_t bytes) {
  if (bytes <= scratch_bytes_) return {};
  scratch_ = nullptr;
  scratch_bytes_ = 0;
  ASSIGN_OR_RETURN(scratch_, memory_->Allocate(bytes));
  scratch_bytes_ = bytes;
  return {};
}

// ---- Operations ----

Status NcclCommunicator::Group(const Deadline& deadline, const std::function<Status()>& queue) {
  constexpr const char* kWhat = "a round";
  RETURN_IF_ERROR(Check(nccl_.group_start(), kWhat));
  Status queued = queue();
  launching_ = true;
  const int ended = nccl_.group_end();
  RETURN_IF_ERROR(queued);
  RETURN_IF_ERROR(Check(ended, kWhat));
  return PollState(deadline, kWhat);
}

Status NcclCommunicator::Send(std::span<const float> values, int rank) {
  return Check(nccl_.send(values.data(), values.size(), kNcclFloat32, rank, communicator_, stream_),
               "sending");
}

Status NcclCommunicator::Receive(std::span<float> values, int rank) {
  return Check(nccl_.recv(values.data(), values.size(), kNcclFloat32, rank, communicator_, stream_),
               "receiving");
}

Status NcclCommunicator::Add(std::span<float> values) {
  return Check(nccl_.all_reduce(values.data(), values.data(), values.size(), kNcclFloat32, kNcclSum,
                                communicator_, stream_),
               "adding");
}

// ---- Ending ----

// Kernels of NCCL end as soon as they see the abort. Nothing on the stream waits for an event that
// another rank must bring about, so the rest of it ends, too.
void NcclCommunicator::End() {
  if (communicator_ == nullptr) return;
  ending_ = std::jthread([this, communicator = std::exchange(communicator_, nullptr)] {
    nccl_.comm_abort(communicator);
  });
  if (std::exchange(launching_, false)) AwaitEnd();
  if (driver_->event_record(reached_, stream_) != kCudaSuccess) return AwaitEnd();
  while (driver_->event_query(reached_) == kCudaNotReady) std::this_thread::sleep_for(kDevicePoll);
}

void NcclCommunicator::AwaitEnd() {
  if (ending_.joinable()) ending_.join();
}

}  // namespace pliant
