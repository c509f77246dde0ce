#pragma once

#include <string>
#include <string_view>

#include "operator/kube/kube_error.h"

// What the API server's errors mean to somebody who asked it to write.
namespace pliant::controller {

// Whether a quota has no GPUs left, and that is all: the job's namespace holds them, which the plan
// is about.
bool LacksGpusOfQuota(const kube::KubeError& error, std::string_view gpu_resource);

// Whether it will not have this pod, now or later; all other errors mean that it could not be
// asked.
bool RefusesPod(const kube::KubeError& error);

// What the job's owner is told of a write of a pod that the server did not answer for: so it says
// that an admission webhook did not answer, or it still waits for one. "": all else passes by
// itself. `undone`: "create pod digits-3".
std::string WhyUnanswered(std::string_view undone, const kube::KubeError& error);

// Whether the write may have been done, or be done yet.
bool LeavesUnknown(const kube::KubeError& error);

// Whether a read of an object that failed says nothing of it. That there is none is an answer, and
// so is one that is there and not understood; of a read that was called off nobody wants one.
bool TellsNothing(const kube::KubeError& error);

// Whether what was to be deleted is no more, or is another one by now.
bool IsGone(const kube::KubeError& error);

}  // namespace pliant::controller
