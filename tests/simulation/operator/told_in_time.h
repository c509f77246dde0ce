#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/event_loop.h"
#include "operator/planner/plan.h"
#include "tests/simulation/operator/trainings.h"

namespace pliant::operator_sim {

// The invariant that no job is deaf: a learner that the plan drops receives the word to leave
// within two seconds, whatever the API server refuses, as long as its coordinator answers.
class ToldInTime {
 public:
  // All outlive it. `violated` is called once for each learner whose word comes too late.
  ToldInTime(EventLoop& loop, const Trainings& trainings,
             std::function<void(const std::string& what)> violated)
      : loop_(loop), trainings_(trainings), violated_(std::move(violated)) {}

  // Called once a second. `plan`: the leader's, if it is undisturbed, else null.
  void Look(const planner::Plan* plan);

 private:
  EventLoop& loop_;
  const Trainings& trainings_;
  const std::function<void(const std::string& what)> violated_;
  std::map<std::string, TimePoint> untold_since_;  // by uid of the job and name of the learner
};

}  // namespace pliant::operator_sim
