#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>

#include "base/event_loop.h"
#include "base/http_server.h"

namespace pliant::web {

using TokenHash = std::array<unsigned char, 32>;  // SHA-256

TokenHash HashOf(std::string_view token);

// Caches access decisions by token for a short time: a revoked token keeps its access for up to
// kGrantedFor.
class AccessCache {
 public:
  static constexpr Duration kGrantedFor = std::chrono::seconds(60);
  static constexpr Duration kRefusedFor = std::chrono::seconds(10);
  static constexpr std::size_t kMaxEntries = 128;

  std::optional<Access> Find(const TokenHash& token, TimePoint now) const;
  // A refusal never evicts a grant, so that guessed tokens cannot push out valid ones.
  void Put(const TokenHash& token, Access access, TimePoint now);
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Access access;
    TimePoint until;
  };
  std::map<TokenHash, Entry> entries_;
};

}  // namespace pliant::web
