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

// Of one owner a quarter: who keeps its own calls waiting, by a slow admission webhook, leaves the
// others threads for theirs.
struct FairCallsOptions {
  int at_a_time = 32;  // as many as the executor has threads
  int of_one = 8;      // owner at a time
};

// Lets owners share an executor's threads: each has its turn, with the calls of one in the order in
// which they came. Control thread.
class FairCalls {
 public:
  // `loop` outlives all calls.
  FairCalls(EventLoop& loop, Executor executor, FairCallsOptions options);
  FairCalls(const FairCalls&) = delete;
  FairCalls& operator=(const FairCalls&) = delete;

  void Run(const std::string& owner, std::function<void()> call);
  // The same of a call that is worked out when its turn comes, on the control thread. An empty one:
  // there is none any more.
  using Prepare = std::function<std::function<void()>()>;
  void RunWhatIsDue(const std::string& owner, Prepare prepare);

 private:
  struct Owner {
    std::deque<Prepare> waiting;
    int under_way = 0;
  };
  using Owners = std::map<std::string, Owner>;

  // Whose turn it is; the end: nobody's, for now.
  Owners::iterator Next();
  void Begin();
  void OnEnd(const std::string& owner);

  EventLoop& loop_;
  const Executor executor_;
  const FairCallsOptions options_;
  Owners owners_;     // with calls that wait or are under way
  std::string last_;  // whose turn it was
  int under_way_ = 0;
  const Lifetime lifetime_;
};

}  // namespace pliant::controller
