#include "operator/kube/lease_steps.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "operator/kube/json_fields.h"

namespace pliant::kube {
namespace {

using nlohmann::json;

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

LeaseSteps::LeaseSteps(KubeClient& client, NamespacedName lease, std::string identity,
                       LeaseTiming timing, std::function<TimePoint()> clock)
    : client_(client),
      name_(std::move(lease)),
      identity_(std::move(identity)),
      clock_(std::move(clock)),
      policy_(identity_, timing),
      lease_(std::make_unique<json>()) {
  CHECK(timing.Validate().has_value(), "the times of the lease leave a gap between leaders");
}

LeaseSteps::~LeaseSteps() = default;

Duration LeaseSteps::Next(const std::string& wall_time, double random,
                          const std::stop_token& stop) {
  const LeasePolicy::Step step = policy_.NextStep(wall_time, random);
  switch (step.action) {
    case LeasePolicy::Action::kWait: {
      // A leader must notice in time that its leadership has ended.
      const TimePoint now = clock_();
      return policy_.Leads(now) ? std::min(step.wait, policy_.leads_until() - now) : step.wait;
    }
    case LeasePolicy::Action::kRead:
      Read(stop);
      break;
    case LeasePolicy::Action::kCreate:
    case LeasePolicy::Action::kReplace: {
      const TimePoint began = clock_();
      const bool success = step.action == LeasePolicy::Action::kCreate ? Create(step.record, stop)
                                                                       : Replace(step.record, stop);
      policy_.OnWritten(success, began, clock_());
      break;
    }
  }
  return {};
}

std::optional<LeaseRecord> LeaseSteps::StopLeading(const std::string& wall_time) {
  return policy_.Release(clock_(), wall_time);
}

void LeaseSteps::WriteReleased(const LeaseRecord& released) {
  // Read the lease first: the last renewal may have been aborted half-way.
  KubeResult<json> lease = client_.Get(kLeases, name_);
  if (lease && RecordOf(*lease).holder == identity_) {
    *lease_ = *std::move(lease);
    if (Replace(released, {})) return;
  }
  log::Warning("lease not released; another replica must wait until it expires",
               {{"lease", ToString(name_)}});
}

void LeaseSteps::Read(const std::stop_token& stop) {
  KubeResult<json> lease = client_.Get(kLeases, name_, "", stop);
  if (lease) {
    *lease_ = *std::move(lease);
    policy_.OnRead(RecordOf(*lease_), clock_());
    Healthy();
  } else if (lease.error().code == ErrorCode::kNotFound) {
    policy_.OnRead(std::nullopt, clock_());
    Healthy();
  } else {
    policy_.OnReadFailed();
    Failed("read", lease.error());
  }
}

bool LeaseSteps::Create(const LeaseRecord& record, const std::stop_token& stop) {
  const json lease = {{"metadata", {{"namespace", name_.ns}, {"name", name_.name}}},
                      {"spec", SpecOf(record)}};
  return Keep(client_.Create(kLeases, lease, {.stop = stop}));
}

// Keeps the other fields of the object, including the resource version, on which the write is
// conditional.
bool LeaseSteps::Replace(const LeaseRecord& record, const std::stop_token& stop) {
  json lease = *lease_;
  lease["spec"] = SpecOf(record);
  return Keep(client_.Update(kLeases, lease, {.stop = stop}));
}

bool LeaseSteps::Keep(KubeResult<json> written) {
  if (written) {
    *lease_ = *std::move(written);
    Healthy();
    return true;
  }
  const ErrorCode code = written.error().code;
  const bool outrun = code == ErrorCode::kConflict || code == ErrorCode::kAlreadyExists;
  if (!outrun) Failed("written", written.error());
  return false;
}

void LeaseSteps::Failed(std::string_view what, const KubeError& error) {
  if (error.code == ErrorCode::kCancelled || std::exchange(failing_, true)) return;
  log::Warning("lease not " + std::string(what),
               {{"lease", ToString(name_)}, {"error", error.message}});
}

void LeaseSteps::Healthy() {
  if (std::exchange(failing_, false)) {
    log::Info("lease accessible again", {{"lease", ToString(name_)}});
  }
}

}  // namespace pliant::kube
