#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/result.h"
#include "trainer/cuda/cuda_driver.h"

namespace pliant {

// Tells when streams have reached a point, in the order of the calls. A thread of its own polls the
// driver while there is something to wait for: a call of the driver that waits could not be
// abandoned when a GPU hangs.
class EventWatch {
 public:
  // The context is there as long as this is.
  EventWatch(std::shared_ptr<const CudaDriver> driver, CudaContext context);
  ~EventWatch();
  EventWatch(const EventWatch&) = delete;
  EventWatch& operator=(const EventWatch&) = delete;

  // Calls `done` on the watch's thread, once all that `stream` has now is complete, or with the
  // error of the driver. The context is current.
  void Await(CudaStream stream, std::function<void(Status)> done);
  // Forgets all that it was asked before. If it is calling just now, waits for that.
  void Drop();

 private:
  struct Waiting {
    CudaEvent event = nullptr;
    Status recorded;
    std::function<void(Status)> done;
  };

  Result<CudaEvent> TakeEvent();
  void Run(const std::stop_token& stop);
  // Whether the point was reached, or never will be.
  bool IsOver(const Waiting& waiting, Status& status) const;

  const std::shared_ptr<const CudaDriver> driver_;
  const CudaContext context_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  std::deque<Waiting> waiting_;
  std::vector<CudaEvent> spare_;
  bool calling_ = false;

  std::jthread thread_;  // last: it uses the rest
};

}  // namespace pliant
