#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "trainer/checkpoint/checkpointer.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/tasks.h"

namespace pliant {

// The file of what the program says of its best model.
inline constexpr std::string_view kBestNote = "best.json";

// Writes the best model so far, in place of the one before, while the training continues. Lives as
// long as the learner.
class BestModel {
 public:
  struct Parts {  // borrowed
    Tasks& tasks;
    Compute& compute;
    Checkpointer& checkpointer;
  };
  // `ended` is called once for each Export, whatever became of it.
  BestModel(Parts parts, std::function<void()> ended) : parts_(parts), ended_(std::move(ended)) {}

  // The state does not change before the copy is made. `note`: the program's text for this model.
  void Export(CheckpointLabel label, std::string note);

 private:
  struct Model {
    CheckpointLabel label;
    std::string note;
    std::shared_ptr<const StateCopy> state;
    int tries = 0;
  };
  void Write(const std::shared_ptr<Model>& model);
  void OnFailed(const std::shared_ptr<Model>& model, const Error& error);

  const Parts parts_;
  const std::function<void()> ended_;
  std::shared_ptr<Model> newest_;  // an older one is not tried again
};

}  // namespace pliant
