#include "operator/web/servers.h"

#include <thread>
#include <utility>

#include "base/cached.h"
#include "base/real_event_loop.h"
#include "base/workers.h"
#include "operator/web/loop_pulse.h"
#include "operator/web/routes.h"
#include "operator/web/timeline_feed.h"
#include "operator/web/timeline_recorder.h"
#include "operator/web/timeline_routes.h"

namespace pliant::web {
namespace {

// A few scrapers and one person.
constexpr std::size_t kMaxConnections = 16;
// A browser has a few besides its stream.
constexpr std::size_t kMaxTimelineConnections = TimelineFeed::kMaxReaders + 32;
// The kubelet has one at a time; the others are for people.
constexpr std::size_t kMaxProbeConnections = 16;
constexpr Duration kTextLife = std::chrono::seconds(1);
constexpr int kReviewers = 2;
constexpr const char* kLoopback = "127.0.0.1";

// Servers on a thread of their own.
class Side {
 public:
  ~Side() { End(); }

  void End() {
    if (!thread_.joinable()) return;
    loop_.Post([this] {
      servers_.clear();
      loop_.Stop();
    });
    thread_.join();
  }

  // Call before Begin. Returns the port.
  Result<std::uint16_t> Listen(HttpServerOptions options, std::vector<HttpRoute> routes) {
    ASSIGN_OR_RETURN(auto server, HttpServer::Listen(loop_, std::move(options), std::move(routes)));
    servers_.push_back(std::move(server));
    return servers_.back()->port();
  }
  void Begin() {
    thread_ = std::jthread([this] { loop_.Run(); });
  }
  EventLoop& loop() { return loop_; }

 private:
  RealEventLoop loop_;
  std::vector<std::unique_ptr<HttpServer>> servers_;  // loop's thread only, once it runs
  std::jthread thread_;                               // last: joined before the rest is destroyed
};

// Takes the data on the control loop and writes the text on `loop`.
std::function<void(std::function<void(std::string)>)> ByWayOf(EventLoop& control, EventLoop& loop,
                                                              TextSource source) {
  return [&control, &loop, source = std::move(source)](std::function<void(std::string)> done) {
    control.Post([&loop, source, done = std::move(done)] {
      loop.Post([write = source(), done] { done(write()); });
    });
  };
}

std::function<void(std::function<void(Explainer)>)> TakenOn(EventLoop& control,
                                                            std::function<Explainer()> source) {
  return [&control, source = std::move(source)](std::function<void(Explainer)> done) {
    control.Post([source, done = std::move(done)] { done(source()); });
  };
}

}  // namespace

class Servers::Impl {
 public:
  Impl(EventLoop& control, const Sources& sources)
      : control_(control),
        observe_(sources.observe),
        now_(sources.now),
        pulse_(control, sources.not_ready),
        metrics_(side_.loop(), kTextLife, ByWayOf(control, side_.loop(), sources.metrics)),
        snapshot_(side_.loop(), kTextLife, ByWayOf(control, side_.loop(), sources.snapshot)),
        explainer_(side_.loop(), kTextLife, TakenOn(control, sources.explainer)) {}

  ~Impl() {
    // After these nothing uses the members that are destroyed next.
    probes_.End();
    side_.End();
  }

  Status Start(ServersOptions options) {
    ASSIGN_OR_RETURN(probes_port,
                     probes_.Listen({.name = "probes",
                                     .address = std::move(options.probes.host),
                                     .port = options.probes.port,
                                     .max_connections = kMaxProbeConnections},
                                    ProbeRoutes([this] { return pulse_.last(); }, &MonotonicNow)));
    decltype(HttpRoute::admit_later) admit;
    if (options.review_metrics) {
      reviewers_.emplace("access reviews", kReviewers);
      reviews_.emplace(side_.loop(), controller::ExecutorOf(*reviewers_),
                       std::move(options.review_metrics));
      admit = [this](std::string_view token, std::function<void(Access)> done) {
        reviews_->Ask(token, std::move(done));
      };
    }
    ASSIGN_OR_RETURN(metrics_port, side_.Listen({.name = "metrics",
                                                 .address = std::move(options.metrics.host),
                                                 .port = options.metrics.port,
                                                 .tls = std::move(options.metrics_tls),
                                                 .max_connections = kMaxConnections},
                                                MetricsRoutes(metrics_, std::move(admit))));
    ASSIGN_OR_RETURN(debug_port, side_.Listen({.name = "debug",
                                               .address = kLoopback,
                                               .port = options.debug_port,
                                               .max_connections = kMaxConnections},
                                              DebugRoutes(snapshot_, explainer_)));
    if (options.timeline_port) {
      RETURN_IF_ERROR(ServeTimeline(*options.timeline_port, std::move(options.replica)));
    }
    probes_.Begin();
    side_.Begin();
    return {};
  }

  std::uint16_t probes_port = 0;
  std::uint16_t metrics_port = 0;
  std::uint16_t debug_port = 0;
  std::uint16_t timeline_port = 0;

 private:
  Status ServeTimeline(std::uint16_t port, std::string replica) {
    feed_.emplace(std::move(replica));
    ASSIGN_OR_RETURN(timeline_port, side_.Listen({.name = "timeline",
                                                  .address = kLoopback,
                                                  .port = port,
                                                  .max_connections = kMaxTimelineConnections,
                                                  .only_local_names = true},
                                                 TimelineRoutes(*feed_)));
    // The control loop only collects; the timeline is written and encoded on the other thread.
    recorder_.emplace(
        control_, now_, observe_,
        [this](history::WallTime now, std::vector<history::Observation> seen) {
          side_.loop().Post([this, now, seen = std::move(seen)] { feed_->Take(now, seen); });
        });
    return {};
  }

  EventLoop& control_;
  const TimelineRecorder::Observe observe_;
  const std::function<history::WallTime()> now_;
  LoopPulse pulse_;  // synchronises itself
  Side side_;        // serves metrics and the debug view
  // Used on the thread of side_, as is reviews_.
  CachedText metrics_;
  CachedText snapshot_;
  Cached<Explainer> explainer_;
  std::optional<TimelineFeed> feed_;
  std::optional<AccessReviews> reviews_;
  std::optional<Workers> reviewers_;
  Side probes_;
  std::optional<TimelineRecorder> recorder_;  // control loop's thread
};

Result<std::unique_ptr<Servers>> Servers::Start(EventLoop& control, ServersOptions options,
                                                const Sources& sources) {
  auto impl = std::make_unique<Impl>(control, sources);
  RETURN_IF_ERROR(impl->Start(std::move(options)));
  return std::unique_ptr<Servers>(new Servers(std::move(impl)));
}

Servers::Servers(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Servers::~Servers() = default;
std::uint16_t Servers::probes_port() const { return impl_->probes_port; }
std::uint16_t Servers::metrics_port() const { return impl_->metrics_port; }
std::uint16_t Servers::debug_port() const { return impl_->debug_port; }
std::uint16_t Servers::timeline_port() const { return impl_->timeline_port; }

}  // namespace pliant::web
