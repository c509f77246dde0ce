#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace pliant {

struct ListenAddress {
  std::string host;  // "": all addresses
  std::uint16_t port = 0;

  bool operator==(const ListenAddress&) const = default;
};

// "0.0.0.0:8080", "[::]:8080" or ":8080", which means all addresses.
Result<ListenAddress> ParseListenAddress(const std::string& text);

}  // namespace pliant
