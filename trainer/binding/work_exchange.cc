#include "trainer/binding/work_exchange.h"

#include <utility>

namespace pliant {

Result<ShardSums> WorkExchange::Ask(const Work& work) {
  std::unique_lock lock(mutex_);
  if (refusal_) return std::unexpected(*refusal_);
  offered_ = &work;
  waiting_ = true;
  answer_.reset();
  changed_.notify_all();
  changed_.wait(lock, [this] { return answer_.has_value() || refusal_.has_value(); });
  offered_ = nullptr;
  waiting_ = false;
  if (refusal_) return std::unexpected(*refusal_);
  return *std::exchange(answer_, std::nullopt);
}

bool WorkExchange::Take(std::optional<Duration> most, Work& work) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return offered_ != nullptr || ended_; };
  if (most) {
    changed_.wait_for(lock, *most, ready);
  } else {
    changed_.wait(lock, ready);
  }
  if (offered_ == nullptr) return false;
  work = *std::exchange(offered_, nullptr);
  return true;
}

void WorkExchange::Answer(Result<ShardSums> answer) {
  const std::lock_guard lock(mutex_);
  if (!waiting_) return;  // it was refused meanwhile
  answer_ = std::move(answer);
  changed_.notify_all();
}

void WorkExchange::Refuse(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!refusal_) refusal_ = error;
  changed_.notify_all();
}

void WorkExchange::End() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

}  // namespace pliant
