#include "tests/bench/operator/rows.h"

#include <algorithm>
#include <cstdio>
#include <format>
#include <fstream>
#include <nlohmann/json.hpp>

namespace pliant::bench {
namespace {

bool IsMet(const Row& row) {
  return row.more_is_better ? row.value >= *row.aim : row.value <= *row.aim;
}

double RatioTo(double rival, const Row& row) {
  return row.more_is_better ? row.value / rival : rival / row.value;
}

}  // namespace

double Quantile(std::vector<double> values, double quantile) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(quantile * static_cast<double>(values.size() - 1) + 0.5)];
}

void Report(const Row& row, std::vector<Row>& rows) {
  std::string text = std::format("{:58} {:10.2f} {}", row.name, row.value, row.unit);
  if (row.rival)
    text += std::format("   rival {:.2f}, {:.2f} x", *row.rival, RatioTo(*row.rival, row));
  if (row.aim) text += std::format("   (aim {}: {})", *row.aim, IsMet(row) ? "met" : "missed");
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
  rows.push_back(row);
}

void Write(const std::vector<Row>& rows, const std::string& file) {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) {
    nlohmann::json object = {{"name", row.name}, {"value", row.value}, {"unit", row.unit}};
    if (row.rival) {
      object["rival"] = *row.rival;
      object["ratio"] = RatioTo(*row.rival, row);
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
