#include "trainer/runtime/operation_queue.h"

#include <algorithm>
#include <utility>

namespace pliant {

void OperationQueue::DropTicks() {
  std::erase_if(waiting_, [](const Waiting& each) { return each.kind == Kind::kTick; });
}

std::optional<OperationQueue::Begin> OperationQueue::Next() {
  if (waiting_.empty()) return std::nullopt;
  const Kind kind = waiting_.front().kind;
  if (kind == Kind::kChange && copies_ > 0) return std::nullopt;
  if (kind == Kind::kCopy) ++copies_;
  ++begun_;
  Begin begin = std::move(waiting_.front().begin);
  waiting_.pop_front();
  return begin;
}

}  // namespace pliant
