#include "trainer/collective/shared_memory.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/log.h"

namespace pliant {
namespace {

// MFD_NOEXEC_SEAL, which headers may lack. With vm.memfd_noexec=2 the kernel refuses a file without
// it.
constexpr unsigned kNoExecSeal = 0x0008U;

int MakeMemoryFile() {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int descriptor = ::memfd_create("pliant", kFlags | kNoExecSeal);
  if (descriptor >= 0 || errno != EINVAL) return descriptor;
  return ::memfd_create("pliant", kFlags);  // before Linux 6.3
}

std::unexpected<Error> Failed(const char* what) {
  return Fail(ErrorCode::kUnavailable,
              Format("{}: {}", what, std::generic_category().message(errno)));
}

}  // namespace

Result<std::shared_ptr<const SharedBlock>> SharedBlock::Make(std::uint64_t id, std::size_t bytes) {
  const int descriptor = MakeMemoryFile();
  if (descriptor < 0) return Failed("memfd_create");
  void* memory = MAP_FAILED;
  if (::ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 &&
      ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    auto error = Failed("shared memory");
    ::close(descriptor);
    return error;
  }
  return std::shared_ptr<const SharedBlock>(
      new SharedBlock(id, descriptor, {static_cast<std::byte*>(memory), bytes}));
}

SharedBlock::~SharedBlock() {
  ::munmap(view_.data(), view_.size());
  ::close(descriptor_);
}

Result<std::shared_ptr<const MappedBlock>> MappedBlock::Map(int descriptor, std::uint64_t bytes) {
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return Invalid("the peer sent a block that can shrink");
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || bytes == 0 ||
      bytes > static_cast<std::uint64_t>(status.st_size))
    return Invalid(Format("the peer sent a block of {} bytes, not {}", status.st_size, bytes));
  void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return Failed("map a peer's block");
  return std::shared_ptr<const MappedBlock>(
      new MappedBlock({static_cast<const std::byte*>(memory), bytes}));
}

MappedBlock::~MappedBlock() { ::munmap(const_cast<std::byte*>(view_.data()), view_.size()); }

SharedMemory::SharedMemory() : SharedMemory(SharedBlock::Make) {}
SharedMemory::SharedMemory(MakeBlock make)
    : make_(std::move(make)), blocks_(std::make_shared<Blocks>()) {}

Result<std::shared_ptr<const SharedBlock>> SharedMemory::Make(std::size_t bytes) {
  std::unique_lock lock(blocks_->mutex);
  const std::uint64_t id = ++blocks_->last_id;
  lock.unlock();
  auto made = make_(id, bytes);
  lock.lock();
  blocks_->refusal = made ? "" : made.error().message;
  return made;
}

Status SharedMemory::Probe() {
  constexpr std::size_t kLittle = 64;
  if (const auto made = Make(kLittle); !made) return std::unexpected(made.error());
  return {};
}

std::string SharedMemory::refusal() const {
  const std::lock_guard lock(blocks_->mutex);
  return blocks_->refusal;
}

std::shared_ptr<std::byte> SharedMemory::Allocate(std::size_t bytes) {
  // A block of 0 bytes cannot be mapped, and no peer needs to read it.
  if (bytes == 0) return HeapMemory().Allocate(bytes);
  const std::string before = refusal();
  auto made = Make(bytes);
  if (!made) {
    if (made.error().message != before)
      log::Warning("no shared memory", {{"error", made.error().message}});
    return HeapMemory().Allocate(bytes);
  }
  std::byte* const begin = (*made)->view().data();
  {
    const std::lock_guard lock(blocks_->mutex);
    blocks_->by_begin.insert_or_assign(begin, *made);
  }
  return {begin, [blocks = blocks_, block = *std::move(made)](std::byte* memory) mutable {
            {
              const std::lock_guard guard(blocks->mutex);
              blocks->by_begin.erase(memory);
            }
            block.reset();
          }};
}

std::optional<SharedMemory::Place> SharedMemory::Find(std::span<const std::byte> bytes) const {
  const std::lock_guard lock(blocks_->mutex);
  auto found = blocks_->by_begin.upper_bound(bytes.data());
  if (found == blocks_->by_begin.begin()) return std::nullopt;
  --found;
  auto block = found->second.lock();
  if (block == nullptr) return std::nullopt;
  const auto offset = static_cast<std::size_t>(bytes.data() - found->first);
  if (offset > block->view().size() || bytes.size() > block->view().size() - offset)
    return std::nullopt;
  return Place{.block = std::move(block), .offset = offset};
}

}  // namespace pliant
