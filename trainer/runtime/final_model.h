#pragma once

#include <functional>

#include "base/backoff.h"
#include "base/result.h"
#include "trainer/checkpoint/checkpointer.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/tasks.h"

namespace pliant {

// The trained model on the volume: that it is there, not the word of rank 0, is what completes the
// job. Lives as long as the learner.
class FinalModel {
 public:
  struct Parts {  // borrowed
    Tasks& tasks;
    Compute& compute;
    Checkpointer& checkpointer;
  };
  struct Hooks {
    std::function<void(const Manifest& model)> found;  // perhaps published by this learner
    std::function<bool()> wanted;                      // whether to go on looking for it
    std::function<void(const Error& why)> not_published;
    std::function<void()> try_again;  // after a pause, which grows
  };

  FinalModel(Parts parts, Hooks hooks) : parts_(parts), hooks_(std::move(hooks)) {}

  // Rank 0, with the state that the program holds. Does nothing while it is at it.
  void Publish(CheckpointLabel label);
  // Looks for it now and then, as long as it is wanted. Does nothing while it does.
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
