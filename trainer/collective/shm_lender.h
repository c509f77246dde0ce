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

// The payloads that one peer may read in this process's memory: each stays as it is until the peer
// returns it. Knows which blocks of memory the peer has been told of.
class ShmLender {
 public:
  // `memory` outlives it.
  explicit ShmLender(SharedMemory& memory);

  struct Loan {
    std::shared_ptr<const SharedBlock> block;
    std::size_t offset = 0;                // of the payload in it
    bool announce = false;                 // the peer is to be given the block first
    std::vector<std::uint64_t> forgotten;  // the peer is to be told that these are gone
  };
  // Lends a payload, or a copy of it if it does not lie in shared memory. Empty: the kernel gives
  // none to copy it to.
  std::optional<Loan> Lend(Bytes payload);
  // Loans are numbered from 1, in their order. kInvalid: there is no such loan.
  Status Return(std::uint64_t number);
  void ReturnAll() { loans_.clear(); }

  std::uint64_t bytes() const { return bytes_; }
  // Since the first that was not returned.
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
  std::deque<Lent> loans_;   // mostly returned in order; the first is not
  std::uint64_t first_ = 1;  // the number of the first in loans_
  std::uint64_t bytes_ = 0;
};

}  // namespace pliant
