#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "tests/unit/planner/builders.h"

namespace pliant::planner {

// A World in which time passes as in a real cluster: the operator plans again whenever its last
// plan says so, programs end, jobs arrive, and the clocks of each job run (time waited, GPU time
// attained, time below the minimum).
class TimedWorld {
 public:
  TimedWorld() : world({}) {}

  // The behaviour of a job's program.
  struct Program {
    std::optional<LearnerCount> starts;  // only this many of its learners start; absent: all
    std::optional<Seconds> runs;         // it has finished after that; absent: never
    Seconds has_run{0};
  };

  void Submit(const JobOf& job, const Program& program);
  void SubmitAt(WallTime time, JobOf job, const Program& program);
  // Lets time pass, up to and including what happens by itself at `end`. Does not plan then.
  void PassUntil(WallTime end);
  // Carries out plans until they change nothing. Throws std::runtime_error if that takes many.
  void Settle();
  void Observe();  // updates the clocks of jobs: the operator does so before it plans

  JobView& Job(const std::string& name);  // throws std::runtime_error if there is none
  void EndLearners(const std::string& job);
  void EndLearnersOn(const std::string& node);

  World world;
  std::map<std::string, Program> programs;  // by job
  // Namespaces that may use the queue; absent: all.
  std::map<std::string, std::set<std::string>> namespaces_of_queue;

 private:
  struct Arrival {
    JobOf job;
    Program program;
  };

  void StartLearners();
  void AdvanceTo(WallTime time);
  WallTime NextEvent(WallTime end) const;
  void LetHappen();

  std::multimap<WallTime, Arrival> arrivals_;
};

}  // namespace pliant::planner
