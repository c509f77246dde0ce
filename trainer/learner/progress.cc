#include "trainer/learner/progress.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "base/format.h"

namespace pliant::learner {
namespace {

constexpr std::size_t kBarWidth = 20;

std::optional<double> NumberIn(const nlohmann::json& line, const char* name) {
  const auto found = line.find(name);
  if (found == line.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::string Bar(double share) {
  const auto done = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * kBarWidth);
  std::string bar(done, '=');
  if (done < kBarWidth) bar += '>';
  return Format("[{:<{}}]", bar, kBarWidth);
}

// "2:41", "1:02:41".
std::string Clock(std::uint64_t seconds) {
  const std::uint64_t hours = seconds / 3600;
  const std::uint64_t minutes = seconds / 60 % 60;
  if (hours == 0) return Format("{}:{:02}", minutes, seconds % 60);
  return Format("{}:{:02}:{:02}", hours, minutes, seconds % 60);
}

}  // namespace

void Progress::OnMetricsLine(std::string_view text) {
  const nlohmann::json line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) return;
  step_ = line.value("step", step_);
  total_steps_ = line.value("totalSteps", total_steps_);
  batch_size_ = line.value("batchSize", batch_size_);
  epoch_ = line.value("epoch", epoch_ - 1) + 1;
  if (line.value("kind", "") == "test") {
    test_accuracy_ = NumberIn(line, "accuracy");
    return;
  }
  loss_ = NumberIn(line, "loss");
  accuracy_ = NumberIn(line, "accuracy");
  samples_per_second_ = NumberIn(line, "samplesPerSecond");
}

std::optional<std::uint64_t> Progress::seconds_left() const {
  if (!samples_per_second_ || *samples_per_second_ <= 0) return std::nullopt;
  const auto samples = static_cast<double>(total_steps_ - std::min(step_, total_steps_)) *
                       static_cast<double>(batch_size_);
  return static_cast<std::uint64_t>(std::ceil(samples / *samples_per_second_));
}

std::string Progress::StatusLine() const {
  std::string text = Format(
      "epoch {}/{}  step {}/{}  {}", epoch_, epochs_, step_, total_steps_,
      Bar(total_steps_ > 0 ? static_cast<double>(step_) / static_cast<double>(total_steps_) : 0));
  if (loss_) text += Format("  loss {:.4f}", *loss_);
  if (accuracy_) text += Format("  accuracy {:.1f} %", *accuracy_ * 100);
  if (test_accuracy_) text += Format("  test {:.1f} %", *test_accuracy_ * 100);
  if (samples_per_second_) text += Format("  {:.0f} samples/s", *samples_per_second_);
  if (const auto left = seconds_left()) text += Format("  {} left", Clock(*left));
  return text;
}

bool Pace::Due(TimePoint now) {
  if (every_ <= Duration::zero() || (last_ && now - *last_ < every_)) return false;
  last_ = now;
  return true;
}

}  // namespace pliant::learner
