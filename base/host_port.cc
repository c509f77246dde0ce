#include "base/host_port.h"

#include <charconv>

#include "base/format.h"

namespace pliant {

Result<HostPort> ParseHostPort(std::string_view text) {
  HostPort address;
  const std::size_t colon = text.rfind(':');
  const auto wrong = [&text] {
    return Invalid(Format("\"{}\" is not of the form host:port", text));
  };
  if (colon == text.npos) return wrong();
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, address.port);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return wrong();
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  address.host = host;
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
