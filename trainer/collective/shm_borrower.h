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

// The payloads that one peer has lent, in blocks of its memory that are mapped here. The peer is
// not trusted: every offset and size is checked against the block, which cannot shrink.
class ShmBorrower {
 public:
  // `pool` outlives it. `wake` is called when a payload was read, so that TakeReturns has something
  // to return; on any thread, also when the borrower no longer exists.
  ShmBorrower(BytePool& pool, std::uint64_t max_payload_bytes, std::function<void()> wake);

  // Maps the memory file `descriptor` as the block that `record` names. The caller may close the
  // descriptor afterwards.
  Status Map(const ShmRecord& record, int descriptor);
  Status Forget(std::uint64_t block);

  enum class Access {
    kInPlace,  // the peer may change the payload while it is read
    kCopy,
  };
  // Borrows the payload that `record` names. It is returned to the peer when its last owner
  // releases it or, if it is copied, at once.
  Result<Bytes> Borrow(const ShmRecord& record, Access access);
  // Moves the numbers of payloads to return into `numbers`, which is empty before.
  void TakeReturns(std::vector<std::uint64_t>& numbers) { returns_->MoveTo(numbers); }

 private:
  BytePool& pool_;
  const std::uint64_t max_payload_bytes_;
  const std::shared_ptr<ShmReturnQueue> returns_;
  std::map<std::uint64_t, std::shared_ptr<const MappedBlock>> blocks_;
  std::uint64_t last_ = 0;  // the number of the last loan
};

}  // namespace pliant
