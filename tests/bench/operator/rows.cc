#include "tests/bench/operator/rows.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/format.h"

namespace pliant::bench {
namespace {

double RatioTo(double rival, double value, bool more_is_better) {
  return more_is_better ? value / rival : rival / value;
}

}  // namespace

std::optional<double> Quantile(std::vector<double> values, double quantile) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(quantile * static_cast<double>(values.size() - 1) + 0.5)];
}

bool IsMet(const Row& row) {
  if (!row.value) return false;
  return row.more_is_better ? *row.value >= *row.aim : *row.value <= *row.aim;
}

std::string Line(const Row& row) {
  const std::string value = row.value ? Format("{:.2f}", *row.value) : "no samples";
  std::string text = Format("{:58} {:>10} {}", row.name, value, row.unit);
  if (row.rival && row.value) {
    text += Format("   rival {:.2f}, {:.2f} x", *row.rival,
                   RatioTo(*row.rival, *row.value, row.more_is_better));
  }
  if (row.aim) text += Format("   (aim {}: {})", *row.aim, IsMet(row) ? "met" : "missed");
  return text;
}

void Report(const Row& row, std::vector<Row>& rows) {
  std::printf("%s\n", Line(row).c_str());
  std::fflush(stdout);
  rows.push_back(row);
}

void Write(const std::vector<Row>& rows, const std::string& file) {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) {
    nlohmann::json object = {{"name", row.name}, {"value", nullptr}, {"unit", row.unit}};
    if (row.value) object["value"] = *row.value;
    if (row.rival) object["rival"] = *row.rival;
    if (row.rival && row.value) {
      object["ratio"] = RatioTo(*row.rival, *row.value, row.more_is_better);
    }
    if (row.aim) {
      object["aim"] = *row.aim;
      object["met"] = IsMet(row);
    }
    list.push_back(std::move(object));
  }
  std::ofstream(file) << list.dump(1) << "\n";
}

}  // namespace pliant::bench
