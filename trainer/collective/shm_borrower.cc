#include "trainer/collective/shm_borrower.h"

#include <cstring>
#include <utility>

#include "base/format.h"

namespace pliant {
namespace {

constexpr std::size_t kMaxBlocks = 4096;  // of one peer

}  // namespace

ShmBorrower::ShmBorrower(BytePool& pool, std::uint64_t max_payload_bytes,
                         std::function<void()> wake)
    : pool_(pool),
      max_payload_bytes_(max_payload_bytes),
      returns_(std::make_shared<ShmReturnQueue>(std::move(wake))) {}

Status ShmBorrower::Map(const ShmRecord& record, int descriptor) {
  ASSIGN_OR_RETURN(auto mapped, MappedBlock::Map(descriptor, record.bytes));
  if (record.block == 0 || blocks_.size() >= kMaxBlocks ||
      !blocks_.emplace(record.block, std::move(mapped)).second)
    return Invalid("the peer gave a block twice, or too many");
  return {};
}

Status ShmBorrower::Forget(std::uint64_t block) {
  if (blocks_.erase(block) == 0) return Invalid("the peer forgot a block that it never gave");
  return {};
}

Result<Bytes> ShmBorrower::Borrow(const ShmRecord& record, Access access) {
  const auto found = blocks_.find(record.block);
  if (found == blocks_.end()) return Invalid("a payload in a block that the peer never gave");
  const std::span<const std::byte> block = found->second->view();
  if (record.bytes == 0 || record.bytes > max_payload_bytes_ || record.offset > block.size() ||
      record.bytes > block.size() - record.offset)
    return Invalid(Format("a payload of {} bytes at {} in a block of {}", record.bytes,
                          record.offset, block.size()));
  const auto view = block.subspan(static_cast<std::size_t>(record.offset),
                                  static_cast<std::size_t>(record.bytes));
  const std::uint64_t number = ++last_;
  if (access == Access::kInPlace) {
    std::shared_ptr<const std::byte> borrowed(
        view.data(), [mapped = found->second, returns = returns_, number](const std::byte*) {
          returns->Add(number);
        });
    return Bytes{.owner = std::move(borrowed), .view = view};
  }
  MutableBytes copy = pool_.Take(view.size());
  std::memcpy(copy.view.data(), view.data(), view.size());
  returns_->Add(number);
  return Bytes{.owner = std::move(copy.owner), .view = copy.view};
}

}  // namespace pliant
