#include "operator/replay/read_input.h"

#include <array>
#include <cstddef>
#include <fstream>

#include "operator/replay/debug_snapshot.h"

namespace pliant::replay {
namespace {

constexpr const char* kStandardInput = "-";

Result<std::string> ReadAll(std::istream& in) {
  std::string text;
  std::array<char, 65536> buffer{};
  while (text.size() <= kMaxSnapshotBytes &&
         (in.read(buffer.data(), buffer.size()) || in.gcount() > 0)) {
    text.append(buffer.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) return Fail(ErrorCode::kUnavailable, "cannot be read");
  return text;
}

}  // namespace

Result<std::string> ReadInput(const std::string& file, std::istream& in) {
  if (file == kStandardInput) return ReadAll(in);
  std::ifstream opened(file, std::ios::binary);
  if (!opened) return Fail(ErrorCode::kNotFound, "cannot be opened");
  return ReadAll(opened);
}

std::string ShownInput(const std::string& file) {
  return file == kStandardInput ? "standard input" : file;
}

}  // namespace pliant::replay
