#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/controller/model/job_view.h"

namespace pliant::controller {

// The fate of an object that the watch has not shown for a while as it was written.
enum class WhenOverdue {
  kForget,  // it no longer counts: decisions without it do no harm
  kAsk,     // it still counts, until the server has been asked
};

// Objects as this process has just written them, until the watch has caught up: a decision that did
// not see earlier writes would request them again. One thread.
template <typename T>
class Assumed {
 public:
  using Object = std::shared_ptr<const T>;

  explicit Assumed(WhenOverdue when_overdue = WhenOverdue::kForget) : when_overdue_(when_overdue) {}

  // A write is under way: until Settle or Withdraw the object counts as `value`.
  void Begin(const std::string& key, Object value) { entries_[key].under_way = std::move(value); }

  bool IsUnderWay(const std::string& key) const {
    const auto found = entries_.find(key);
    return found != entries_.end() && found->second.under_way != nullptr;
  }

  // The write was done. Writes are conditional, so no other version lies between the replaced one
  // ("": none, the object was created) and `value`: while the store shows that version, or one that
  // an earlier write replaced, it lags.
  void Settle(const std::string& key, std::string replaced_version, T value, WallTime now) {
    Entry& entry = entries_[key];
    entry.under_way = nullptr;
    entry.done = std::make_shared<const T>(std::move(value));
    entry.replaced_versions.push_back(std::move(replaced_version));
    entry.overdue_at = now + kTimeout;
  }

  // The write was not done; what was done before still counts.
  void Withdraw(const std::string& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    found->second.under_way = nullptr;
    if (found->second.done == nullptr) entries_.erase(found);
  }

  // The store showed the object, and no longer does.
  void Forget(const std::string& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    found->second.ForgetDone();
    if (found->second.under_way == nullptr) entries_.erase(found);
  }

  // As Forget, for each object that `matches`.
  template <typename Matches>
  void ForgetIf(Matches&& matches) {
    std::erase_if(entries_, [&](auto& item) {
      Entry& entry = item.second;
      if (entry.done != nullptr && matches(*entry.done)) entry.ForgetDone();
      return entry.under_way == nullptr && entry.done == nullptr;
    });
  }

  // Returns the object that counts for `key`; `stored` is the store's, or null.
  Object Resolve(const std::string& key, Object stored, WallTime now) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return stored;
    Entry& entry = found->second;
    const std::string shown = stored == nullptr ? "" : stored->meta.resource_version;
    // The store has shown the object: its absence is news from now on.
    if (!shown.empty()) std::erase(entry.replaced_versions, "");
    const bool counts = when_overdue_ == WhenOverdue::kAsk || now < entry.overdue_at;
    const bool lags = std::ranges::contains(entry.replaced_versions, shown) && counts;
    if (entry.done != nullptr && !lags) entry.ForgetDone();
    if (entry.under_way != nullptr) return entry.under_way;
    if (entry.done != nullptr) return entry.done;
    entries_.erase(found);
    return stored;
  }

  // When `key` becomes overdue if the store continues to lag; nullopt: no completed write counts.
  std::optional<WallTime> OverdueAt(const std::string& key) const {
    const auto found = entries_.find(key);
    if (found == entries_.end() || found->second.done == nullptr) return std::nullopt;
    return found->second.overdue_at;
  }

  // The server has the object as it counts here: the store gets kTimeout again to show it.
  void Confirm(const std::string& key, WallTime now) {
    const auto found = entries_.find(key);
    if (found != entries_.end()) found->second.overdue_at = now + kTimeout;
  }

  // Visits the objects that the store may not show yet, as they count here.
  template <typename See>
  void ForEach(See&& see) const {
    for (const auto& [key, entry] : entries_) {
      see(key, entry.under_way != nullptr ? *entry.under_way : *entry.done);
    }
  }

 private:
  // Without a limit, an object that was created and deleted before the watch showed it would count
  // forever.
  static constexpr std::chrono::seconds kTimeout{60};

  // At least one of the two objects is there.
  struct Entry {
    Object under_way;  // as it will be
    Object done;       // as it is, though the store may not show it yet
    std::vector<std::string> replaced_versions;
    WallTime overdue_at;

    void ForgetDone() {
      done = nullptr;
      replaced_versions.clear();
    }
  };
  const WhenOverdue when_overdue_;
  std::map<std::string, Entry> entries_;
};

}  // namespace pliant::controller
