#pragma once

#include <functional>

#include "base/backoff.h"
#include "base/result.h"
#include "trainer/checkpoint/checkpointer.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/tasks.h"

namespace pliant {

// The trained model on the volume. The job is complete when the model is there, not when rank 0
// says so. Lives as long as the learner.
class FinalModel {
 public:
  struct Parts {  // borrowed
    Tasks& tasks;
    Compute& compute;
    Checkpointer& checkpointer;
  };
  struct Hooks {
    std::function<void(const Manifest& model)> found;  // perhaps published by this learner
    std::function<bool()> wanted;                      // whether to continue to look for it
    std::function<void(const Error& why)> not_published;
    std::function<void()> try_again;  // after a pause, which grows
  };

  FinalModel(Parts parts, Hooks hooks) : parts_(parts), hooks_(std::move(hooks)) {}

  // For rank 0: publishes the program's state. Does nothing if it is publishing already.
  void Publish(CheckpointLabel label);
  // Looks for the model periodically while it is wanted. Does nothing if it is looking already.
  void Poll();

 private:
  void Export(const CheckpointLabel& label);
  void OnFailed(const Error& error);

  const Parts parts_;
  const Hooks hooks_;
  bool publishing_ = false;
  bool polling_ = false;
  Backoff backoff_{{}};
};

}  // namespace pliant
