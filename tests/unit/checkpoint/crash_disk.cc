#include "tests/unit/checkpoint/crash_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/overloaded.h"

namespace pliant {
namespace {

std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

DiskRecorder* the_recorder = nullptr;

}  // namespace

// ---- The disk ----

void CrashDisk::Set(const std::string& path, Node node) {
  std::vector<Node>& values = entries_[path];
  if (values.empty()) values.emplace_back();
  values.push_back(node);
}

CrashDisk::Node CrashDisk::At(const std::string& path) const {
  const auto found = entries_.find(path);
  return found == entries_.end() ? Node() : found->second.back();
}

CrashDisk::Content& CrashDisk::FileAt(const std::string& path) {
  const Node node = At(path);
  CHECK(node && *node != kDirectory, "what is written to was created");
  return files_[static_cast<std::size_t>(*node)];
}

void CrashDisk::Apply(const DiskEvent& event) {
  std::visit(Overloaded{
                 [&](const Created& created) {
                   files_.emplace_back();
                   Set(created.path, static_cast<int>(files_.size()) - 1);
                 },
                 [&](const Written& written) {
                   Content& content = FileAt(written.path);
                   content.now = written.bytes.empty() ? "" : content.now + written.bytes;
                   content.dirty = true;
                 },
                 [&](const FileSynced& synced) {
                   Content& content = FileAt(synced.path);
                   content.synced = content.now;
                   content.dirty = false;
                 },
                 [&](const DirectorySynced& synced) {
                   for (auto& [path, values] : entries_)
                     if (ParentOf(path) == synced.path) values = {values.back()};
                 },
                 [&](const Renamed& renamed) {
                   Set(renamed.to, At(renamed.from));
                   Set(renamed.from, std::nullopt);
                 },
                 [&](const Unlinked& unlinked) { Set(unlinked.path, std::nullopt); },
                 [&](const DirectoryMade& made) { Set(made.path, kDirectory); },
                 [&](const DirectoryRemoved& removed) { Set(removed.path, std::nullopt); },
             },
             event);
}

// As last synced; cut in the middle; with its length but zero bytes; complete.
std::vector<std::string> CrashDisk::OutcomesOf(const Content& content) {
  if (!content.dirty) return {content.synced};
  return {content.synced, content.now.substr(0, content.now.size() / 2),
          std::string(content.now.size(), '\0'), content.now};
}

void CrashDisk::ForEachOutcome(std::size_t most, std::mt19937_64& random,
                               const std::function<void(const Files&)>& visit) const {
  // Each choice is one digit of a number.
  std::vector<std::size_t> choices;
  std::size_t outcomes = 1;
  const auto add = [&](std::size_t count) {
    choices.push_back(count);
    outcomes = std::min(most + 1, outcomes * count);
  };
  for (const auto& [path, values] : entries_) add(values.size());
  for (const Content& content : files_) add(OutcomesOf(content).size());

  const bool all = outcomes <= most;
  for (std::size_t outcome = 0; outcome < (all ? outcomes : most); ++outcome) {
    std::size_t left = outcome;
    const auto choose = [&](std::size_t count) {
      return all ? std::exchange(left, left / count) % count : random() % count;
    };
    std::map<std::string, Node> entries;
    for (const auto& [path, values] : entries_)
      entries.emplace(path, values[choose(values.size())]);
    std::vector<std::string> contents;
    for (const Content& content : files_) {
      const std::vector<std::string> possible = OutcomesOf(content);
      contents.push_back(possible[choose(possible.size())]);
    }
    Files found;
    for (const auto& [path, node] : entries) {
      if (!node || *node == kDirectory) continue;
      bool reachable = true;
      for (std::string above = ParentOf(path); above != root_; above = ParentOf(above)) {
        const auto directory = entries.find(above);
        reachable = reachable && directory != entries.end() && directory->second == kDirectory;
      }
      if (reachable)
        found.emplace(path.substr(root_.size() + 1), contents[static_cast<std::size_t>(*node)]);
    }
    visit(found);
  }
}

// ---- The recorder ----

DiskRecorder::DiskRecorder(std::string root) : root_(std::move(root)) {
  CHECK(the_recorder == nullptr, "one recorder at a time");
  the_recorder = this;
}

DiskRecorder::~DiskRecorder() { the_recorder = nullptr; }

DiskRecorder* DiskRecorder::Of(const std::string& path) {
  return the_recorder != nullptr && path.starts_with(the_recorder->root_) ? the_recorder : nullptr;
}

DiskRecorder* DiskRecorder::Of(int descriptor) {
  return the_recorder != nullptr && the_recorder->open.contains(descriptor) ? the_recorder
                                                                            : nullptr;
}

bool DiskRecorder::Fails() {
  const int error = fail ? fail(asked_) : 0;
  ++asked_;
  if (error != 0) errno = error;
  return error != 0;
}

}  // namespace pliant

// ---- The system calls of FileStore (see CMakeLists.txt: --wrap) ----

using pliant::DiskRecorder;

extern "C" {

int __real_open(const char* path, int flags, ...);
int __real_close(int descriptor);
ssize_t __real_writev(int descriptor, const iovec* parts, int count);
int __real_fsync(int descriptor);
int __real_rename(const char* from, const char* to);
int __real_unlink(const char* path);
int __real_mkdir(const char* path, mode_t mode);
int __real_rmdir(const char* path);

int __wrap_open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  DiskRecorder* const recorder = DiskRecorder::Of(path);
  if (recorder == nullptr) return __real_open(path, flags, mode);
  const bool writes = (flags & O_CREAT) != 0;
  if (writes && recorder->Fails()) return -1;
  const bool is_new = ::access(path, F_OK) != 0;
  const int descriptor = __real_open(path, flags, mode);
  if (descriptor < 0) return descriptor;
  recorder->open[descriptor] = path;
  if (writes && is_new) {
    recorder->Record(pliant::Created{path});
  } else if (writes) {
    recorder->Record(pliant::Written{path, ""});
  }
  return descriptor;
}

int __wrap_close(int descriptor) {
  if (DiskRecorder* const recorder = DiskRecorder::Of(descriptor)) recorder->open.erase(descriptor);
  return __real_close(descriptor);
}

// Writes only a few bytes of one part, so that a crash can come at every moment within a file.
ssize_t __wrap_writev(int descriptor, const iovec* parts, int count) {
  DiskRecorder* const recorder = DiskRecorder::Of(descriptor);
  if (recorder == nullptr) return __real_writev(descriptor, parts, count);
  if (recorder->Fails()) return -1;
  const iovec part{.iov_base = parts->iov_base,
                   .iov_len = std::min<std::size_t>(parts->iov_len, 200)};
  const ssize_t written = __real_writev(descriptor, &part, 1);
  if (written > 0)
    recorder->Record(pliant::Written{
        recorder->open[descriptor],
        std::string(static_cast<const char*>(part.iov_base), static_cast<std::size_t>(written))});
  return written;
}

int __wrap_fsync(int descriptor) {
  DiskRecorder* const recorder = DiskRecorder::Of(descriptor);
  if (recorder == nullptr) return __real_fsync(descriptor);
  if (recorder->Fails()) return -1;
  const std::string path = recorder->open[descriptor];
  struct stat what{};
  if (::fstat(descriptor, &what) == 0 && S_ISDIR(what.st_mode)) {
    recorder->Record(pliant::DirectorySynced{path});
  } else {
    recorder->Record(pliant::FileSynced{path});
  }
  return 0;
}

int __wrap_rename(const char* from, const char* to) {
  DiskRecorder* const recorder = DiskRecorder::Of(from);
  if (recorder != nullptr && recorder->Fails()) return -1;
  const int renamed = __real_rename(from, to);
  if (recorder != nullptr && renamed == 0) recorder->Record(pliant::Renamed{from, to});
  return renamed;
}

int __wrap_unlink(const char* path) {
  DiskRecorder* const recorder = DiskRecorder::Of(path);
  if (recorder != nullptr && recorder->Fails()) return -1;
  const int unlinked = __real_unlink(path);
  if (recorder != nullptr && unlinked == 0) recorder->Record(pliant::Unlinked{path});
  return unlinked;
}

int __wrap_mkdir(const char* path, mode_t mode) {
  DiskRecorder* const recorder = DiskRecorder::Of(path);
  if (recorder != nullptr && recorder->Fails()) return -1;
  const int made = __real_mkdir(path, mode);
  if (recorder != nullptr && made == 0) recorder->Record(pliant::DirectoryMade{path});
  return made;
}

int __wrap_rmdir(const char* path) {
  DiskRecorder* const recorder = DiskRecorder::Of(path);
  if (recorder != nullptr && recorder->Fails()) return -1;
  const int removed = __real_rmdir(path);
  if (recorder != nullptr && removed == 0) recorder->Record(pliant::DirectoryRemoved{path});
  return removed;
}

}  // extern "C"
