#pragma once

#include <string>

#include "operator/controller/model/job_view.h"

namespace pliant::controller {

// Whether the job ever had a learner of this name.
bool WasMade(const JobView& view, const std::string& name);
// Whether the stores show the pod of this learner, which a coordinator reports.
bool Exists(const JobView& view, const ReportedLearner& learner);
// Its pod of this name that has not ended; null: there is none. Points into `view`.
const api::Pod* FindLiveLearner(const JobView& view, const std::string& name);

}  // namespace pliant::controller
