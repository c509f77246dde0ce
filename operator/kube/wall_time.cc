#include "operator/kube/wall_time.h"

#include "base/format.h"

namespace pliant::kube {

std::string MicroTime(std::chrono::system_clock::time_point time) {
  return Format("{:%FT%TZ}", std::chrono::floor<std::chrono::microseconds>(time));
}

}  // namespace pliant::kube
