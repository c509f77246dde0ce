#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/result.h"
#include "trainer/collective/byte_pool.h"
#include "trainer/collective/shared_memory.h"
#include "trainer/collective/shm_records.h"
#include "trainer/collective/shm_return_queue.h"

namespace pliant {

// The payloads that one peer has lent, in blocks of its memory that are mapped here. Nothing that
// the peer says is believed: every place is checked against the block, which cannot shrink.
class ShmBorrower {
 public:
  // `pool` outlives it. `wake`: a payload was read, so there is something in TakeReturns. It may be
  // called on any thread, also when the borrower is gone.
  ShmBorrower(BytePool& pool, std::uint64_t max_payload_bytes, std::function<void()> wake);

  // The block that `record` names is the memory file `descriptor`, which is not needed afterwards.
  Status Map(const ShmRecord& record, int descriptor);
  Status Forget(std::uint64_t block);

  enum class Access {
    kInPlace,  // the peer may change the payload while it is read
    kCopy,
  };
  // The payload that `record` names. It is returned when its last owner lets go of it or, of a
  // copy, at once.
  Result<Bytes> Borrow(const ShmRecord& record, Access access);
  // The numbers of payloads to be returned. `numbers` is empty.
  void TakeReturns(std::vector<std::uint64_t>& numbers) { returns_->MoveTo(numbers); }

 private:
  BytePool& pool_;
  const std::uint64_t max_payload_bytes_;
  const std::shared_ptr<ShmReturnQueue> returns_;
  std::map<std::uint64_t, std::shared_ptr<const MappedBlock>> blocks_;
  std::uint64_t last_ = 0;  // the number of the last loan
};

}  // namespace pliant
