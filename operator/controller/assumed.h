#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/controller/job_view.h"

namespace pliant::controller {

// Objects as this program has just written them, until the watch has caught up: a decision that did
// not see its own writes would order them twice. One thread.
template <typename T>
class Assumed {
 public:
  using Object = std::shared_ptr<const T>;

  // A write is under way: until Settle or Withdraw the object counts as `value`.
  void Begin(const std::string& key, T value) {
    entries_[key] = {.value = std::make_shared<const T>(std::move(value))};
  }

  // It was done. Writes are conditional, so nothing came between the version that was replaced ("":
  // none, it was created) and `value`: as long as the store still shows that version, it lags.
  void Settle(const std::string& key, std::string replaced_version, T value, WallTime now) {
    entries_[key] = {.value = std::make_shared<const T>(std::move(value)),
                     .replaced_version = std::move(replaced_version),
                     .forget_at = now + kPatience};
  }

  void Withdraw(const std::string& key) { entries_.erase(key); }

  // What `key` is now; `stored` is what the store has, or null.
  Object Resolve(const std::string& key, Object stored, WallTime now) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return stored;
    const Entry& entry = found->second;
    if (!entry.forget_at) return entry.value;
    const std::string shown = stored == nullptr ? "" : stored->meta.resource_version;
    if (shown == entry.replaced_version && now < *entry.forget_at) return entry.value;
    entries_.erase(found);
    return stored;
  }

  // The keys that may be unknown to the store.
  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, entry] : entries_) keys.push_back(key);
    return keys;
  }

 private:
  // An object that was created and deleted again before the watch told of it would count for ever.
  static constexpr std::chrono::seconds kPatience{60};

  struct Entry {
    Object value;
    std::string replaced_version;
    std::optional<WallTime> forget_at;  // nothing: the write is under way
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace pliant::controller
