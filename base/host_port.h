#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pliant {

struct HostPort {
  std::string host;  // without brackets; "" where one listens: all addresses
  std::uint16_t port = 0;

  bool operator==(const HostPort&) const = default;
};

// "10.0.0.7:8080", "[::]:8080", "coordinator:8080" or ":8080".
Result<HostPort> ParseHostPort(std::string_view text);

// "10.0.0.7:8443", "[fd00::7]:8443", "coordinator:8443"
std::string HostAndPort(const std::string& host, std::uint16_t port);

// Whether the header Host of a request is localhost, 127.0.0.1 or [::1], with any port.
bool NamesLoopback(std::string_view host);

}  // namespace pliant
