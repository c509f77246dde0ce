#pragma once

#include <functional>
#include <string>
#include <utility>

#include "trainer/protocol/hang_detector.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/tasks.h"

namespace pliant {

// Looks at what the program is at, and tells once when that takes too long. Meanwhile the learner
// lives and says so: nobody else can tell that it will not go on.
class HangWatch {
 public:
  // `timeout`: for one call to the program; zero: any time. `on_hang` gets a sentence.
  HangWatch(Duration timeout, Tasks& tasks, const Compute& compute,
            std::function<void(std::string hang)> on_hang)
      : watch_(timeout), tasks_(tasks), compute_(compute), on_hang_(std::move(on_hang)) {}

  void Start() {
    if (watch_.watches()) Look();
  }

 private:
  void Look() {
    if (auto hang = watch_.Look(compute_.call(), tasks_.Now())) return on_hang_(*std::move(hang));
    tasks_.After(watch_.pause(), [this] { Look(); });
  }

  HangDetector watch_;
  Tasks& tasks_;
  const Compute& compute_;
  const std::function<void(std::string)> on_hang_;
};

}  // namespace pliant
