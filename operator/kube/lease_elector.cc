#include "operator/kube/lease_elector.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "operator/kube/json_fields.h"
#include "operator/kube/wall_time.h"

namespace pliant::kube {
namespace {

using nlohmann::json;

std::string WallTime() { return MicroTime(std::chrono::system_clock::now()); }

LeaseRecord RecordOf(const json& lease) {
  const auto spec = lease.find("spec");
  if (spec == lease.end() || !spec->is_object()) return {};
  return {.holder = StringAt(*spec, "holderIdentity"),
          .duration_seconds = IntAt(*spec, "leaseDurationSeconds"),
          .transitions = IntAt(*spec, "leaseTransitions"),
          .acquire_time = StringAt(*spec, "acquireTime"),
          .renew_time = StringAt(*spec, "renewTime")};
}

json SpecOf(const LeaseRecord& record) {
  return {{"holderIdentity", record.holder},
          {"leaseDurationSeconds", record.duration_seconds},
          {"leaseTransitions", record.transitions},
          {"acquireTime", record.acquire_time},
          {"renewTime", record.renew_time}};
}

}  // namespace

class LeaseElector::Impl {
 public:
  Impl(KubeClient& client, EventLoop& control, LeaseElectorOptions options)
      : client_(client),
        control_(control),
        options_(std::move(options)),
        policy_(options_.identity, options_.timing),
        random_(std::random_device()()) {
    CHECK(options_.timing.Validate().has_value(),
          "the times of the lease leave a gap between leaders");
  }

  void Run(const std::stop_token& stop) {
    bool elected = false;
    while (!stop.stop_requested()) {
      Step(stop);
      const TimePoint now = MonotonicNow();
      Publish();
      if (!elected && policy_.Leads(now)) {
        elected = true;
        log::Info("elected leader", {{"lease", ToString(options_.lease)},
                                     {"identity", options_.identity},
                                     {"transitions", policy_.transitions()}});
        control_.Post([tell = options_.on_elected, term = policy_.transitions()] { tell(term); });
      }
      if (policy_.Lost(now)) {
        log::Error("leadership lost",
                   {{"lease", ToString(options_.lease)}, {"holder", policy_.holder()}});
        control_.Post(options_.on_lost);
        return;
      }
    }
  }

  // After Run has returned.
  void Release() {
    const std::optional<LeaseRecord> released = policy_.Release(MonotonicNow(), WallTime());
    Publish();
    if (!released) return;
    // Read it first: the last renewal may have been stopped half-way.
    KubeResult<json> lease = client_.Get(kLeases, options_.lease);
    if (lease && RecordOf(*lease).holder == options_.identity) {
      lease_ = *std::move(lease);
      if (Replace(*released, {})) return;
    }
    log::Warning("lease not released; another replica has to wait for its end",
                 {{"lease", ToString(options_.lease)}});
  }

  bool MayWrite() const { return MonotonicNow().time_since_epoch().count() < leads_until_; }
  void ForbidWrites() { leads_until_ = TimePoint::min().time_since_epoch().count(); }

  std::string Leader() const {
    const std::lock_guard lock(mutex_);
    return leader_;
  }

 private:
  void Step(const std::stop_token& stop) {
    const LeasePolicy::Step step =
        policy_.NextStep(WallTime(), std::uniform_real_distribution()(random_));
    switch (step.action) {
      case LeasePolicy::Action::kWait:
        Wait(step.wait, stop);
        return;
      case LeasePolicy::Action::kRead:
        Read(stop);
        return;
      case LeasePolicy::Action::kCreate:
      case LeasePolicy::Action::kReplace: {
        const TimePoint began = MonotonicNow();
        const bool success = step.action == LeasePolicy::Action::kCreate
                                 ? Create(step.record, stop)
                                 : Replace(step.record, stop);
        policy_.OnWritten(success, began, MonotonicNow());
        return;
      }
    }
  }

  void Wait(Duration wait, const std::stop_token& stop) {
    // While it leads, it has to notice in time that it does no more.
    const TimePoint now = MonotonicNow();
    if (policy_.Leads(now)) wait = std::min(wait, policy_.leads_until() - now);
    std::unique_lock lock(mutex_);
    never_.wait_for(lock, stop, wait, [] { return false; });
  }

  void Read(const std::stop_token& stop) {
    KubeResult<json> lease = client_.Get(kLeases, options_.lease, "", stop);
    if (lease) {
      lease_ = *std::move(lease);
      policy_.OnRead(RecordOf(lease_), MonotonicNow());
      Healthy();
    } else if (lease.error().code == ErrorCode::kNotFound) {
      policy_.OnRead(std::nullopt, MonotonicNow());
      Healthy();
    } else {
      policy_.OnReadFailed();
      Failed("read", lease.error());
    }
  }

  bool Create(const LeaseRecord& record, const std::stop_token& stop) {
    const json lease = {
        {"metadata", {{"namespace", options_.lease.ns}, {"name", options_.lease.name}}},
        {"spec", SpecOf(record)}};
    return Keep(client_.Create(kLeases, lease, {.stop = stop}));
  }

  // Keeps what else the object holds, and its resource version, on which the write is conditional.
  bool Replace(const LeaseRecord& record, const std::stop_token& stop) {
    json lease = lease_;
    lease["spec"] = SpecOf(record);
    return Keep(client_.Update(kLeases, lease, {.stop = stop}));
  }

  bool Keep(KubeResult<json> written) {
    if (written) {
      lease_ = *std::move(written);
      Healthy();
      return true;
    }
    const ErrorCode code = written.error().code;
    const bool outrun = code == ErrorCode::kConflict || code == ErrorCode::kAlreadyExists;
    if (!outrun) Failed("written", written.error());
    return false;
  }

  void Failed(std::string_view what, const KubeError& error) {
    if (error.code == ErrorCode::kCancelled || std::exchange(failing_, true)) return;
    log::Warning("lease not " + std::string(what),
                 {{"lease", ToString(options_.lease)}, {"error", error.message}});
  }
  void Healthy() {
    if (std::exchange(failing_, false)) {
      log::Info("lease reached again", {{"lease", ToString(options_.lease)}});
    }
  }

  void Publish() {
    leads_until_ = policy_.leads_until().time_since_epoch().count();
    const std::lock_guard lock(mutex_);
    leader_ = policy_.holder();
  }

  KubeClient& client_;
  EventLoop& control_;
  const LeaseElectorOptions options_;

  // The elector's thread only; the caller's of Release after it has ended.
  LeasePolicy policy_;
  std::mt19937_64 random_;
  json lease_;  // as last read or written
  bool failing_ = false;

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
