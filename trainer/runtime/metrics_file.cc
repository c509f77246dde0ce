#include "trainer/runtime/metrics_file.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"

namespace pliant {
namespace {

namespace fs = std::filesystem;

// Whether the line is whole and of a tick before `tick`.
bool IsBefore(const std::string& line, Tick tick) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  const auto found = json.find("tick");
  return found != json.end() && found->is_number_unsigned() && found->get<Tick>() < tick;
}

class MetricsFile final : public MetricsSink {
 public:
  explicit MetricsFile(fs::path path) : path_(std::move(path)) {}

  void Append(std::string_view line) override {
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
      if (IsBefore(line, tick)) {
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
