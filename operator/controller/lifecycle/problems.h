#pragma once

#include <optional>
#include <string>

#include "operator/controller/model/job_view.h"

namespace pliant::controller {

// What keeps a job from progressing, as far as its owner or an administrator has to know.
struct Problem {
  std::string reason;  // CamelCase, of a fixed set
  std::string message;
  // Whether the message is worth more than the one that was told before for the same reason: an
  // image that cannot be pulled alternates between why and "Back-off".
  bool detailed = true;
  bool operator==(const Problem&) const = default;
};

// A learner's or the coordinator's pod that has had time enough to mount its volumes, but does not
// start. The kubelet says why in events only: JobSoftState::mount_causes holds what was found
// there.
const api::Pod* FindUnmounted(const JobView& view, WallTime now);

// When something that takes its time becomes a problem, unless it is done by then: nobody else
// would have the job looked at.
std::optional<WallTime> NextProblemCheck(const JobView& view, WallTime now);

// The most telling problem; nothing if there is none. `last_failure`: what befell the newest failed
// learner, if one was counted.
std::optional<Problem> FindProblem(const JobView& view, const std::string& last_failure,
                                   WallTime now);

}  // namespace pliant::controller
