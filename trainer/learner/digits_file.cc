#include "trainer/learner/digits_file.h"

#include <charconv>
#include <cstdint>

#include "base/format.h"

namespace pliant::learner {
namespace {

constexpr int kDigitPixels = kDigitSide * kDigitSide;

// Removes a whole number of 0..most from the front of `line`.
bool TakeNumber(std::string_view& line, int most, int& number) {
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc() || number < 0 || number > most) return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  return true;
}

bool ParseLine(std::string_view line, Samples& samples) {
  int number = 0;
  for (int pixel = 0; pixel < kDigitPixels; ++pixel) {
    if (!TakeNumber(line, kDigitBrightest, number) || !line.starts_with(',')) return false;
    line.remove_prefix(1);
    samples.pixels.push_back(static_cast<std::uint8_t>(number));
  }
  if (!TakeNumber(line, kDigitClasses - 1, number) || !line.empty()) return false;
  samples.labels.push_back(static_cast<std::uint8_t>(number));
  return true;
}

}  // namespace

Result<Samples> ParseDigits(std::string_view text, const std::string& origin) {
  Samples samples{.shape = {1, kDigitSide, kDigitSide}, .pixels = {}, .labels = {}};
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!ParseLine(line, samples)) {
      return Invalid(
          Format("{}:{}: expected {} pixels of 0..{} and a digit of 0..{}, separated by commas",
                 origin, number, kDigitPixels, kDigitBrightest, kDigitClasses - 1));
    }
  }
  if (samples.count() == 0) return Invalid(Format("{}: holds no image", origin));
  return samples;
}

}  // namespace pliant::learner
