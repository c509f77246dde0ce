#include "trainer/runtime/metrics_file.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"

namespace pliant {
namespace {

namespace fs = std::filesystem;

constexpr std::streamoff kLineBytesMost = 4096;

// Nothing if the line is torn.
std::optional<Tick> TickOf(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto found = json.find("tick");
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<Tick>();
}

// Of the last whole line.
std::optional<Tick> LastTick(const fs::path& path) {
  std::ifstream file(path, std::ios::ate);
  const std::streamoff size = file ? std::streamoff{file.tellg()} : 0;
  file.seekg(std::max(std::streamoff{0}, size - kLineBytesMost));
  std::optional<Tick> last;
  for (std::string line; std::getline(file, line);) {
    if (const std::optional<Tick> tick = TickOf(line)) last = tick;
  }
  return last;
}

class MetricsFile final : public MetricsSink {
 public:
  explicit MetricsFile(fs::path path) : path_(std::move(path)) {}

  void Append(Tick tick, std::string_view line) override {
    if (LastTick(path_) >= tick) return;
    std::error_code ignored;
    fs::create_directories(path_.parent_path(), ignored);
    // Opened for each line, at most some a second: another learner may have cut or replaced it.
    std::ofstream file(path_, std::ios::app);
    file << line << '\n' << std::flush;
    Report(file.good());
  }

  void CutFrom(Tick tick) override {
    std::ifstream old(path_);
    if (!old) return;
    std::vector<std::string> kept;
    bool cut = false;
    for (std::string line; std::getline(old, line);) {
      if (const std::optional<Tick> of_line = TickOf(line); of_line && *of_line < tick) {
        kept.push_back(std::move(line));
      } else {
        cut = true;
      }
    }
    if (!cut) return;
    fs::path next = path_;
    next += ".new";
    std::ofstream file(next, std::ios::trunc);
    for (const std::string& line : kept) file << line << '\n';
    file.close();
    std::error_code error;
    if (file.good()) fs::rename(next, path_, error);
    Report(file.good() && !error);
  }

 private:
  void Report(bool good) {
    if (!good && !std::exchange(failing_, true)) {
      log::Warning("cannot write metrics", {{"file", path_.string()}});
    }
    if (good) failing_ = false;
  }

  const fs::path path_;
  bool failing_ = false;
};

}  // namespace

std::unique_ptr<MetricsSink> NewMetricsFile(fs::path path) {
  return std::make_unique<MetricsFile>(std::move(path));
}

}  // namespace pliant
