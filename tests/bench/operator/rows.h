#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pliant::bench {

// One figure, as tests/bench/trainer/rows.py has them.
struct Row {
  std::string name;
  double value = 0;
  std::string unit;
  std::optional<double> rival;  // its published value of the same figure
  std::optional<double> aim;    // of the value
  bool more_is_better = false;
};

double Quantile(std::vector<double> values, double quantile);

// Prints the row at once: a bench takes minutes.
void Report(const Row& row, std::vector<Row>& rows);
// A JSON list: name, value, unit, rival, ratio, aim, met.
void Write(const std::vector<Row>& rows, const std::string& file);

}  // namespace pliant::bench
