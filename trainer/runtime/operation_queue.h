#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

namespace pliant {

// The operations that wait for a learner's program, in the order of the calls: the rules of
// Compute, without I/O. One operation runs at a time, so that each sees the state that the earlier
// ones left. Copies of the state run in parallel with what follows them, up to the next change.
class OperationQueue {
 public:
  enum class Kind : std::uint8_t {
    kTick,
    kCopy,    // of the state
    kChange,  // of the state
  };
  using Begin = std::move_only_function<void()>;

  void Add(Kind kind, Begin begin) { waiting_.push_back({kind, std::move(begin)}); }
  void DropTicks();
  // The operation that begins now, while none but copies runs. None: nothing waits, or a change
  // waits for copies, which have to see the state before it.
  std::optional<Begin> Next();
  void OnCopied() { --copies_; }
  // The number of operations begun so far.
  std::uint64_t begun() const { return begun_; }

 private:
  struct Waiting {
    Kind kind = Kind::kTick;
    Begin begin;
  };

  std::deque<Waiting> waiting_;
  int copies_ = 0;  // running
  std::uint64_t begun_ = 0;
};

}  // namespace pliant
