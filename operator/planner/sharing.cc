#include "operator/planner/sharing.h"

#include <utility>
#include <vector>

#include "operator/planner/admission.h"
#include "operator/planner/filling.h"

namespace pliant::planner {

Sharing ShareOut(const Model& model, const Policy& policy, Protection protection) {
  std::vector<JobIndex> passing;
  // Passing jobs take part in the sharing, as they will in the next plan.
  for (const bool is_last : {false, true}) {
    Sharing sharing{.shares = std::vector<Share>(model.jobs.size()),
                    .assignment = Assignment(model)};
    Admission admission(model, policy, protection, passing, sharing);
    admission.Run();
    FillUp(model, policy, protection, sharing);
    if (is_last) return sharing;
    passing = admission.WhoMayPass();
    if (passing.empty()) return sharing;
  }
  std::unreachable();
}

}  // namespace pliant::planner
