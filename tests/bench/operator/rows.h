#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pliant::bench {

// One measured value, in the format of tests/bench/trainer/rows.py.
struct Row {
  std::string name;
  std::optional<double> value;  // nullopt: there was nothing to measure, so the aim is not met
  std::string unit;
  std::optional<double> rival;  // the rival's published value
  std::optional<double> aim;    // bound for the value
  bool more_is_better = false;
};

// nullopt if there are no values.
std::optional<double> Quantile(std::vector<double> values, double quantile);

// Whether the row meets its aim. It must have one.
bool IsMet(const Row& row);
std::string Line(const Row& row);

// Prints the row at once: a bench takes minutes.
void Report(const Row& row, std::vector<Row>& rows);
// A JSON list: name, value (null: none), unit, rival, ratio, aim, met.
void Write(const std::vector<Row>& rows, const std::string& file);

}  // namespace pliant::bench
