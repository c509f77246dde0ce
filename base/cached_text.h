#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/lifetime.h"

namespace pliant {

// A text that costs something to make: made once for all who ask within `life`, and never twice at
// a time. Everything on the thread of `loop`, which outlives this.
class CachedText {
 public:
  using Done = std::function<void(const std::string& text)>;

  // `make` has the text made and gives it to `done`, on any thread, perhaps before it returns. Time
  // counts from when it is called.
  CachedText(EventLoop& loop, Duration life,
             std::function<void(std::function<void(std::string)> done)> make);
  CachedText(const CachedText&) = delete;
  CachedText& operator=(const CachedText&) = delete;

  // `done` is called now or later; never, if the text is never made.
  void Get(Done done);

 private:
  void Take(std::string text);

  EventLoop& loop_;
  const Duration life_;
  const std::function<void(std::function<void(std::string)>)> make_;
  std::shared_ptr<const std::string> text_;  // none: none was made yet
  TimePoint begun_{};                        // of the text, or of the one that is being made
  bool making_ = false;
  std::vector<Done> waiting_;
  // What comes after this object is gone is dropped. Last: gone first.
  const Lifetime lifetime_;
};

}  // namespace pliant
