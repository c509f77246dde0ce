#include "trainer/runtime/pulled_thread.h"

#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/exceptions.h"

namespace pliant {

void PulledThread::Run(Operation& operation, Over over) {
  {
    const std::lock_guard lock(mutex_);
    if (!refusal_) {
      given_ = {.operation = &operation, .over = std::move(over)};
      changed_.notify_all();
      return;
    }
  }
  over(std::unexpected(*refusal_));  // written once
}

void PulledThread::Stop() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !at_it_; });
  given_.reset();
}

bool PulledThread::Next(std::optional<Duration> max) {
  CHECK(!work_, "the work before was answered");
  const auto deadline =
      max.transform([](Duration time) { return std::chrono::steady_clock::now() + time; });
  const auto ready = [this] { return given_ || ended_; };
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (deadline) {
        changed_.wait_until(lock, *deadline, ready);
      } else {
        changed_.wait(lock, ready);
      }
      if (!given_) return false;
      at_it_ = true;
    }
    if (const auto refused = refusal()) {
      Finish(std::unexpected(*refused));
    } else if (Step()) {
      return true;
    }
  }
}

bool PulledThread::Step() {
  const Status stepped = CatchAll([this] { work_ = given_->operation->Next(); });
  if (!work_) {
    Finish(stepped);
    return false;
  }
  // Next may have taken a while.
  const auto refused = refusal();
  if (refused) Answer(std::unexpected(*refused));
  return !refused;
}

std::optional<Error> PulledThread::refusal() {
  const std::lock_guard lock(mutex_);
  return refusal_;
}

void PulledThread::Answer(Result<ShardSums> sums) {
  CHECK(work_, "there is work to answer");
  work_.reset();
  Operation& operation = *given_->operation;
  const Status stepped = CatchAll([&] { operation.Done(std::move(sums)); });
  if (!stepped || operation.over()) return Finish(stepped);
  ReleaseProgram();
}

void PulledThread::Close(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!refusal_) refusal_ = error;
}

void PulledThread::Refuse(const Error& error) {
  Close(error);
  {
    const std::lock_guard lock(mutex_);
    if (!given_) return;
    at_it_ = true;
  }
  if (work_) return Answer(std::unexpected(error));
  Finish(std::unexpected(error));
}

void PulledThread::Finish(Status done) {
  Over over;
  {
    const std::lock_guard lock(mutex_);
    over = std::move(given_->over);
    given_.reset();
  }
  over(std::move(done));
  ReleaseProgram();
}

void PulledThread::ReleaseProgram() {
  const std::lock_guard lock(mutex_);
  at_it_ = false;
  changed_.notify_all();
}

void PulledThread::End() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

}  // namespace pliant
