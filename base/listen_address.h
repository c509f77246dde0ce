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

// "10.0.0.7:8443", "[fd00::7]:8443", "coordinator:8443"
std::string HostAndPort(const std::string& host, std::uint16_t port);

}  // namespace pliant
