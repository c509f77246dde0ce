#include "operator/speed/step_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace pliant::speed {
namespace {

constexpr double kGammas[] = {1, 1.25, 1.5, 2, 3, 5, 10};

constexpr double kTiny = 1e-9;

double Overlapped(double part, double net, double gamma) {
  if (net <= 0) return part;
  return std::pow(std::pow(part, gamma) + std::pow(net, gamma), 1 / gamma);
}

double SlopeOf(int learners) { return std::max(learners - 2, 0); }

}  // namespace

// Rows are {weight, u, v, value}: minimizes the sum of weight · ((x · u + y · v - value) / value)².
StepModel::Line StepModel::FitLine(std::span<const std::array<double, 4>> rows) {
  double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0;
  for (const auto& [weight, u, v, value] : rows) {
    const double a = u / value;
    const double b = v / value;
    uu += weight * a * a;
    uv += weight * a * b;
    vv += weight * b * b;
    u1 += weight * a;
    v1 += weight * b;
  }
  // At the border one of them is 0.
  const Line only_x{.x = uu > 0 ? u1 / uu : 0};
  const Line only_y{.y = vv > 0 ? v1 / vv : 0};
  if (vv == 0) return only_x;
  const double determinant = uu * vv - uv * uv;
  // The rows do not tell the two apart: each gets half.
  if (determinant <= 1e-9 * uu * vv) return {.x = only_x.x / 2, .y = only_y.y / 2};
  const Line line{.x = (u1 * vv - v1 * uv) / determinant, .y = (v1 * uu - u1 * uv) / determinant};
  if (line.x >= 0 && line.y >= 0) return line;
  const auto gain = [&](const Line& at) {  // the error is a constant minus this
    return 2 * (at.x * u1 + at.y * v1) - at.x * at.x * uu - 2 * at.x * at.y * uv - at.y * at.y * vv;
  };
  return gain(only_x) > gain(only_y) ? only_x : only_y;
}

StepModel::StepModel(std::span<const MeasuredStep> steps) {
  std::vector<std::array<double, 4>> rows;
  for (const MeasuredStep& step : steps) {
    rows.push_back({step.weight, step.work.parts, step.work.samples, step.compute_seconds});
    most_learners_ = std::max(most_learners_, step.learners);
  }
  compute_ = FitLine(rows);
  double best_error = INFINITY;
  double best_gamma = 1;
  for (const double gamma : kGammas) {
    FitNet(steps, gamma);
    const double error = ErrorOf(steps);
    if (error >= 0.5 * best_error - kTiny) continue;  // few sizes fit every γ
    best_error = error;
    best_gamma = gamma;
  }
  FitNet(steps, best_gamma);
  std::array<std::map<int, std::pair<double, double>>, 2> sums;  // by learners: weight, factor
  for (const MeasuredStep& step : steps) {
    const double factor = step.step_seconds / Fitted(step.learners, step.nodes, step.work);
    auto& [weight, sum] = sums[step.nodes > 1 ? 1 : 0][step.learners];
    weight += step.weight;
    sum += step.weight * std::log(factor);
  }
  for (std::size_t kind = 0; kind < sums.size(); ++kind) {
    for (const auto& [learners, of_size] : sums[kind]) {
      corrections_[kind].push_back({learners, std::exp(of_size.second / of_size.first)});
    }
  }
}

void StepModel::FitNet(std::span<const MeasuredStep> steps, double gamma) {
  gamma_ = gamma;
  for (const bool several : {false, true}) {
    std::vector<std::array<double, 4>> rows;
    for (const MeasuredStep& step : steps) {
      if (step.learners < 2 || (step.nodes > 1) != several) continue;
      const double part = step.compute_seconds / step.work.parts;
      const double last = std::max(step.step_seconds - (step.work.parts - 1) * part, part);
      // The time that the exchange adds to the last part; a little, if it is hidden.
      const double net =
          std::pow(std::max(std::pow(last, gamma) - std::pow(part, gamma), 0.0), 1 / gamma);
      rows.push_back({step.weight, 1, SlopeOf(step.learners), std::max(net, 1e-6 * part)});
    }
    std::optional<Line>& line = several ? net_several_ : net_one_node_;
    line.reset();
    if (rows.empty()) continue;
    line = FitLine(rows);
    // Two learners alone do not say how more of them would do.
    const bool one_size =
        std::ranges::all_of(rows, [&](const auto& row) { return row[2] == rows.front()[2]; });
    if (one_size) line = Line{.x = FitLine({{{1, 1, 0, rows.front()[3]}}}).x};
  }
}

double StepModel::Net(int learners, int nodes) const {
  if (learners < 2) return 0;
  const auto at = [&](const Line& line) { return line.x + line.y * SlopeOf(learners); };
  if (nodes > 1 && net_several_) return at(*net_several_);
  return net_one_node_ ? at(*net_one_node_) : 0;
}

double StepModel::Fitted(int learners, int nodes, const StepWork& work) const {
  const double part = (compute_.x * work.parts + compute_.y * work.samples) / work.parts;
  return (work.parts - 1) * part + Overlapped(part, Net(learners, nodes), gamma_);
}

double StepModel::ErrorOf(std::span<const MeasuredStep> steps) const {
  double error = 0;
  for (const MeasuredStep& step : steps) {
    const double off = std::log(Fitted(step.learners, step.nodes, step.work) / step.step_seconds);
    error += step.weight * off * off;
  }
  return error;
}

// Between two measured sizes, linear in the logarithms; beyond them, as at the nearest one.
double StepModel::FactorAt(int learners, int nodes) const {
  const std::vector<Correction>& known = corrections_[nodes > 1 ? 1 : 0];
  if (known.empty()) return 1;
  const auto after = std::ranges::lower_bound(known, learners, {}, &Correction::learners);
  if (after == known.end()) return known.back().factor;
  if (after == known.begin() || after->learners == learners) return after->factor;
  const Correction& before = *std::prev(after);
  const double part = std::log(static_cast<double>(learners) / before.learners) /
                      std::log(static_cast<double>(after->learners) / before.learners);
  return before.factor * std::pow(after->factor / before.factor, part);
}

double StepModel::Seconds(int learners, int nodes, const StepWork& work) const {
  return Fitted(learners, nodes, work) * FactorAt(learners, nodes);
}

}  // namespace pliant::speed
