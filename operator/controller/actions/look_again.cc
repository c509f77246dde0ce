#include "operator/controller/actions/look_again.h"

#include <algorithm>
#include <chrono>

namespace pliant::controller {
namespace {

constexpr std::chrono::milliseconds kSoonest{10};

}  // namespace

void LookAgainAt(const std::optional<api::WallTime>& at, api::WallTime now,
                 const kube::NamespacedName& job, kube::WorkQueue& queue) {
  if (at) queue.AddAfter(job, std::max<Duration>(*at - now, kSoonest));
}

}  // namespace pliant::controller
