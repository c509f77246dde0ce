#include "trainer/membership/resize_log.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/format.h"

namespace pliant {

std::string WhyRecovered(const Membership& from, const Membership& to) {
  std::set<LearnerId> lost;
  for (const Member& member : from.members) lost.insert(member.id);
  for (const Member& member : to.members) lost.erase(member.id);
  std::set<std::string> names;
  for (const LearnerId& id : lost) names.insert(id.name);
  if (names.empty()) return "a connection between learners broke";
  if (names.size() == 1) return Format("learner {} was lost", *names.begin());
  return Format("learner {} and {} more were lost", *names.begin(), names.size() - 1);
}

Resize* ResizeLog::Find(MembershipId membership) {
  const auto found = std::ranges::find(resizes_, membership, &Resize::membership);
  return found == resizes_.end() ? nullptr : &*found;
}

void ResizeLog::Begin(Resize resize) {
  resizes_.push_back(std::move(resize));
  if (resizes_.size() > kKept) resizes_.pop_front();
}

void ResizeLog::Opened(MembershipId membership, std::optional<double> pause_seconds,
                       std::uint64_t steps_lost) {
  Resize* const resize = Find(membership);
  if (resize == nullptr) return;
  if (pause_seconds) {
    resize->longest_pause_seconds =
        std::max(resize->longest_pause_seconds.value_or(0), *pause_seconds);
  }
  resize->steps_lost = std::max(resize->steps_lost, steps_lost);
}

void ResizeLog::Running(MembershipId membership, double unix_seconds, std::uint64_t step) {
  Resize* const resize = Find(membership);
  if (resize == nullptr || resize->running_unix_seconds) return;
  resize->running_unix_seconds = unix_seconds;
  resize->step = step;
}

}  // namespace pliant
