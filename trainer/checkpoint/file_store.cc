#include "trainer/checkpoint/file_store.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/format.h"
#include "trainer/checkpoint/volume_error.h"

namespace pliant {
namespace {

namespace fs = std::filesystem;

// The kernel takes at most IOV_MAX parts and 2 GiB a call.
constexpr std::size_t kMaxParts = 256;

std::unexpected<Error> SystemError(const fs::path& path, std::string_view doing, int error) {
  return std::unexpected(VolumeError(Format("{} {}", doing, path.string()), error));
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() { Close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  int Close() {
    if (!open()) return 0;
    return ::close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_;
};

Status WriteAll(const fs::path& path, int descriptor,
                std::span<const std::span<const std::byte>> parts) {
  std::vector<iovec> left;
  left.reserve(parts.size());
  for (const auto& part : parts)
    if (!part.empty())
      left.push_back({.iov_base = const_cast<std::byte*>(part.data()), .iov_len = part.size()});
  std::size_t first = 0;
  while (first < left.size()) {
    const std::size_t count = std::min(kMaxParts, left.size() - first);
    const ssize_t written = ::writev(descriptor, &left[first], static_cast<int>(count));
    if (written < 0) {
      if (errno == EINTR) continue;
      return SystemError(path, "write", errno);
    }
    auto done = static_cast<std::size_t>(written);
    while (done > 0) {
      iovec& part = left[first];
      const std::size_t taken = std::min(done, part.iov_len);
      part.iov_base = static_cast<std::byte*>(part.iov_base) + taken;
      part.iov_len -= taken;
      done -= taken;
      if (part.iov_len == 0) ++first;
    }
  }
  return {};
}

Status WriteSynced(const fs::path& path, std::span<const std::span<const std::byte>> parts) {
  File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.open()) return SystemError(path, "open", errno);
  RETURN_IF_ERROR(WriteAll(path, file.descriptor(), parts));
  if (::fsync(file.descriptor()) != 0) return SystemError(path, "sync", errno);
  if (file.Close() != 0) return SystemError(path, "close", errno);
  return {};
}

Status SyncDirectory(const fs::path& path) {
  const File directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.open()) return SystemError(path, "open", errno);
  if (::fsync(directory.descriptor()) != 0) return SystemError(path, "sync", errno);
  return {};
}

// Creates `path` and its missing parents; the new names survive a crash.
Status MakeDirectories(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return {};
  if (path.has_parent_path()) RETURN_IF_ERROR(MakeDirectories(path.parent_path()));
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
    return SystemError(path, "make directory", errno);
  return path.has_parent_path() ? SyncDirectory(path.parent_path()) : Status();
}

// The files below `directory`, with names relative to `root`. It lists directory by directory, so
// that only a directory that another learner prunes meanwhile is left out.
Status ListFiles(const fs::path& root, const fs::path& directory,
                 std::vector<StoredObject>& found) {
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->is_directory(error) && !entry->is_symlink(error)) {
      RETURN_IF_ERROR(ListFiles(root, entry->path(), found));
    } else if (entry->is_regular_file(error)) {
      const std::uint64_t bytes = entry->file_size(error);
      std::string name = entry->path().lexically_relative(root).generic_string();
      if (!error) found.push_back({.name = std::move(name), .bytes = bytes});
    }
    if (error == std::errc::no_such_file_or_directory) error.clear();
    if (error) break;
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return SystemError(directory, "list", error.value());
  return {};
}

}  // namespace

FileStore::FileStore(fs::path root, std::string_view writer)
    : root_(fs::absolute(std::move(root)).lexically_normal()),
      temporary_suffix_(writer.empty() ? std::string(kTemporarySuffix)
                                       : Format(".{}{}", writer, kTemporarySuffix)) {}

Status FileStore::Put(std::string_view name, std::span<const std::span<const std::byte>> parts) {
  const fs::path path = root_ / name;
  const fs::path temporary = path.string() + temporary_suffix_;
  RETURN_IF_ERROR(MakeDirectories(path.parent_path()));
  const Status written = [&]() -> Status {
    RETURN_IF_ERROR(WriteSynced(temporary, parts));
    if (::rename(temporary.c_str(), path.c_str()) != 0) return SystemError(path, "rename", errno);
    return {};
  }();
  if (!written) {
    ::unlink(temporary.c_str());  // on a full volume others need its space
    return written;
  }
  return SyncDirectory(path.parent_path());
}

Status FileStore::Read(std::string_view name, std::uint64_t offset, std::span<std::byte> out) {
  const fs::path path = root_ / name;
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return SystemError(path, "open", errno);
  while (!out.empty()) {
    const ssize_t got =
        ::pread(file.descriptor(), out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      return SystemError(path, "read", errno);
    }
    if (got == 0)
      return Fail(ErrorCode::kCorrupt, Format("{}: ends {} bytes early", name, out.size()));
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<std::vector<StoredObject>> FileStore::List(std::string_view prefix) {
  std::vector<StoredObject> found;
  // Only below the directory that the prefix names completely.
  RETURN_IF_ERROR(ListFiles(root_, root_ / fs::path(prefix).parent_path(), found));
  std::erase_if(found,
                [&](const StoredObject& object) { return !object.name.starts_with(prefix); });
  std::ranges::sort(found, {}, &StoredObject::name);
  return found;
}

Status FileStore::Replace(std::string_view from, std::string_view to) {
  const fs::path source = root_ / from;
  const fs::path target = root_ / to;
  const auto rename = [](const fs::path& one, const fs::path& other, unsigned flags) {
    return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), flags) == 0 ? 0 : errno;
  };
  std::error_code ignored;  // what is left of the old ones is in nobody's way
  fs::path old = source;
  int error = rename(source, target, RENAME_EXCHANGE);
  if (error == EINVAL || error == ENOSYS || error == EOPNOTSUPP) {
    old = target.string() + ".old";
    fs::remove_all(old, ignored);
    error = rename(target, old, 0);
    if (error == 0 || error == ENOENT) error = rename(source, target, 0);
  } else if (error == ENOENT) {  // nothing is there to be replaced
    error = rename(source, target, 0);
  }
  if (error != 0) return SystemError(target, "replace", error);
  RETURN_IF_ERROR(SyncDirectory(target.parent_path()));
  if (old != target) fs::remove_all(old, ignored);
  return {};
}

Status FileStore::Remove(std::string_view name) {
  const fs::path path = root_ / name;
  if (::unlink(path.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR)
    return SystemError(path, "remove", errno);
  // Removes directories that have no objects now.
  for (fs::path directory = path.parent_path(); directory != root_;
       directory = directory.parent_path())
    if (::rmdir(directory.c_str()) != 0) break;
  return {};
}

}  // namespace pliant
