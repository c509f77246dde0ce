#include "operator/kube/lease_elector.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <utility>

#include "base/log.h"
#include "operator/kube/lease_steps.h"
#include "operator/kube/wall_time.h"

namespace pliant::kube {
namespace {

std::string WallTime() { return MicroTime(std::chrono::system_clock::now()); }

}  // namespace

class LeaseElector::Impl {
 public:
  Impl(KubeClient& client, EventLoop& control, LeaseElectorOptions options)
      : control_(control),
        options_(std::move(options)),
        steps_(client, options_.lease, options_.identity, options_.timing),
        random_(std::random_device()()) {}

  void Run(const std::stop_token& stop) {
    bool elected = false;
    while (!stop.stop_requested()) {
      Wait(steps_.Next(WallTime(), std::uniform_real_distribution()(random_), stop), stop);
      const LeasePolicy& policy = steps_.policy();
      const TimePoint now = MonotonicNow();
      Publish();
      if (!elected && policy.Leads(now)) {
        elected = true;
        log::Info("elected leader", {{"lease", ToString(options_.lease)},
                                     {"identity", options_.identity},
                                     {"transitions", policy.transitions()}});
        control_.Post([tell = options_.on_elected, term = policy.transitions()] { tell(term); });
      }
      if (policy.Lost(now)) {
        log::Error("leadership lost",
                   {{"lease", ToString(options_.lease)}, {"holder", policy.holder()}});
        control_.Post(options_.on_lost);
        return;
      }
    }
  }

  // Call after Run has returned.
  void Release() {
    const std::optional<LeaseRecord> released = steps_.StopLeading(WallTime());
    Publish();
    if (released) steps_.WriteReleased(*released);
  }

  bool MayWrite() const { return MonotonicNow().time_since_epoch().count() < leads_until_; }
  void ForbidWrites() { leads_until_ = TimePoint::min().time_since_epoch().count(); }

  std::string Leader() const {
    const std::lock_guard lock(mutex_);
    return leader_;
  }

 private:
  void Wait(Duration wait, const std::stop_token& stop) {
    if (wait <= Duration::zero()) return;
    std::unique_lock lock(mutex_);
    never_.wait_for(lock, stop, wait, [] { return false; });
  }

  void Publish() {
    leads_until_ = steps_.policy().leads_until().time_since_epoch().count();
    const std::lock_guard lock(mutex_);
    leader_ = steps_.policy().holder();
  }

  EventLoop& control_;
  const LeaseElectorOptions options_;

  // The elector's thread only; after it has ended, the thread that calls Release.
  LeaseSteps steps_;
  std::mt19937_64 random_;

  std::atomic<Duration::rep> leads_until_{TimePoint::min().time_since_epoch().count()};
  mutable std::mutex mutex_;
  std::condition_variable_any never_;
  std::string leader_;  // guarded by mutex_
};

ClientOptions LeaseElector::OptionsOfClient() {
  return {.requests_per_second = 0,
          .read_deadline = std::chrono::seconds(3),
          .write_deadline = std::chrono::seconds(3)};
}

LeaseElector::LeaseElector(KubeClient& client, EventLoop& control, LeaseElectorOptions options)
    : impl_(std::make_unique<Impl>(client, control, std::move(options))),
      thread_([this](const std::stop_token& stop) { impl_->Run(stop); }) {}

LeaseElector::~LeaseElector() = default;

bool LeaseElector::MayWrite() const { return impl_->MayWrite(); }

void LeaseElector::Release() {
  if (!thread_.joinable()) return;
  impl_->ForbidWrites();
  thread_.request_stop();
  thread_.join();
  impl_->Release();
}

std::string LeaseElector::Leader() const { return impl_->Leader(); }

}  // namespace pliant::kube
