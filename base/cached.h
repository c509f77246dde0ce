#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/lifetime.h"

namespace pliant {

// A value that is expensive to make: made once for all callers within `life`, and never twice at
// the same time. Everything runs on the thread of `loop`, which outlives this.
template <typename T>
class Cached {
 public:
  using Done = std::function<void(const T& value)>;

  // `make` produces the value and passes it to `done`, on any thread, perhaps before `make`
  // returns. `life` counts from the call of `make`.
  Cached(EventLoop& loop, Duration life, std::function<void(std::function<void(T)> done)> make)
      : loop_(loop), life_(life), make_(std::move(make)) {}
  Cached(const Cached&) = delete;
  Cached& operator=(const Cached&) = delete;

  // `done` is called now or later; if the value is never made, it is never called.
  void Get(Done done) {
    if (value_ && !making_ && loop_.Now() - begun_ < life_) {
      const auto value = value_;  // `done` may call Get again
      done(*value);
      return;
    }
    waiting_.push_back(std::move(done));
    if (std::exchange(making_, true)) return;
    begun_ = loop_.Now();
    make_([this, &loop = loop_, watch = lifetime_.watch()](T value) {
      loop.Post([this, watch, value = std::move(value)]() mutable {
        if (!watch.over()) Take(std::move(value));
      });
    });
  }

 private:
  void Take(T value) {
    value_ = std::make_shared<const T>(std::move(value));
    making_ = false;
    const auto made = value_;
    for (const Done& done : std::exchange(waiting_, {})) done(*made);
  }

  EventLoop& loop_;
  const Duration life_;
  const std::function<void(std::function<void(T)>)> make_;
  std::shared_ptr<const T> value_;  // null: none was made yet
  TimePoint begun_{};               // the start of the current or the running `make`
  bool making_ = false;
  std::vector<Done> waiting_;
  // Drops values that arrive after this object is destroyed. Last, so that it is destroyed first.
  const Lifetime lifetime_;
};

using CachedText = Cached<std::string>;

}  // namespace pliant
