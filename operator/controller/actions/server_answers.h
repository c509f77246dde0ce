#pragma once

#include <string>
#include <string_view>

#include "operator/kube/kube_error.h"

// The meaning of the API server's errors.
namespace pliant::controller {

// Whether the only obstacle is a quota without GPUs left: the job's namespace holds them, and the
// plan handles that.
bool LacksGpusOfQuota(const kube::KubeError& error, std::string_view gpu_resource);

// Whether the server refuses this pod, now and later; all other errors mean that it could not be
// asked.
bool RefusesPod(const kube::KubeError& error);

// The message for the job's owner when the server did not answer a write of a pod: it says that an
// admission webhook did not answer, or it still waits for one. "": all other errors pass by
// themselves. `undone`: "create pod digits-3".
std::string WhyUnanswered(std::string_view undone, const kube::KubeError& error);

// Whether the write may have been done, or may still be done.
bool LeavesUnknown(const kube::KubeError& error);

// Whether the failed read of an object says nothing about it. "Not found" is an answer, and so is
// an object that cannot be understood; a cancelled read needs no answer.
bool ReportsNothing(const kube::KubeError& error);

// Whether the object no longer exists, or is another one by now.
bool IsGone(const kube::KubeError& error);

}  // namespace pliant::controller
