#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "base/http_server.h"
#include "base/lifetime.h"
#include "operator/controller/calls/executor.h"
#include "operator/kube/kube_error.h"
#include "operator/web/access_cache.h"

namespace pliant::web {

// Lets the API server decide who gets access. Tokens are neither stored nor logged. All on the
// thread of `loop`, which outlives this.
class AccessReviews {
 public:
  static constexpr std::size_t kMaxUnderWay = 32;
  using Review = std::function<kube::KubeResult<Access>(const std::string& token)>;

  // `review` asks the server and blocks; `run` calls it.
  AccessReviews(EventLoop& loop, controller::Executor run, Review review);
  AccessReviews(const AccessReviews&) = delete;
  AccessReviews& operator=(const AccessReviews&) = delete;

  // `done` is called now or later.
  void Ask(std::string_view token, std::function<void(Access)> done);

 private:
  void Take(const TokenHash& token, const kube::KubeResult<Access>& decided);

  EventLoop& loop_;
  const controller::Executor run_;
  const Review review_;
  AccessCache cache_;
  std::map<TokenHash, std::vector<std::function<void(Access)>>> under_way_;
  bool failing_ = false;  // whether the last review failed; logged once
  // Results that arrive after this object is destroyed are dropped. Last member: destroyed first.
  const Lifetime lifetime_;
};

}  // namespace pliant::web
