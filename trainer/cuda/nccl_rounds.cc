#include "trainer/cuda/nccl_rounds.h"

#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/hex.h"
#include "trainer/cuda/polling.h"

namespace pliant {

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
    : memory_(std::move(memory)),
      options_(options),
      events_(std::make_unique<CudaEvents>(memory_->driver())),
      communicator_(std::make_unique<NcclCommunicator>(memory_, functions,
                                                       [this] { return interrupted(); })) {}

Status NcclRounds::Prepare(const NcclLibrary& library) {
  const CudaDriver& driver = *memory_->driver();
  const CurrentCudaContext current(driver, memory_->context());
  RETURN_IF_ERROR(current.status());
  std::array<std::byte, 16> uuid{};
  RETURN_IF_ERROR(
      driver.Check(driver.device_get_uuid(uuid.data(), memory_->ordinal()), "the GPU's UUID"));
  partner_ = {.version = library.version(), .device = Hex(uuid)};
  // NCCL takes ranks with different values of this variable for ranks of different hosts.
  if (const char* const host = std::getenv("NCCL_HOSTID")) partner_.device += Format("/{}", host);
  ASSIGN_OR_RETURN(kernels_, CudaKernels::Load(memory_->driver(), memory_->ordinal()));
  RETURN_IF_ERROR(communicator_->Prepare());
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  return {};
}

NcclRounds::~NcclRounds() {
  if (thread_.joinable()) {
    stopping_ = true;
    if (const auto running = sum()) running->Wake();
    thread_.request_stop();
    thread_.join();
  }
  const CurrentCudaContext current(*memory_->driver(), memory_->context());
  sum_.reset();
  communicator_.reset();
  kernels_.reset();
  events_.reset();
}

// ---- Any thread ----

void NcclRounds::Do(std::function<void()> command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  changed_.notify_all();
}

std::shared_ptr<NcclSum> NcclRounds::sum() {
  const std::lock_guard lock(mutex_);
  return sum_;
}

void NcclRounds::NewId(std::function<void(Result<CommunicatorId>)> done) {
  Do([this, done = std::move(done)] { done(communicator_->NewId()); });
}

void NcclRounds::Join(const Seat& seat, std::function<void(Status)> done) {
  Do([this, seat, done = std::move(done)] {
    CHECK(!communicator_->exists(), "one communicator at a time");
    Status created =
        communicator_->Create(seat, std::chrono::steady_clock::now() + options_.max_creation);
    if (!created) communicator_->End();
    done(std::move(created));
  });
}

void NcclRounds::Abort(std::function<void()> done) {
  ++aborts_;
  if (const auto running = sum()) running->Wake();
  Do([this, done = std::move(done)] {
    communicator_->End();
    communicator_->AwaitEnd();
    --aborts_;
    done();
  });
}

// ---- The program's thread ----

void NcclRounds::Begin(Sum asked) {
  const auto begun =
      std::make_shared<NcclSum>(std::move(asked), NcclSum::Parts{.memory = *memory_,
                                                                 .events = *events_,
                                                                 .kernels = *kernels_,
                                                                 .communicator = *communicator_});
  {
    const std::lock_guard lock(mutex_);
    CHECK(sum_ == nullptr || sum_->over(), "one sum at a time");
    sum_ = begun;
  }
  Do([this, begun] {
    const Status status = begun->Run(options_.max_shard);
    if (!status) communicator_->End();
    begun->End(status);
  });
}

void NcclRounds::Add(std::span<const HeldNode> nodes, std::uint32_t bucket) {
  sum()->Add(nodes, bucket);
}

void NcclRounds::WhenOver(std::function<void(Status)> done) {
  const auto begun = sum();
  CHECK(begun != nullptr, "a sum was begun");
  begun->WhenOver(std::move(done));
}

// ---- NCCL's thread ----

void NcclRounds::Run(const std::stop_token& stop) {
  SleepPrecisely();
  const CurrentCudaContext current(*memory_->driver(), memory_->context());
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !commands_.empty(); })) {
    const std::function<void()> command = std::move(commands_.front());
    commands_.pop_front();
    lock.unlock();
    command();
    lock.lock();
  }
  lock.unlock();
  communicator_->End();
  communicator_->AwaitEnd();
}

}  // namespace pliant
