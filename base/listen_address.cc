#include "base/listen_address.h"

#include <charconv>

namespace pliant {

Result<ListenAddress> ParseListenAddress(const std::string& text) {
  ListenAddress address;
  const std::size_t colon = text.rfind(':');
  const auto wrong = [&text] { return Invalid("\"" + text + "\" is not of the form host:port"); };
  if (colon == std::string::npos) return wrong();
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, address.port);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return wrong();
  address.host = text.substr(0, colon);
  if (address.host.starts_with('[') && address.host.ends_with(']')) {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  return address;
}

std::string HostAndPort(const std::string& host, std::uint16_t port) {
  const bool ipv6 = host.contains(':');
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool NamesLoopback(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != host.npos && !host.ends_with(']');
  const std::string_view port = has_port ? host.substr(colon + 1) : "";
  if (has_port && (port.empty() || port.find_first_not_of("0123456789") != port.npos)) return false;
  std::string name(host.substr(0, has_port ? colon : host.size()));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

}  // namespace pliant
