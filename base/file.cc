#include "base/file.h"

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace pliant {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

std::unexpected<Error> LastError(std::string_view doing, const std::filesystem::path& path) {
  const int number = errno;
  ErrorCode code = ErrorCode::kUnavailable;
  if (number == ENOENT || number == ENOTDIR) code = ErrorCode::kNotFound;
  if (number == EACCES || number == EPERM || number == EROFS) code = ErrorCode::kDenied;
  return Fail(code, std::string(doing) + " " + path.string() + ": " +
                        std::generic_category().message(number));
}

Status WriteAll(const Descriptor& file, std::string_view content,
                const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(file.number(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return LastError("write", path);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

Result<std::string> ReadFile(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) return LastError("open", path);
  std::string content;
  std::array<char, 16384> part;
  while (true) {
    const ssize_t got = ::read(file.number(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return LastError("read", path);
    if (got == 0) return content;
    content.append(part.data(), static_cast<std::size_t>(got));
  }
}

Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path temporary = path.string() + ".tmp";
  {
    const Descriptor file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.number() < 0) return LastError("create", temporary);
    RETURN_IF_ERROR(WriteAll(file, content, temporary));
    if (::fsync(file.number()) != 0) return LastError("sync", temporary);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return LastError("rename to", path);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.number() < 0) return LastError("open", folder);
  if (::fsync(directory.number()) != 0) return LastError("sync", folder);
  return {};
}

}  // namespace pliant
