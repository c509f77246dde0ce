#pragma once

#include <functional>

#include "operator/kube/http_transport.h"

namespace pliant::operator_sim {

enum class Fault {
  kNone,
  kCut,        // the request does not arrive, or the watch breaks off after some lines
  kCutDone,    // it is done, the answer does not arrive
  kThrottle,   // 429, with Retry-After
  kServer,     // 503
  kDeath,      // the process dies just before the request leaves
  kDeathDone,  // it is done, and the process dies before it hears of it
};

// What one process has between itself and the server. Once it is dead nothing passes.
class FaultyTransport final : public kube::HttpTransport {
 public:
  using Decide = std::function<Fault(const kube::HttpRequest& request)>;

  // `on_death`: the process is to end, though not within this call.
  FaultyTransport(kube::HttpTransport& server, Decide decide, std::function<void()> on_death)
      : server_(server), decide_(std::move(decide)), on_death_(std::move(on_death)) {}

  Result<kube::HttpResponse> Send(const kube::HttpRequest& request,
                                  std::stop_token stop = {}) override;
  Result<kube::HttpResponse> Stream(const kube::HttpRequest& request, const kube::LineSink& sink,
                                    Duration idle, std::stop_token stop = {}) override;

  bool dead() const { return dead_; }
  int writes() const { return writes_; }  // that arrived

 private:
  void Die();

  kube::HttpTransport& server_;
  const Decide decide_;
  const std::function<void()> on_death_;
  bool dead_ = false;
  int writes_ = 0;
};

}  // namespace pliant::operator_sim
