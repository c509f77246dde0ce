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

// The possible contents of a file system after a crash, by the guarantees of POSIX and no others.
namespace pliant {

struct Created {
  std::string path;
};
struct Written {  // appends to the file of this path; empty bytes truncate it to length 0
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

// Until a file is synced, any part of what was written to it may be missing. Until a directory is
// synced, each of its entries may independently be in any state since the last sync.
class CrashDisk {
 public:
  explicit CrashDisk(std::string root) : root_(std::move(root)) {}

  void Apply(const DiskEvent& event);

  using Files = std::map<std::string, std::string>;  // paths relative to the root, with contents
  // Calls `visit` with what may be found after a crash at this moment: all outcomes, or, if there
  // are too many, `most` of them drawn by `random`.
  void ForEachOutcome(std::size_t most, std::mt19937_64& random,
                      const std::function<void(const Files&)>& visit) const;

 private:
  static constexpr int kDirectory = -1;
  struct Content {
    std::string synced;
    std::string now;
    bool dirty = false;
  };
  // A file by its number, or a directory; nullopt: no entry of that name.
  using Node = std::optional<int>;

  void Set(const std::string& path, Node node);
  Node At(const std::string& path) const;
  Content& FileAt(const std::string& path);
  static std::vector<std::string> OutcomesOf(const Content& content);

  const std::string root_;
  std::vector<Content> files_;
  std::map<std::string, std::vector<Node>> entries_;  // since the last sync; the last element is
                                                      // the present state
};

// Records the changes that this process makes below `root`, and may let them fail. One recorder at
// a time. Nothing is really synced, because the process does not crash.
class DiskRecorder {
 public:
  explicit DiskRecorder(std::string root);
  ~DiskRecorder();
  DiskRecorder(const DiskRecorder&) = delete;
  DiskRecorder& operator=(const DiskRecorder&) = delete;

  const std::vector<DiskEvent>& events() const { return events_; }
  std::size_t asked() const { return asked_; }
  // Called before every event with its number. Returns an errno to fail with, or 0.
  std::function<int(std::size_t number)> fail;

  // ---- For the wrapped system calls ----
  static DiskRecorder* Of(const std::string& path);
  static DiskRecorder* Of(int descriptor);
  bool Fails();  // sets errno if true
  void Record(DiskEvent event) { events_.push_back(std::move(event)); }
  std::map<int, std::string> open;  // by descriptor: its path

 private:
  const std::string root_;
  std::size_t asked_ = 0;
  std::vector<DiskEvent> events_;
};

}  // namespace pliant
