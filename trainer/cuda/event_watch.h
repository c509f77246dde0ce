#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "base/result.h"
#include "trainer/cuda/cuda_driver.h"
#include "trainer/cuda/cuda_events.h"

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
  // Cancels all waits, and blocks until a callback that runs has returned.
  void Drop();

 private:
  struct Waiting {
    CudaEvent event = nullptr;
    Status recorded;
    std::function<void(Status)> done;
  };

  void Run(const std::stop_token& stop);
  // The status of a point that was reached, or never will be. None: not yet.
  std::optional<Status> StatusOf(const Waiting& waiting) const;

  const std::shared_ptr<const CudaDriver> driver_;
  const CudaContext context_;
  std::optional<CudaEvents> events_;  // ends while the context is current

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  std::deque<Waiting> waiting_;
  bool calling_ = false;

  std::jthread thread_;  // last: it uses the rest
};

}  // namespace pliant
