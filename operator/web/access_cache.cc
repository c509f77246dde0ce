#include "operator/web/access_cache.h"

#include <algorithm>
#include <tuple>

#include <openssl/sha.h>

namespace pliant::web {

TokenHash HashOf(std::string_view token) {
  TokenHash hash;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), hash.data());
  return hash;
}

std::optional<Access> AccessCache::Find(const TokenHash& token, TimePoint now) const {
  const auto found = entries_.find(token);
  if (found == entries_.end() || found->second.until <= now) return std::nullopt;
  return found->second.access;
}

void AccessCache::Put(const TokenHash& token, Access access, TimePoint now) {
  if (access == Access::kUndecided) return;
  std::erase_if(entries_, [now](const auto& entry) { return entry.second.until <= now; });
  const bool granted = access == Access::kGranted;
  if (entries_.size() >= kMaxEntries && !entries_.contains(token)) {
    // Evict refusals before grants, then the entry that expires first.
    const auto victim = std::ranges::min_element(entries_, {}, [](const auto& entry) {
      return std::tuple(entry.second.access == Access::kGranted, entry.second.until);
    });
    if (!granted && victim->second.access == Access::kGranted) return;
    entries_.erase(victim);
  }
  entries_.insert_or_assign(token, Entry{access, now + (granted ? kGrantedFor : kRefusedFor)});
}

}  // namespace pliant::web
