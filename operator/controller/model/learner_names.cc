#include "operator/controller/model/learner_names.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "operator/controller/model/names.h"

namespace pliant::controller {

bool WasMade(const JobView& view, const std::string& name) {
  const std::size_t dash = name.rfind('-');
  int number = -1;
  if (dash == std::string::npos) return false;
  const char* end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + dash + 1, end, number);
  return read.ec == std::errc{} && read.ptr == end && number >= 0 &&
         number < view.job->status.objects.next_learner &&
         name == LearnerPodName(view.job->meta, number);
}

bool Exists(const JobView& view, const ReportedLearner& learner) {
  return std::ranges::any_of(view.learners, [&](const api::Pod& pod) {
    return pod.meta.name == learner.name && pod.meta.uid == learner.pod_uid;
  });
}

const api::Pod* FindLiveLearner(const JobView& view, const std::string& name) {
  const auto found = std::ranges::find_if(
      view.learners, [&](const api::Pod& pod) { return pod.meta.name == name; });
  return found == view.learners.end() || found->ended() ? nullptr : &*found;
}

}  // namespace pliant::controller
