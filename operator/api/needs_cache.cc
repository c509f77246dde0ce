#include "operator/api/needs_cache.h"

#include <utility>

namespace pliant::api {

std::shared_ptr<const planner::PodNeeds> NeedsCache::Share(planner::PodNeeds needs) {
  // Its end removes it from the entries, unless equal needs have taken its place there.
  const auto end = [entries = entries_](const planner::PodNeeds* ended) {
    {
      const std::lock_guard lock(entries->mutex);
      const auto found = entries->by_value.find(ended);
      if (found != entries->by_value.end() && found->first == ended) {
        entries->by_value.erase(found);
      }
    }
    delete ended;
  };
  const std::shared_ptr<const planner::PodNeeds> made(new planner::PodNeeds(std::move(needs)), end);
  const std::lock_guard lock(entries_->mutex);
  const auto found = entries_->by_value.find(made.get());
  if (found != entries_->by_value.end()) {
    if (auto known = found->second.lock()) return known;
    entries_->by_value.erase(found);
  }
  entries_->by_value.emplace(made.get(), made);
  return made;
}

std::size_t NeedsCache::size() const {
  const std::lock_guard lock(entries_->mutex);
  return entries_->by_value.size();
}

}  // namespace pliant::api
