#pragma once

#include <functional>
#include <string>
#include <utility>

#include "trainer/protocol/hang_detector.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/tasks.h"

namespace pliant {

// Checks the running call to the program, and reports once if it takes too long. During a hang the
// learner still sends heartbeats, so nobody else can detect it.
class HangWatch {
 public:
  // `timeout`: maximum duration of one call to the program; zero: no limit. `on_hang` receives a
  // sentence.
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
