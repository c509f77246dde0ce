#pragma once

#include <span>
#include <string>

#include "operator/controller/actions.h"
#include "operator/controller/job_view.h"

namespace pliant::controller {

// What is to be remembered of a job, given what is seen of it now: since when learners start, which
// nodes failed them, how many GPU seconds it got, since when it waits. Before planning, which asks
// for all of these.
JobMemory Remember(const JobView& view, WallTime now);

// Remembers that the API server has refused the first of `undone`, or the write of status before
// it, in the words of `refusal`: the others were not tried.
void RememberRefusal(std::span<const Action> undone, const std::string& refusal, WallTime now,
                     JobMemory& memory);
// Remembers likewise that it did not say whether it made the first of them, a pod of `job`.
void RememberNoAnswer(const api::ObjectMeta& job, std::span<const Action> undone,
                      const std::string& why, WallTime now, JobMemory& memory);
// Remembers that all was done that was decided.
void ForgetRefusal(JobMemory& memory);

}  // namespace pliant::controller
