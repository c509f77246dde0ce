#pragma once

#include <optional>
#include <string>

#include "operator/controller/model/job_view.h"

namespace pliant::controller {

// An obstacle to the job's progress that its owner or an administrator has to know.
struct Problem {
  std::string reason;  // CamelCase, of a fixed set
  std::string message;
  // Whether the message says more than the one reported before for the same reason: an image that
  // cannot be pulled alternates between the cause and "Back-off".
  bool detailed = true;
  bool operator==(const Problem&) const = default;
};

// A learner's or the coordinator's pod that has had enough time to mount its volumes, but does not
// start. The kubelet reports the cause only in events: JobSoftState::mount_causes holds what was
// found there.
const api::Pod* FindUnmounted(const JobView& view, WallTime now);

// When something slow becomes a problem, unless it is done by then: no event would have the job
// looked at.
std::optional<WallTime> NextProblemCheck(const JobView& view, WallTime now);

// The most specific problem; nullopt if there is none. `last_failure`: what happened to the newest
// failed learner, if one was counted.
std::optional<Problem> FindProblem(const JobView& view, const std::string& last_failure,
                                   WallTime now);

// Why learners of the job do not start, in a sentence of at most 256 bytes; "": nothing is known.
std::string StartProblemOf(const JobView& view, WallTime now);

}  // namespace pliant::controller
