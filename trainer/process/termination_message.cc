#include "trainer/process/termination_message.h"

#include <cerrno>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace pliant {
namespace {

constexpr std::string_view kEllipsis = "…";

std::string Dump(const TerminationMessage& message, std::string_view text) {
  nlohmann::ordered_json json = {{"reason", message.broken ? "GpuFault" : ToString(message.reason)},
                                 {"step", message.step},
                                 {"message", text}};
  if (!message.parameters_sha256.empty()) json["parametersSha256"] = message.parameters_sha256;
  // Bytes that are not UTF-8 become U+FFFD: messages quote file names and library errors.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool ContinuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace

std::string Encode(const TerminationMessage& message) {
  std::string encoded = Dump(message, message.message);
  // The size of a character in JSON depends on the character: find the cut by bisection.
  std::size_t fits = 0;
  std::size_t too_long = message.message.size();
  if (encoded.size() <= kMaxTerminationBytes) return encoded;
  while (fits + 1 < too_long) {
    const std::size_t middle = (fits + too_long) / 2;
    const std::string cut = message.message.substr(0, middle) + std::string(kEllipsis);
    (Dump(message, cut).size() <= kMaxTerminationBytes ? fits : too_long) = middle;
  }
  while (fits > 0 && ContinuesCharacter(message.message[fits])) --fits;
  return Dump(message, message.message.substr(0, fits) + std::string(kEllipsis));
}

Status WriteTerminationMessage(const std::filesystem::path& path,
                               const TerminationMessage& message) {
  // In place: Kubernetes mounts this very file, so it cannot be replaced by renaming.
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const std::string text = Encode(message);
  ssize_t written = -1;
  if (file >= 0) {
    written = ::write(file, text.data(), text.size());
    ::close(file);
  }
  if (written == static_cast<ssize_t>(text.size())) return {};
  return Fail(ErrorCode::kUnavailable,
              "write " + path.string() + ": " + std::generic_category().message(errno));
}

}  // namespace pliant
