#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/report/figures.h"

// The figures that every report has, in one order, each with its name, unit and definition.
namespace pliant::simulator {

enum class Better { kLower, kHigher, kNeither };

enum class OverWorkloads {
  kMean,   // as in published simulations: the mean of the workloads' own figures
  kTotal,  // for counts
};

struct FigureKind {
  std::string_view key;     // in JSON
  std::string_view column;  // heading in a terminal
  std::string_view label;   // for people
  std::string_view unit;    // "s", "%" or ""; a share of 0.25 is shown as 25 %
  int digits = 0;           // after the point, as shown
  Better better = Better::kNeither;
  OverWorkloads over = OverWorkloads::kMean;
  std::string_view definition;  // sentences in plain words
  std::optional<double> (*of)(const Figures&) = nullptr;
};

std::span<const FigureKind> FigureKinds();

// Values by FigureKinds(). Absent: the run does not have this figure.
using FigureValues = std::vector<std::optional<double>>;
FigureValues ValuesOf(const Figures& figures);

// With the kind's digits and without its unit: "12.3", "-" if it is absent.
std::string Shown(const FigureKind& kind, std::optional<double> value);
// With a sign: "+12.3".
std::string ShownDifference(const FigureKind& kind, std::optional<double> value);

// The definition of percentiles and of means over workloads.
inline constexpr std::string_view kMethod =
    "Percentiles are nearest ranks: the smallest value that is at least as large as this "
    "percentage "
    "of the values. A figure over several workloads is the mean of the figures of the workloads; "
    "counts are totals. If a workload lacks a figure, there is no mean. Jobs that did not complete "
    "have no completion time and no rho; they are counted.";

}  // namespace pliant::simulator
