#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "operator/controller/model/names.h"
#include "operator/controller/model/progress.h"

namespace pliant::controller {

// The address of one coordinator. The token follows from the job's uid.
struct CoordinatorAddress {
  std::string host;  // an IP address
  std::string job_uid;
  std::uint16_t port = kCoordinatorPort;
  bool operator==(const CoordinatorAddress&) const = default;
};

// The seam between the operator and the coordinators of all jobs. Blocking; any thread.
//   kUnavailable, kTimeout  it does not answer; a plan may have been taken
//   kConflict               a greater plan was taken before
//   kDenied, kInvalid       the two sides do not understand each other
class CoordinatorClient {
 public:
  virtual ~CoordinatorClient() = default;
  virtual Result<Progress> PutPlan(const CoordinatorAddress& address,
                                   const CoordinatorPlan& plan) = 0;
  virtual Result<Progress> GetProgress(const CoordinatorAddress& address) = 0;
  // Releases what is kept for a job that is gone, or whose coordinator is: its thread and queue,
  // and in time an idle connection. A later call is still made.
  virtual void Forget(const std::string& job_uid) = 0;
};

}  // namespace pliant::controller
