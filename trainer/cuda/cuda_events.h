#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "trainer/cuda/cuda_driver.h"

namespace pliant {

// Events that mark points of streams, used again and again. Any thread; the context is current in
// each call, and when this is destroyed.
class CudaEvents {
 public:
  explicit CudaEvents(std::shared_ptr<const CudaDriver> driver) : driver_(std::move(driver)) {}
  ~CudaEvents();
  CudaEvents(const CudaEvents&) = delete;
  CudaEvents& operator=(const CudaEvents&) = delete;

  // An event behind all that `stream` has now. Give it back when it is no longer needed.
  Result<CudaEvent> Record(CudaStream stream);
  void Return(CudaEvent event);
  // Whether the stream has reached the event, or never will because of an error. None: not yet.
  std::optional<Status> Reached(CudaEvent event, const char* what) const;

 private:
  Result<CudaEvent> Take();

  const std::shared_ptr<const CudaDriver> driver_;
  std::mutex mutex_;
  std::vector<CudaEvent> spare_;  // guarded by mutex_
};

}  // namespace pliant
