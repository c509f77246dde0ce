#include "operator/planner/sharing.h"

#include <utility>
#include <vector>

#include "operator/planner/sharing_steps.h"

namespace pliant::planner {

// The rule of docs/queues.md.
Sharing ShareOut(const Model& model, const Policy& policy, Protection protection) {
  std::vector<JobIndex> passing;
  // Passing jobs take part in the sharing, as they will in the next plan.
  for (const bool is_last : {false, true}) {
    SharingRound round(model, policy, protection);
    KeepMinimums(round);
    Entitle(round);
    RestoreGuaranteed(round);
    Protect(round);
    HoldLost(round);
    AdmitWaiting(round);
    Yield(round);
    LetPass(round, passing);
    Entitle(round);
    FillAndLend(round);
    round.sharing.again_at = round.reservations.again_at();
    if (is_last) return std::move(round.sharing);
    passing = WhoMayPass(round);
    if (passing.empty()) return std::move(round.sharing);
  }
  std::unreachable();
}

}  // namespace pliant::planner
