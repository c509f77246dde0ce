#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "trainer/checkpoint/state_copy.h"

namespace pliant {

// Memory for a copy of the state. The copy released last is used again, because fresh memory costs
// as much as the copying.
class SpareCopy : public std::enable_shared_from_this<SpareCopy> {
 public:
  // The last owner may release it on any thread, also when this object no longer exists.
  std::shared_ptr<StateCopy> Take() {
    std::unique_ptr<StateCopy> copy;
    {
      const std::lock_guard lock(mutex_);
      copy = std::move(spare_);
    }
    if (!copy) copy = std::make_unique<StateCopy>();
    return {copy.release(), [self = shared_from_this()](StateCopy* back) {
              std::unique_ptr<StateCopy> owned(back);
              const std::lock_guard lock(self->mutex_);
              self->spare_.swap(owned);
            }};
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<StateCopy> spare_;  // guarded by mutex_
};

}  // namespace pliant
