#include "base/cached_text.h"

#include <utility>

namespace pliant {

CachedText::CachedText(EventLoop& loop, Duration life,
                       std::function<void(std::function<void(std::string)>)> make)
    : loop_(loop), life_(life), make_(std::move(make)) {}

void CachedText::Get(Done done) {
  if (text_ && !making_ && loop_.Now() - begun_ < life_) {
    const auto text = text_;  // `done` may call Get again
    done(*text);
    return;
  }
  waiting_.push_back(std::move(done));
  if (std::exchange(making_, true)) return;
  begun_ = loop_.Now();
  make_([this, &loop = loop_, watch = lifetime_.watch()](std::string text) {
    loop.Post([this, watch, text = std::move(text)]() mutable {
      if (!watch.over()) Take(std::move(text));
    });
  });
}

void CachedText::Take(std::string text) {
  text_ = std::make_shared<const std::string>(std::move(text));
  making_ = false;
  const auto made = text_;
  for (const Done& done : std::exchange(waiting_, {})) done(*made);
}

}  // namespace pliant
