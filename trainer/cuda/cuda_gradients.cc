#include "trainer/cuda/cuda_gradients.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <new>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/event_loop.h"
#include "base/log.h"
#include "trainer/collective/float_loops.h"
#include "trainer/collective/gradient_cells.h"
#include "trainer/collective/gradient_square.h"

namespace pliant {
namespace {

// A GPU that hangs does not keep a learner from ending.
constexpr std::chrono::seconds kDrain(10);
constexpr std::chrono::milliseconds kDrainPoll(1);

// A kernel counts the bytes of a block in 32 bits.
constexpr std::size_t kMaxCopy = std::size_t{1} << 30;

// Host memory that is made known to the device. Where the system does not allow it, the memory is
// used as it is.
class RegisteredSource final : public MemorySource {
 public:
  RegisteredSource(MemorySource& source, std::shared_ptr<const CudaDriver> driver,
                   CudaContext context)
      : source_(source), driver_(std::move(driver)), context_(context) {}

  std::shared_ptr<std::byte> Allocate(std::size_t bytes) override {
    std::shared_ptr<std::byte> memory = WholePages(bytes);
    const CurrentCudaContext current(*driver_, context_);
    if (!current.status()) return memory;
    const int result = driver_->host_register(memory.get(), Rounded(bytes), kCudaHostPortable);
    if (const Status registered = driver_->Check(result, "pinned host memory"); !registered) {
      log::Warning("copies of gradients will be slower: the memory is not pinned",
                   {{"error", registered.error().message}, {"bytes", bytes}});
      return memory;
    }
    std::byte* const begin = memory.get();
    return {begin, [driver = driver_, context = context_, memory](std::byte* unused) {
              const CurrentCudaContext again(*driver, context);
              if (again.status()) driver->host_unregister(unused);
            }};
  }

 private:
  static constexpr std::size_t kPage = 4096;
  static std::size_t Rounded(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

  // A page is registered once.
  std::shared_ptr<std::byte> WholePages(std::size_t bytes) {
    std::shared_ptr<std::byte> memory = source_.Allocate(Rounded(bytes));
    if (reinterpret_cast<std::uintptr_t>(memory.get()) % kPage == 0) return memory;
    std::size_t room = Rounded(bytes) + kPage;
    memory = source_.Allocate(room);
    void* aligned = memory.get();
    auto* const begin = static_cast<std::byte*>(std::align(kPage, Rounded(bytes), aligned, room));
    return {std::move(memory), begin};
  }

  MemorySource& source_;
  const std::shared_ptr<const CudaDriver> driver_;
  const CudaContext context_;
};

}  // namespace

class CudaGradients::DeviceSource final : public MemorySource {
 public:
  explicit DeviceSource(std::shared_ptr<CudaMemory> memory) : memory_(std::move(memory)) {}
  std::shared_ptr<std::byte> Allocate(std::size_t bytes) override {
    Result<std::shared_ptr<std::byte>> allocated = memory_->Allocate(bytes);
    if (!allocated) throw std::bad_alloc();
    return *std::move(allocated);
  }

 private:
  const std::shared_ptr<CudaMemory> memory_;
};

class CudaGradients::PinnedSource final : public MemorySource {
 public:
  explicit PinnedSource(std::shared_ptr<CudaMemory> memory) : memory_(std::move(memory)) {}
  std::shared_ptr<std::byte> Allocate(std::size_t bytes) override {
    Result<std::shared_ptr<std::byte>> allocated = memory_->AllocateHost(bytes);
    return allocated ? *std::move(allocated) : HeapMemory().Allocate(bytes);
  }

 private:
  const std::shared_ptr<CudaMemory> memory_;
};

Result<std::shared_ptr<CudaGradients>> CudaGradients::Make(std::shared_ptr<CudaMemory> memory,
                                                           std::vector<std::size_t> sizes) {
  std::shared_ptr<CudaGradients> gradients(new CudaGradients(std::move(memory), std::move(sizes)));
  RETURN_IF_ERROR(gradients->Load());
  return gradients;
}

CudaGradients::CudaGradients(std::shared_ptr<CudaMemory> memory, std::vector<std::size_t> sizes)
    : memory_(std::move(memory)),
      driver_(memory_->driver()),
      context_(memory_->context()),
      sizes_(std::move(sizes)),
      cells_(GradientCells(sizes_).count()),
      device_source_(std::make_unique<DeviceSource>(memory_)),
      pinned_source_(std::make_unique<PinnedSource>(memory_)) {
  std::size_t offset = 0;
  for (const std::size_t size : sizes_) {
    offsets_.push_back(offset);
    offset += size;
  }
}

Status CudaGradients::Load() {
  const CurrentCudaContext current(*driver_, context_);
  RETURN_IF_ERROR(current.status());
  int device = 0;
  RETURN_IF_ERROR(driver_->Check(driver_->device_get(&device, memory_->ordinal()), "cuDeviceGet"));
  ASSIGN_OR_RETURN(kernels_, CudaKernels::Load(driver_, device));
  RETURN_IF_ERROR(
      driver_->Check(driver_->stream_create(&copies_, kCudaNonBlockingStream), "a stream"));
  RETURN_IF_ERROR(
      driver_->Check(driver_->event_create(&queued_, kCudaEventWithoutTime), "an event"));
  if (cells_ > 0) {
    ASSIGN_OR_RETURN(lanes_, memory_->Allocate(cells_ * kSquareLanes * sizeof(double)));
  }
  ASSIGN_OR_RETURN(checksum_, memory_->Allocate(sizeof(std::uint64_t)));
  watch_ = std::make_unique<EventWatch>(driver_, context_);
  return {};
}

CudaGradients::~CudaGradients() {
  watch_.reset();
  const CurrentCudaContext current(*driver_, context_);
  if (queued_ != nullptr) driver_->event_destroy(queued_);
  if (copies_ != nullptr) driver_->stream_destroy(copies_);
  kernels_.reset();
}

MemorySource& CudaGradients::memory() { return *device_source_; }
MemorySource& CudaGradients::pinned_memory() { return *pinned_source_; }

std::unique_ptr<MemorySource> CudaGradients::Pinned(MemorySource& source) {
  return std::make_unique<RegisteredSource>(source, driver_, context_);
}

Status CudaGradients::Queue(const std::function<Status(CudaStream)>& queue) {
  const std::lock_guard lock(mutex_);
  if (!failed_) return failed_;
  const auto queue_now = [&]() -> Status {
    ASSIGN_OR_RETURN(const CudaStream stream, memory_->program_stream());
    const CurrentCudaContext current(*driver_, context_);
    RETURN_IF_ERROR(current.status());
    return queue(stream);
  };
  failed_ = queue_now();
  return failed_;
}

Status CudaGradients::CopiesAwait(CudaStream stream) {
  RETURN_IF_ERROR(driver_->Check(driver_->event_record(queued_, stream), "cuEventRecord"));
  return driver_->Check(driver_->stream_wait_event(copies_, queued_, 0), "cuStreamWaitEvent");
}

void CudaGradients::Zero(std::span<float> out) {
  if (out.empty()) return;
  Queue([&](CudaStream stream) {
    return driver_->Check(driver_->fill(CudaAddress(out.data()), 0, out.size_bytes(), stream),
                          "zeros");
  });
}

void CudaGradients::AddUp(std::span<const std::span<const float>> addends, std::span<float> out) {
  CHECK(addends.size() >= 2, "there is something to add");
  Mean(ChainOf(addends.size()), addends, 1, out);
}

void CudaGradients::Mean(const TreeLevels& levels, std::span<const std::span<const float>> nodes,
                         float divisor, std::span<float> out) {
  CHECK(nodes.size() <= cuda::kMaxTreeInputs, "a learner's blocks are fewer");
  cuda::TreeSumArguments sum{.divisor = divisor, .out = out.data(), .elements = out.size()};
  for (std::size_t i = 0; i < nodes.size(); ++i) sum.inputs[i] = nodes[i].data();
  Queue([&](CudaStream stream) { return kernels_->TreeSum(sum, levels, stream); });
}

Status CudaGradients::QueueSquares(std::span<const float* const> tensors, CudaStream stream) {
  cuda::SquaresArguments squares;
  std::size_t cell = 0;
  const auto launch = [&]() -> Status {
    RETURN_IF_ERROR(kernels_->Squares(squares, stream));
    squares.count = 0;
    return {};
  };
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (sizes_[i] == 0) continue;
    if (squares.count == 0)
      squares.lanes = reinterpret_cast<double*>(lanes_.get()) + cell * kSquareLanes;
    squares.data[squares.count] = tensors[i];
    squares.size[squares.count] = static_cast<std::uint32_t>(sizes_[i]);
    cell += (sizes_[i] + GradientCells::kElements - 1) / GradientCells::kElements;
    if (++squares.count == cuda::kMaxGathered) RETURN_IF_ERROR(launch());
  }
  return squares.count > 0 ? launch() : Status();
}

void CudaGradients::Squares(std::span<const float> gradient, std::span<double> lanes) {
  CHECK(lanes.size() == cells_ * kSquareLanes, "the lanes of all cells");
  std::vector<const float*> tensors;
  for (const std::size_t offset : offsets_) tensors.push_back(gradient.data() + offset);
  Queue([&](CudaStream stream) -> Status {
    RETURN_IF_ERROR(QueueSquares(tensors, stream));
    // On this stream: the next gradient's squares replace them.
    return driver_->Check(
        driver_->copy_to_host(lanes.data(), CudaAddress(lanes_.get()), lanes.size_bytes(), stream),
        "a copy to the host");
  });
}

void CudaGradients::Checksum(std::span<const float> gradient, std::uint64_t& sum) {
  Queue([&](CudaStream stream) -> Status {
    const auto address = CudaAddress(checksum_.get());
    RETURN_IF_ERROR(driver_->Check(driver_->fill(address, 0, sizeof sum, stream), "zeros"));
    RETURN_IF_ERROR(
        kernels_->Checksum({.words = reinterpret_cast<const std::uint64_t*>(gradient.data()),
                            .size = gradient.size_bytes(),
                            .sum = reinterpret_cast<unsigned long long*>(checksum_.get())},
                           stream));
    return driver_->Check(driver_->copy_to_host(&sum, address, sizeof sum, stream),
                          "a copy to the host");
  });
}

void CudaGradients::ToHost(std::span<const std::byte> from, std::span<std::byte> to) {
  CHECK(from.size() == to.size(), "equal sizes");
  if (from.empty()) return;
  Queue([&](CudaStream stream) -> Status {
    copies_wait_ = true;
    RETURN_IF_ERROR(CopiesAwait(stream));
    return driver_->Check(
        driver_->copy_to_host(to.data(), CudaAddress(from.data()), from.size(), copies_),
        "a copy to the host");
  });
}

void CudaGradients::Report(std::span<const std::byte> from, std::span<std::byte> to) {
  CHECK(from.size() == to.size(), "equal sizes");
  if (from.empty()) return;
  Queue([&](CudaStream stream) {
    return driver_->Check(
        driver_->copy_to_host(to.data(), CudaAddress(from.data()), from.size(), stream),
        "a copy to the host");
  });
}

void CudaGradients::ToDevice(std::span<const std::byte> from, std::span<std::byte> to) {
  CHECK(from.size() == to.size(), "equal sizes");
  if (from.empty()) return;
  Queue([&](CudaStream stream) {
    return driver_->Check(
        driver_->copy_to_device(CudaAddress(to.data()), from.data(), from.size(), stream),
        "a copy to the device");
  });
}

void CudaGradients::Then(std::function<void(Status)> done) {
  CudaStream last = copies_;
  Status queued = Queue([&](CudaStream stream) {
    if (std::exchange(copies_wait_, false)) return CopiesAwait(stream);
    last = stream;
    return Status();
  });
  const CurrentCudaContext current(*driver_, context_);
  watch_->Await(last, [this, queued = std::move(queued), done = std::move(done)](Status status) {
    {
      const std::lock_guard lock(mutex_);
      if (failed_ && !status) failed_ = status;
    }
    done(queued ? std::move(status) : queued);
  });
}

bool CudaGradients::Drain() {
  const auto await = [](const std::function<void(std::function<void()>)>& begin) {
    auto over = std::make_shared<std::atomic<bool>>(false);
    begin([over] { *over = true; });
    for (Duration waited{}; !*over && waited < kDrain; waited += kDrainPoll)
      std::this_thread::sleep_for(kDrainPoll);
    return over->load();
  };
  bool all = true;
  if (rounds_) all = await([this](std::function<void()> done) { rounds_->Abort(std::move(done)); });
  all = await([this](const std::function<void()>& done) {
          Then([done](const Status&) { done(); });
        }) &&
        all;
  watch_->Drop();
  return all;
}

Status CudaGradients::Gather(CudaKernels::Type type, std::span<const Given> given, float scale,
                             std::span<const float> left, std::span<float> out) {
  for (const Given& each : given)
    if (each.data != nullptr) RETURN_IF_ERROR(memory_->CheckOwned(each.data));
  return Queue([&](CudaStream stream) -> Status {
    cuda::GatherArguments gather{.scale = scale};
    std::size_t base = 0;  // of the launch's tensors, in the gradient
    const auto launch = [&]() -> Status {
      gather.left = left.empty() ? nullptr : left.data() + base;
      gather.out = out.data() + base;
      RETURN_IF_ERROR(kernels_->Gather(type, gather, stream));
      gather.count = 0;
      return {};
    };
    for (const auto& [parameter, data] : given) {
      if (sizes_[parameter] == 0) continue;
      if (gather.count == 0) base = offsets_[parameter];
      gather.data[gather.count] = data;
      gather.offset[gather.count] = static_cast<std::uint32_t>(offsets_[parameter] - base);
      gather.size[gather.count] = static_cast<std::uint32_t>(sizes_[parameter]);
      if (++gather.count == cuda::kMaxGathered) RETURN_IF_ERROR(launch());
    }
    return gather.count > 0 ? launch() : Status();
  });
}

Status CudaGradients::Copy(std::span<const DeviceMemory::Within> copies) {
  return Queue([&](CudaStream stream) -> Status {
    cuda::CopyArguments copy;
    const auto launch = [&]() -> Status {
      RETURN_IF_ERROR(kernels_->Copy(copy, stream));
      copy.count = 0;
      return {};
    };
    for (const auto& [from, to, bytes] : copies) {
      for (std::size_t begin = 0; begin < bytes; begin += kMaxCopy) {
        copy.from[copy.count] = from + begin;
        copy.to[copy.count] = to + begin;
        copy.size[copy.count] = static_cast<std::uint32_t>(std::min(kMaxCopy, bytes - begin));
        if (++copy.count == cuda::kMaxCopied) RETURN_IF_ERROR(launch());
      }
    }
    return copy.count > 0 ? launch() : Status();
  });
}

Result<double> CudaGradients::Norm(std::span<const float* const> tensors) {
  for (const float* const tensor : tensors)
    if (tensor != nullptr) RETURN_IF_ERROR(memory_->CheckOwned(tensor));
  std::vector<double> lanes(cells_ * kSquareLanes);
  const Status read = Queue([&](CudaStream stream) -> Status {
    RETURN_IF_ERROR(QueueSquares(tensors, stream));
    RETURN_IF_ERROR(driver_->Check(driver_->copy_to_host(lanes.data(), CudaAddress(lanes_.get()),
                                                         lanes.size() * sizeof(double), stream),
                                   "a copy to the host"));
    return driver_->Check(driver_->stream_synchronize(stream), "a copy to the host");
  });
  if (!read) return std::unexpected(read.error());
  return std::sqrt(GradientSquare::OfLanes(lanes));
}

}  // namespace pliant
