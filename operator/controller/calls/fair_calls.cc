#include "operator/controller/calls/fair_calls.h"

#include <algorithm>
#include <utility>

namespace pliant::controller {

FairCalls::FairCalls(EventLoop& loop, Executor executor, FairCallsOptions options)
    : loop_(loop), executor_(std::move(executor)), options_(options) {}

void FairCalls::Run(const std::string& owner, std::function<void()> call) {
  RunWhatIsDue(owner, [call = std::move(call)] { return call; });
}

void FairCalls::RunWhatIsDue(const std::string& owner, Prepare prepare) {
  owners_[owner].waiting.push_back(std::move(prepare));
  Begin();
}

FairCalls::Owners::iterator FairCalls::Next() {
  if (under_way_ >= options_.at_a_time) return owners_.end();
  const auto may_begin = [this](const Owners::value_type& entry) {
    return !entry.second.waiting.empty() && entry.second.under_way < options_.of_one;
  };
  const auto after = owners_.upper_bound(last_);
  const auto found = std::find_if(after, owners_.end(), may_begin);
  if (found != owners_.end()) return found;
  const auto again = std::find_if(owners_.begin(), after, may_begin);
  return again == after ? owners_.end() : again;
}

void FairCalls::Begin() {
  for (auto turn = Next(); turn != owners_.end(); turn = Next()) {
    last_ = turn->first;
    const Prepare prepare = std::move(turn->second.waiting.front());
    turn->second.waiting.pop_front();
    std::function<void()> call = prepare();
    if (!call) {
      if (turn->second.under_way == 0 && turn->second.waiting.empty()) owners_.erase(turn);
      continue;
    }
    ++turn->second.under_way;
    ++under_way_;
    executor_(
        [this, watch = lifetime_.watch(), owner = last_, call = std::move(call), &loop = loop_] {
          call();
          loop.Post([this, watch, owner] {
            if (!watch.over()) OnEnd(owner);
          });
        });
  }
}

void FairCalls::OnEnd(const std::string& owner) {
  const auto ended = owners_.find(owner);
  --under_way_;
  if (--ended->second.under_way == 0 && ended->second.waiting.empty()) owners_.erase(ended);
  Begin();
}

}  // namespace pliant::controller
