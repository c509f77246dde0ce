#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

// Whether the header Host of a request is localhost, 127.0.0.1 or [::1], with any port.
bool NamesLoopback(std::string_view host);

}  // namespace pliant
