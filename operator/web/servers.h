#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/event_loop.h"
#include "base/http_server.h"
#include "base/listen_address.h"
#include "base/result.h"
#include "operator/web/access_reviews.h"

namespace pliant::web {

// Called on the control loop, where it takes what it needs; what it gives writes the text, on the
// servers' thread.
using TextSource = std::function<std::function<std::string()>()>;

struct Sources {
  TextSource metrics;                      // in Prometheus' text format
  TextSource snapshot;                     // what the planner saw last, as JSON; "" if nothing yet
  std::function<std::string()> not_ready;  // on the control loop: why it is not; "" if it is
};

struct ServersOptions {
  ListenAddress probes;
  ListenAddress metrics;
  std::optional<std::variant<TlsFiles, TlsPem>> metrics_tls;
  AccessReviews::Review review_metrics;  // none: everybody may read them
  std::uint16_t debug_port = 0;          // on loopback only
};

// The operator's HTTP: the probes on a thread of their own, so that nothing which others ask for is
// in their way; metrics and the debugger's view on another one. Neither waits for the control loop,
// and the control loop serves nobody: it is asked for what changed, once a second at most.
class Servers {
 public:
  // Listens, and serves at once. Before `control` runs; it runs no more when the servers end.
  static Result<std::unique_ptr<Servers>> Start(EventLoop& control, ServersOptions options,
                                                const Sources& sources);
  ~Servers();
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  std::uint16_t probes_port() const;
  std::uint16_t metrics_port() const;
  std::uint16_t debug_port() const;

 private:
  class Impl;
  explicit Servers(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace pliant::web
