#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <variant>

#include "operator/kube/http_transport.h"

namespace pliant::operator_sim {

enum class Fault {
  kNone,
  kCut,        // the request does not arrive, or the watch breaks off after some lines
  kCutDone,    // the request is executed, the answer does not arrive
  kLate,       // the request is executed, the answer arrives after the deadline
  kDeath,      // the process dies just before the request leaves
  kDeathDone,  // the request is executed, and the process dies before the answer arrives
};

// The outcome of a request: a fault, or an answer in place of the server's, which never receives
// it.
using Disposition = std::variant<Fault, kube::HttpResponse>;

// The life of one process. After its end nothing that the process sends arrives anywhere.
class Life {
 public:
  // `on_death`: the process must be destroyed, but not within this call.
  explicit Life(std::function<void()> on_death) : on_death_(std::move(on_death)) {}

  void End() {
    over_ = true;
    on_death_();
  }
  bool over() const { return over_; }

 private:
  const std::function<void()> on_death_;
  bool over_ = false;
};

// The transport between one process and one server.
class FaultyTransport final : public kube::HttpTransport {
 public:
  using Decide = std::function<Disposition(const kube::HttpRequest& request)>;
  // Receives each exchange of a living process, as the process sees it.
  using Observe =
      std::function<void(const kube::HttpRequest&, const Result<kube::HttpResponse>& answer)>;

  // `life` outlives the transport.
  FaultyTransport(Life& life, std::shared_ptr<kube::HttpTransport> server, Decide decide,
                  Observe observe)
      : life_(life),
        server_(std::move(server)),
        decide_(std::move(decide)),
        observe_(std::move(observe)) {}

  Result<kube::HttpResponse> Send(const kube::HttpRequest& request,
                                  std::stop_token stop = {}) override;
  Result<kube::HttpResponse> Stream(const kube::HttpRequest& request, const kube::LineSink& sink,
                                    Duration idle, std::stop_token stop = {}) override;

  int writes() const { return writes_; }  // number of writes that arrived

 private:
  Result<kube::HttpResponse> Exchange(const kube::HttpRequest& request, std::stop_token stop);
  Result<kube::HttpResponse> Watch(const kube::HttpRequest& request, const kube::LineSink& sink,
                                   Duration idle, std::stop_token stop);

  Life& life_;
  const std::shared_ptr<kube::HttpTransport> server_;
  const Decide decide_;
  const Observe observe_;
  int writes_ = 0;
};

}  // namespace pliant::operator_sim
