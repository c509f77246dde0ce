#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "base/real_event_loop.h"
#include "trainer/process/run_learner.h"
#include "trainer/runtime/learner_loop.h"

namespace pliant {

// Passes requests of other threads on to the event loop, as long as this object lives.
class ControlPort {
 public:
  ControlPort(RealEventLoop& loop, LearnerLoop& learner, Duration grace)
      : shared_(std::make_shared<Shared>()), learner_(learner), grace_(grace) {
    shared_->loop = &loop;
  }
  ~ControlPort() {
    const std::lock_guard lock(shared_->mutex);
    shared_->loop = nullptr;
  }

  LearnerControl control() {
    const auto post = [shared = shared_](std::function<void()> task) {
      const std::lock_guard lock(shared->mutex);
      if (shared->loop != nullptr) shared->loop->Post(std::move(task));
    };
    return {.leave = [this, post] { post([this] { learner_.RequestLeave(grace_); }); },
            .fail =
                [this, post](Error error) {
                  post([this, error = std::move(error)] { learner_.Fail(error); });
                },
            .ask_for_learners =
                [this, post](int learners) {
                  post([this, learners] { learner_.AskForLearners(learners); });
                }};
  }

 private:
  struct Shared {
    std::mutex mutex;
    RealEventLoop* loop = nullptr;
  };

  const std::shared_ptr<Shared> shared_;
  LearnerLoop& learner_;
  const Duration grace_;
};

}  // namespace pliant
