#include "trainer/protocol/catch_up_progress.h"

#include <algorithm>

namespace pliant {

void CatchUpProgress::OnTrailer(int rank, Tick tick, bool in_sync) {
  const auto index = static_cast<std::size_t>(rank);
  reached_[index] = std::max(reached_[index], tick);
  if (in_sync) reported_in_sync_[index] = true;
}

std::vector<int> CatchUpProgress::NewlyInSync(const std::vector<bool>& in_sync) const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < in_sync.size(); ++rank) {
    if (reported_in_sync_[rank] && !in_sync[rank]) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

bool CatchUpProgress::IsAnyFarBehind(const std::vector<bool>& in_sync, Tick applied) const {
  for (std::size_t rank = 0; rank < in_sync.size(); ++rank) {
    if (!in_sync[rank] && applied > reached_[rank] + max_backlog_) return true;
  }
  return false;
}

}  // namespace pliant
