#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/event_loop.h"
#include "base/host_port.h"
#include "base/http_server.h"
#include "base/result.h"
#include "operator/web/access_reviews.h"
#include "operator/web/routes.h"
#include "operator/web/timeline_recorder.h"

namespace pliant::web {

// Called on the control loop, where it takes the data it needs. The function that it returns writes
// the text on the servers' thread.
using TextSource = std::function<std::function<std::string()>()>;

struct Sources {
  TextSource metrics;   // in Prometheus' text format
  TextSource snapshot;  // the last plan with its input, as JSON; "" if there is none yet
  // on the control loop: explains the last plan, on the servers' thread; empty if there is none yet
  std::function<Explainer()> explainer;
  // on the control loop: why the operator is not ready; "" if it is
  std::function<std::string()> not_ready;
  // on the control loop: what may have changed in the cluster; not called without a timeline
  TimelineRecorder::Observe observe;
  std::function<history::WallTime()> now;
};

struct ServersOptions {
  HostPort probes;
  HostPort metrics;
  std::optional<std::variant<TlsFiles, TlsPem>> metrics_tls;
  AccessReviews::Review review_metrics;        // empty: everyone may read them
  std::uint16_t debug_port = 0;                // on loopback only
  std::optional<std::uint16_t> timeline_port;  // on loopback only; absent: nothing is recorded
  std::string replica;                         // names this process in the timeline
};

// The operator's HTTP servers: the probes on their own thread, so that no other request delays
// them; metrics and the debug view on another thread. Neither thread blocks on the control loop,
// and the control loop serves no request: it is asked for changes at most once a second.
class Servers {
 public:
  // Listens and serves at once. Call before `control` runs; `control` no longer runs when the
  // servers are destroyed.
  static Result<std::unique_ptr<Servers>> Start(EventLoop& control, ServersOptions options,
                                                const Sources& sources);
  ~Servers();
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  std::uint16_t probes_port() const;
  std::uint16_t metrics_port() const;
  std::uint16_t debug_port() const;
  std::uint16_t timeline_port() const;  // 0: there is none

 private:
  class Impl;
  explicit Servers(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace pliant::web
