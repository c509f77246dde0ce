#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "trainer/collective/byte_pool.h"
#include "trainer/collective/shared_memory.h"

namespace pliant {

// The payloads that one peer may read in this process's memory. Each stays unchanged until the peer
// returns it. Also tracks which blocks of memory were announced to the peer.
class ShmLender {
 public:
  // `memory` outlives it.
  explicit ShmLender(SharedMemory& memory);

  struct Loan {
    std::shared_ptr<const SharedBlock> block;
    std::size_t offset = 0;                // of the payload in the block
    bool announce = false;                 // the block must be sent to the peer first
    std::vector<std::uint64_t> forgotten;  // ids of released blocks, to send to the peer
  };
  // Lends a payload, or a copy of it if it does not lie in shared memory. Empty: the kernel gives
  // no shared memory for the copy.
  std::optional<Loan> Lend(Bytes payload);
  // Loans are numbered from 1, in their order. kInvalid: there is no such loan.
  Status Return(std::uint64_t number);
  void ReturnAll() { loans_.clear(); }

  std::uint64_t bytes() const { return bytes_; }
  // The number of loans since the first that was not returned.
  std::size_t loans() const { return loans_.size(); }

 private:
  struct Lent {
    std::shared_ptr<const void> owner;
    std::size_t bytes = 0;  // 0: it was returned
  };
  bool Announce(const std::shared_ptr<const SharedBlock>& block,
                std::vector<std::uint64_t>& forgotten);

  SharedMemory& memory_;
  BytePool staging_;  // for payloads that do not lie in shared memory
  std::map<std::uint64_t, std::weak_ptr<const SharedBlock>> announced_;
  std::deque<Lent> loans_;   // mostly returned in order; the first is not returned yet
  std::uint64_t first_ = 1;  // the number of the first in loans_
  std::uint64_t bytes_ = 0;
};

}  // namespace pliant
