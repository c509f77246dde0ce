#include "simulator/model/data_file.h"

#include <cstdint>
#include <system_error>

#include "base/file.h"
#include "base/format.h"

namespace pliant::simulator {

Result<std::string> ReadDataFile(const std::filesystem::path& path, std::size_t max_bytes,
                                 std::string_view kind) {
  // The size is read first, so that a huge file is not.
  std::error_code error;
  const bool is_directory = std::filesystem::is_directory(path, error);
  if (is_directory) {
    return Invalid(Format("{} is a directory; name a {} file", path.string(), kind));
  }
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (!error && bytes > max_bytes) {
    return Invalid(Format("{} has {} bytes; split it into files of at most {} bytes", path.string(),
                          bytes, max_bytes));
  }
  std::error_code unseen;  // the file is then reported as missing
  if (error && std::filesystem::exists(path, unseen)) {
    return Invalid(Format("{} is not a regular file; name a {} file", path.string(), kind));
  }
  auto text = ReadFile(path);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound,
                path.string() + " is missing; add it, or choose another path");
  }
  return text;
}

}  // namespace pliant::simulator
