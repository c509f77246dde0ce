#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/lifetime.h"

namespace pliant {

// A text that is expensive to make: made once for all callers within `life`, and never twice at the
// same time. Everything runs on the thread of `loop`, which outlives this.
class CachedText {
 public:
  using Done = std::function<void(const std::string& text)>;

  // `make` produces the text and passes it to `done`, on any thread, perhaps before `make` returns.
  // `life` counts from the call of `make`.
  CachedText(EventLoop& loop, Duration life,
             std::function<void(std::function<void(std::string)> done)> make);
  CachedText(const CachedText&) = delete;
  CachedText& operator=(const CachedText&) = delete;

  // `done` is called now or later; if the text is never made, it is never called.
  void Get(Done done);

 private:
  void Take(std::string text);

  EventLoop& loop_;
  const Duration life_;
  const std::function<void(std::function<void(std::string)>)> make_;
  std::shared_ptr<const std::string> text_;  // null: no text was made yet
  TimePoint begun_{};                        // the start of the current or the running `make`
  bool making_ = false;
  std::vector<Done> waiting_;
  // Drops texts that arrive after this object is destroyed. Last, so that it is destroyed first.
  const Lifetime lifetime_;
};

}  // namespace pliant
