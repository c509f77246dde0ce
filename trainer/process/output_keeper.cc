#include "trainer/process/output_keeper.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exceptions.h"
#include "base/format.h"

namespace pliant {
namespace {

// After a failed write nothing is tried for this time.
constexpr auto kPause = std::chrono::seconds(1);

// Shared by the object and its thread: the thread may be stuck in the volume when the object goes.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::string waiting;
  std::size_t left_out = 0;  // bytes
  bool writes = false;       // the thread has taken text, and is still writing it
  bool stopped = false;
};

bool WriteAll(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Whether it is a file of a learner: nothing else is ever removed.
bool IsKeptOutput(const std::filesystem::directory_entry& entry) {
  std::error_code error;
  const std::string name = entry.path().filename().string();
  return entry.is_regular_file(error) && !entry.is_symlink(error) &&
         (name.ends_with(".log") || name.ends_with(".log.1"));
}

// Removes the oldest files.
void RemoveOthers(const std::filesystem::path& path, std::size_t max_files) {
  std::error_code error;
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> files;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), error)) {
    if (entry.path() != path && IsKeptOutput(entry))
      files.emplace_back(entry.last_write_time(error), entry.path());
  }
  if (files.size() <= max_files) return;
  std::ranges::sort(files);
  for (std::size_t i = 0; i + max_files < files.size(); ++i) {
    std::filesystem::remove(files[i].second, error);
  }
}

// Used by the thread only.
class OutputFile {
 public:
  OutputFile(std::filesystem::path path, std::size_t max_bytes)
      : path_(std::move(path)), max_bytes_(max_bytes) {}
  ~OutputFile() { Close(); }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  bool Append(std::string_view text) {
    if (file_ >= 0 && IsRemoved()) Close();
    if (file_ < 0 && !Open()) return false;
    if (bytes_ > 0 && bytes_ + text.size() > max_bytes_) TurnOver();
    if (file_ < 0) return false;
    if (!WriteAll(file_, text)) {
      Close();
      return false;
    }
    bytes_ += text.size();
    return true;
  }

 private:
  // Another learner removes this file as one of the oldest, if this learner was quiet while more
  // than `max_files` others came.
  bool IsRemoved() const {
    struct stat status = {};
    return fstat(file_, &status) != 0 || status.st_nlink == 0;
  }

  bool Open() {
    std::error_code error;
    std::filesystem::create_directories(path_.parent_path(), error);
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file_ < 0) return false;
    bytes_ = static_cast<std::size_t>(std::max<off_t>(lseek(file_, 0, SEEK_END), 0));
    return true;
  }

  void TurnOver() {
    Close();
    std::error_code error;
    std::filesystem::path before = path_;
    before += ".1";
    std::filesystem::rename(path_, before, error);
    if (error || !Open()) return;
    const std::string notice =
        Format("pliant: this file was full; earlier lines are in {}, and older ones are deleted\n",
               before.filename().string());
    if (WriteAll(file_, notice)) bytes_ += notice.size();
  }

  void Close() {
    if (file_ >= 0) close(file_);
    file_ = -1;
  }

  const std::filesystem::path path_;
  const std::size_t max_bytes_;
  int file_ = -1;
  std::size_t bytes_ = 0;
};

void Run(const std::shared_ptr<Shared>& shared, const std::filesystem::path& path,
         const OutputKeeperOptions& options) {
  CatchAll([&] { RemoveOthers(path, options.max_files); });  // files that it cannot list stay
  OutputFile file(path, options.max_file_bytes);
  std::unique_lock lock(shared->mutex);
  while (true) {
    shared->changed.wait(lock, [&] { return shared->stopped || !shared->waiting.empty(); });
    if (shared->waiting.empty()) return;
    std::string text = std::exchange(shared->waiting, {});
    const std::size_t left_out = std::exchange(shared->left_out, 0);
    shared->writes = true;
    lock.unlock();
    const auto append = [&]() -> Result<bool> {
      if (left_out > 0) {
        text.insert(0, Format("pliant: {} bytes could not be written here\n", left_out));
      }
      return file.Append(text);
    };
    const bool written = CatchAll(append).value_or(false);
    lock.lock();
    shared->writes = false;
    if (!written) {
      shared->left_out += left_out + text.size();
      if (shared->stopped) {
        shared->changed.notify_all();
        return;
      }
      shared->changed.wait_for(lock, kPause, [&] { return shared->stopped; });
    }
    shared->changed.notify_all();
  }
}

class ThreadedKeeper final : public OutputKeeper {
 public:
  ThreadedKeeper(const std::filesystem::path& path, const OutputKeeperOptions& options)
      : options_(options) {
    // Not joined: it may hang as long as its volume does.
    std::thread([shared = shared_, path, options] {
      CatchAll(
          [&] { Run(shared, path, options); });  // on an error nothing is kept: only lines are lost
    }).detach();
  }

  ~ThreadedKeeper() override {
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->stopped = true;
    }
    shared_->changed.notify_all();
    Flush();
  }

  void Flush() override {
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait_for(lock, options_.max_flush,
                              [this] { return shared_->waiting.empty() && !shared_->writes; });
  }

  void Keep(std::string_view text) override {
    {
      const std::lock_guard lock(shared_->mutex);
      if (shared_->waiting.size() + text.size() > options_.max_waiting_bytes) {
        shared_->left_out += text.size();
        return;
      }
      shared_->waiting += text;
    }
    shared_->changed.notify_all();
  }

 private:
  const OutputKeeperOptions options_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace

std::unique_ptr<OutputKeeper> NewOutputKeeper(const std::filesystem::path& path,
                                              OutputKeeperOptions options) {
  return std::make_unique<ThreadedKeeper>(path, options);
}

}  // namespace pliant
