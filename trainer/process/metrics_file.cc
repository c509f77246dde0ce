#include "trainer/process/metrics_file.h"

#include <algorithm>
#include <cerrno>
#include <expected>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exceptions.h"
#include "base/json.h"
#include "base/log.h"
#include "base/workers.h"

namespace pliant {
namespace {

namespace fs = std::filesystem;

// How much of the file's end is read at first; four times as much after each read that is too
// short.
constexpr off_t kTailBytes = 16 << 10;

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags)
      : value_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }
  bool open() const { return value_ >= 0; }

 private:
  const int value_;
};

std::optional<Tick> TickOf(std::string_view line) {
  const auto json = ParseJson(line);
  if (!json.is_object()) return std::nullopt;
  const auto found = json.find("tick");
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<Tick>();
}

// A whole line and where it ends, its '\n' included.
struct EndedLine {
  Tick tick = 0;
  off_t end = 0;
};

// The last complete line that `wanted` accepts. Lines are in the order of their ticks, so it is
// near the end of a file that may be long. The error is an errno.
std::expected<std::optional<EndedLine>, int> LastLine(int file, off_t size,
                                                      const std::function<bool(Tick)>& wanted) {
  for (off_t window = kTailBytes;; window *= 4) {
    const off_t begin = std::max<off_t>(0, size - window);
    std::string tail(static_cast<std::size_t>(size - begin), '\0');
    const ssize_t got = ::pread(file, tail.data(), tail.size(), begin);
    if (got < 0) return std::unexpected(errno);
    tail.resize(static_cast<std::size_t>(got));
    for (std::size_t end = tail.rfind('\n'); end != std::string::npos;) {
      const std::size_t before = end == 0 ? std::string::npos : tail.rfind('\n', end - 1);
      if (before == std::string::npos && begin > 0) break;  // it may begin before the window
      const std::size_t from = before == std::string::npos ? 0 : before + 1;
      const std::optional<Tick> tick = TickOf(std::string_view(tail).substr(from, end - from));
      if (tick && wanted(*tick)) return EndedLine{*tick, begin + static_cast<off_t>(end) + 1};
      end = before;
    }
    if (begin == 0) return std::nullopt;
  }
}

class MetricsFile final : public MetricsSink {
 public:
  explicit MetricsFile(fs::path path) : path_(std::move(path)) {}

  void Append(Tick tick, std::string_view line) override {
    std::error_code ignored;
    if (!made_) fs::create_directories(path_.parent_path(), ignored);
    // Opened for each line, at most a few times per second: another learner may have cut it or
    // written to it.
    const Descriptor file(path_, O_RDWR | O_APPEND | O_CREAT);
    struct stat now{};
    if (!file.open() || ::fstat(file.value(), &now) != 0) return Report(errno);
    made_ = true;
    if (now.st_ino != inode_ || now.st_size != size_) {
      const auto last = LastLine(file.value(), now.st_size, [](Tick) { return true; });
      if (!last) return Report(last.error());
      last_ = *last ? std::optional((*last)->tick) : std::nullopt;
    }
    inode_ = now.st_ino;
    size_ = now.st_size;
    if (last_ >= tick) return;
    const std::string text = std::string(line) + '\n';
    const ssize_t written = ::write(file.value(), text.data(), text.size());
    if (written != static_cast<ssize_t>(text.size())) {
      const int error = written < 0 ? errno : ENOSPC;
      // Half a line would corrupt the next one.
      if (written > 0 && ::ftruncate(file.value(), now.st_size) != 0) size_ = -1;
      return Report(error);
    }
    size_ += written;
    last_ = tick;
    Report(0);
  }

  void CutFrom(Tick tick) override {
    const Descriptor file(path_, O_RDWR);
    struct stat now{};
    if (!file.open() || ::fstat(file.value(), &now) != 0) return;
    const auto kept =
        LastLine(file.value(), now.st_size, [&](Tick of_line) { return of_line < tick; });
    if (!kept) return Report(kept.error());
    const off_t end = *kept ? (*kept)->end : 0;
    if (end < now.st_size) Report(::ftruncate(file.value(), end) == 0 ? 0 : errno);
  }

 private:
  void Report(int error) {
    if (error != 0 && !std::exchange(failing_, true)) {
      log::Warning("cannot write metrics",
                   {{"file", path_.string()}, {"cause", std::generic_category().message(error)}});
    }
    if (error == 0) failing_ = false;
  }

  const fs::path path_;
  bool made_ = false;  // the directory exists
  // The file as this learner left it: while nobody else changes it, its end need not be read.
  ino_t inode_ = 0;
  off_t size_ = -1;
  std::optional<Tick> last_;
  bool failing_ = false;
};

class BackgroundMetrics final : public MetricsSink {
 public:
  explicit BackgroundMetrics(std::unique_ptr<MetricsSink> sink) : sink_(std::move(sink)) {}

  void Append(Tick tick, std::string_view line) override {
    Run([this, tick, line = std::string(line)] { sink_->Append(tick, line); });
  }
  void CutFrom(Tick tick) override {
    Run([this, tick] { sink_->CutFrom(tick); });
  }

 private:
  void Run(std::function<void()> call) {
    worker_.Run([call = std::move(call)] {
      const Status done = CatchAll(call);
      if (done) return;
      CatchAll(
          [&] { log::Warning("a line of metrics is lost", {{"cause", done.error().message}}); });
    });
  }

  const std::unique_ptr<MetricsSink> sink_;                // worker thread only
  Workers worker_{"metrics", 1, Workers::AtEnd::kFinish};  // last: uses the sink
};

class ShownMetrics final : public MetricsSink {
 public:
  ShownMetrics(MetricsSink& file, std::function<void(std::string_view)> show)
      : file_(file), show_(std::move(show)) {}

  void Append(Tick tick, std::string_view line) override {
    file_.Append(tick, line);
    if (!show_ || line == shown_) return;
    shown_ = line;
    show_(line);
  }
  void CutFrom(Tick tick) override { file_.CutFrom(tick); }

 private:
  MetricsSink& file_;
  const std::function<void(std::string_view)> show_;
  std::string shown_;  // the last one
};

}  // namespace

std::unique_ptr<MetricsSink> NewMetricsFile(fs::path path) {
  return std::make_unique<MetricsFile>(std::move(path));
}

std::unique_ptr<MetricsSink> NewBackgroundMetrics(std::unique_ptr<MetricsSink> sink) {
  return std::make_unique<BackgroundMetrics>(std::move(sink));
}

std::unique_ptr<MetricsSink> NewShownMetrics(MetricsSink& file,
                                             std::function<void(std::string_view line)> show) {
  return std::make_unique<ShownMetrics>(file, std::move(show));
}

}  // namespace pliant
