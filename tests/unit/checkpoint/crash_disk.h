#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

// What a file system may hold after a crash, from what was asked of it (POSIX, and no kindness
// beyond it).
namespace pliant {

struct Created {
  std::string path;
};
struct Written {  // to the file of this path, at its end; an empty one cuts it to nothing
  std::string path;
  std::string bytes;
};
struct FileSynced {
  std::string path;
};
struct DirectorySynced {
  std::string path;
};
struct Renamed {
  std::string from;
  std::string to;
};
struct Unlinked {
  std::string path;
};
struct DirectoryMade {
  std::string path;
};
struct DirectoryRemoved {
  std::string path;
};
using DiskEvent = std::variant<Created, Written, FileSynced, DirectorySynced, Renamed, Unlinked,
                               DirectoryMade, DirectoryRemoved>;

// Until a file is synced any part of what was written to it may be missing; until a directory is
// synced each of its entries, by itself, may be any that it was since the sync before.
class CrashDisk {
 public:
  explicit CrashDisk(std::string root) : root_(std::move(root)) {}

  void Apply(const DiskEvent& event);

  using Files = std::map<std::string, std::string>;  // below the root: path → content
  // Calls `visit` with what may be found after a crash at this moment: all there is, or, where that
  // is too much, `most` of it as `random` draws.
  void ForEachOutcome(std::size_t most, std::mt19937_64& random,
                      const std::function<void(const Files&)>& visit) const;

 private:
  static constexpr int kDirectory = -1;
  struct Content {
    std::string synced;
    std::string now;
    bool dirty = false;
  };
  // A file by its number, or a directory; none: nothing of that name.
  using Node = std::optional<int>;

  void Set(const std::string& path, Node node);
  Node At(const std::string& path) const;
  Content& FileAt(const std::string& path);
  static std::vector<std::string> OutcomesOf(const Content& content);

  const std::string root_;
  std::vector<Content> files_;
  std::map<std::string, std::vector<Node>> entries_;  // since the last sync; the last one is now
};

// Records what this process asks of the file system below `root`, and may let it fail. One at a
// time. Nothing is synced in truth: the process does not crash.
class DiskRecorder {
 public:
  explicit DiskRecorder(std::string root);
  ~DiskRecorder();
  DiskRecorder(const DiskRecorder&) = delete;
  DiskRecorder& operator=(const DiskRecorder&) = delete;

  const std::vector<DiskEvent>& events() const { return events_; }
  std::size_t asked() const { return asked_; }
  // Asked before every event, with its number: an errno to fail with, or 0.
  std::function<int(std::size_t number)> fail;

  // ---- For the wrapped system calls ----
  static DiskRecorder* Of(const std::string& path);
  static DiskRecorder* Of(int descriptor);
  bool Fails();  // and sets errno
  void Record(DiskEvent event) { events_.push_back(std::move(event)); }
  std::map<int, std::string> open;  // descriptor → path

 private:
  const std::string root_;
  std::size_t asked_ = 0;
  std::vector<DiskEvent> events_;
};

}  // namespace pliant
