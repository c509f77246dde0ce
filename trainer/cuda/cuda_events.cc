#include "trainer/cuda/cuda_events.h"

namespace pliant {

CudaEvents::~CudaEvents() {
  for (const CudaEvent event : spare_) driver_->event_destroy(event);
}

Result<CudaEvent> CudaEvents::Record(CudaStream stream) {
  ASSIGN_OR_RETURN(const CudaEvent event, Take());
  if (const Status recorded = driver_->Check(driver_->event_record(event, stream), "cuEventRecord");
      !recorded) {
    Return(event);
    return std::unexpected(recorded.error());
  }
  return event;
}

Result<CudaEvent> CudaEvents::Take() {
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      const CudaEvent event = spare_.back();
      spare_.pop_back();
      return event;
    }
  }
  CudaEvent event = nullptr;
  RETURN_IF_ERROR(driver_->Check(driver_->event_create(&event, kCudaEventWithoutTime), "an event"));
  return event;
}

void CudaEvents::Return(CudaEvent event) {
  const std::lock_guard lock(mutex_);
  spare_.push_back(event);
}

std::optional<Status> CudaEvents::Reached(CudaEvent event, const char* what) const {
  const int result = driver_->event_query(event);
  if (result == kCudaNotReady) return std::nullopt;
  return driver_->Check(result, what);
}

}  // namespace pliant
