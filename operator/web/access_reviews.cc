#include "operator/web/access_reviews.h"

#include <utility>

#include "base/log.h"
#include "operator/web/access_review.h"

namespace pliant::web {

AccessReviews::AccessReviews(EventLoop& loop, controller::Executor run, Review review)
    : loop_(loop), run_(std::move(run)), review_(std::move(review)) {}

void AccessReviews::Ask(std::string_view token, std::function<void(Access)> done) {
  if (!IsBearerToken(token)) {
    done(Access::kUnknown);
    return;
  }
  const TokenHash hash = HashOf(token);
  if (const auto known = cache_.Find(hash, loop_.Now())) {
    done(*known);
    return;
  }
  auto asked = under_way_.find(hash);
  if (asked != under_way_.end()) {
    asked->second.push_back(std::move(done));
    return;
  }
  if (under_way_.size() >= kMaxUnderWay) {
    done(Access::kUndecided);
    return;
  }
  under_way_[hash].push_back(std::move(done));
  run_([this, hash, token = std::string(token), review = review_, &loop = loop_,
        watch = lifetime_.watch()] {
    loop.Post([this, watch, hash, decided = review(token)] {
      if (!watch.over()) Take(hash, decided);
    });
  });
}

void AccessReviews::Take(const TokenHash& token, const kube::KubeResult<Access>& decided) {
  // Do not log the server's sentence: it might quote the token.
  if (std::exchange(failing_, !decided) != failing_) {
    if (decided) {
      log::Info("the API server reviews tokens again", {});
    } else {
      log::Warning(
          "the API server does not review tokens: new clients cannot read metrics until it does",
          {{"error", ToString(decided.error().code)},
           {"http_status", decided.error().http_status}});
    }
  }
  const Access access = decided.value_or(Access::kUndecided);
  cache_.Put(token, access, loop_.Now());
  const auto node = under_way_.extract(token);
  for (const auto& done : node.mapped()) done(access);
}

}  // namespace pliant::web
