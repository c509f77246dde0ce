#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pliant::bench {

// One figure, as tests/bench/trainer/rows.py has them.
struct Row {
  std::string name;
  std::optional<double> value;  // nothing: there was nothing to measure, which meets no aim
  std::string unit;
  std::optional<double> rival;  // its published value of the same figure
  std::optional<double> aim;    // of the value
  bool more_is_better = false;
};

// Nothing if there are no values.
std::optional<double> Quantile(std::vector<double> values, double quantile);

// Whether it meets its aim, which it has.
bool IsMet(const Row& row);
std::string Line(const Row& row);

// Prints the row at once: a bench takes minutes.
void Report(const Row& row, std::vector<Row>& rows);
// A JSON list: name, value (null: none), unit, rival, ratio, aim, met.
void Write(const std::vector<Row>& rows, const std::string& file);

}  // namespace pliant::bench
