#include "trainer/collective/shm_lender.h"

#include <cstring>
#include <utility>

namespace pliant {
namespace {

constexpr std::size_t kStagingKeptBytes = std::size_t{64} << 20;

}  // namespace

ShmLender::ShmLender(SharedMemory& memory) : memory_(memory), staging_(kStagingKeptBytes, memory) {}

std::optional<ShmLender::Loan> ShmLender::Lend(Bytes payload) {
  std::optional<SharedMemory::Place> place = memory_.Find(payload.view);
  if (!place) {
    MutableBytes copy = staging_.Take(payload.view.size());
    std::memcpy(copy.view.data(), payload.view.data(), payload.view.size());
    place = memory_.Find(copy.view);
    payload.owner = std::move(copy.owner);
  }
  if (!place) return std::nullopt;
  Loan loan{.block = std::move(place->block), .offset = place->offset, .forgotten = {}};
  loan.announce = Announce(loan.block, loan.forgotten);
  loans_.push_back({.owner = std::move(payload.owner), .bytes = payload.view.size()});
  bytes_ += payload.view.size();
  return loan;
}

// Whether the block is new to the peer. Released blocks leave the list with the next new one.
bool ShmLender::Announce(const std::shared_ptr<const SharedBlock>& block,
                         std::vector<std::uint64_t>& forgotten) {
  if (announced_.contains(block->id())) return false;
  std::erase_if(announced_, [&](const auto& entry) {
    if (!entry.second.expired()) return false;
    forgotten.push_back(entry.first);
    return true;
  });
  announced_.emplace(block->id(), block);
  return true;
}

Status ShmLender::Return(std::uint64_t number) {
  const std::uint64_t place = number - first_;  // wraps to a huge value for a number before first_
  if (place >= loans_.size() || loans_[place].bytes == 0)
    return Invalid("the peer returned what it was not lent");
  bytes_ -= loans_[place].bytes;
  loans_[place] = {};
  for (; !loans_.empty() && loans_.front().bytes == 0; ++first_) loans_.pop_front();
  return {};
}

}  // namespace pliant
