#include "trainer/learner/digits_data.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <format>
#include <fstream>
#include <iterator>

#include "trainer/learner/model_spec.h"

namespace pliant::learner {
namespace {

constexpr int kPixelMost = 16;

// Takes a whole number of 0..most off the front of `line`.
bool TakeNumber(std::string_view& line, int most, int& number) {
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc() || number < 0 || number > most) return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  return true;
}

bool ParseLine(std::string_view line, Samples& samples) {
  int number = 0;
  for (std::int64_t pixel = 0; pixel < kDigitPixels; ++pixel) {
    if (!TakeNumber(line, kPixelMost, number) || !line.starts_with(',')) return false;
    line.remove_prefix(1);
    samples.pixels.push_back(static_cast<float>(number) / 8.0F - 1.0F);  // exact in fp32
  }
  if (!TakeNumber(line, kDigitClasses - 1, number) || !line.empty()) return false;
  samples.labels.push_back(number);
  return true;
}

}  // namespace

Result<Samples> ParseDigits(std::string_view text, const std::string& origin) {
  Samples samples;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!ParseLine(line, samples)) {
      return Invalid(std::format(
          "{}:{}: expected {} pixels of 0..{} and a digit of 0..{}, separated by commas", origin,
          number, kDigitPixels, kPixelMost, kDigitClasses - 1));
    }
  }
  if (samples.count() == 0) return Invalid(std::format("{}: holds no image", origin));
  return samples;
}

Result<Samples> ReadDigits(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Invalid(std::format("read {}: {}", path.string(), std::strerror(errno)));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return ParseDigits(text, path.string());
}

}  // namespace pliant::learner
