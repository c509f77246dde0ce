#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "base/lifetime.h"
#include "operator/controller/calls/executor.h"

namespace pliant::controller {

// At most a quarter of the threads per owner: one with a slow admission webhook must leave threads
// for the others.
struct FairCallsOptions {
  int at_a_time = 32;  // as many as the executor has threads
  int of_one = 8;      // of one owner at a time
};

// Shares an executor's threads among owners: they take turns, and the calls of one owner start in
// the order in which they came. Control thread.
class FairCalls {
 public:
  // `loop` outlives all calls.
  FairCalls(EventLoop& loop, Executor executor, FairCallsOptions options);
  FairCalls(const FairCalls&) = delete;
  FairCalls& operator=(const FairCalls&) = delete;

  void Run(const std::string& owner, std::function<void()> call);
  // As Run, for a call that is built when its turn comes, on the control thread. An empty one: it
  // is no longer needed.
  using Prepare = std::function<std::function<void()>()>;
  void RunWhatIsDue(const std::string& owner, Prepare prepare);

 private:
  struct Owner {
    std::deque<Prepare> waiting;
    int under_way = 0;
  };
  using Owners = std::map<std::string, Owner>;

  // The owner whose turn it is; end(): no owner may start a call now.
  Owners::iterator Next();
  void Begin();
  void OnEnd(const std::string& owner);

  EventLoop& loop_;
  const Executor executor_;
  const FairCallsOptions options_;
  Owners owners_;     // with calls that wait or are under way
  std::string last_;  // the owner that had the last turn
  int under_way_ = 0;
  const Lifetime lifetime_;
};

}  // namespace pliant::controller
