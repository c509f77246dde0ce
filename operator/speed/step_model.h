#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

// How long a training's step takes with how many learners: fitted to measurements, and corrected by
// them where there are some.
namespace pliant::speed {

// The computation of one learner in a step: `parts` one after the other, of `samples` together.
struct StepWork {
  double parts = 1;
  double samples = 1;
  bool operator==(const StepWork&) const = default;
};

// Steps of one size, on average.
struct MeasuredStep {
  int learners = 1;
  int nodes = 1;
  StepWork work;               // of the busiest learner
  double step_seconds = 0;     // > 0
  double compute_seconds = 0;  // of that, forward and backward passes; > 0
  double weight = 1;           // how much it counts; > 0
};

// With parts of g seconds, a step takes (parts - 1) · g + (g^γ + net^γ)^(1/γ): the exchange of
// gradients begins in the last part, and overlaps with it the more, the larger γ is.
//   parts · g = a · parts + b · samples
//   net = c + d · max(learners - 2, 0), c and d apart for one node and for several; 0 alone
// (Qiao et al., Pollux, OSDI 2021, section 3.2.) Each pair of unknowns is a weighted relative
// least-squares fit with values of at least 0. γ is the smallest of seven that no larger one
// betters by half of the error.
class StepModel {
 public:
  // `steps`: at least one. Until several nodes were tried, `net` is as on one node. What was not
  // tried on one node either takes no time.
  explicit StepModel(std::span<const MeasuredStep> steps);

  // Seconds of a step. Near a measured size it is the measured time.
  double Seconds(int learners, int nodes, const StepWork& work) const;
  int most_learners() const { return most_learners_; }  // that were tried

 private:
  // x + y · slope, both at least 0
  struct Line {
    double x = 0;
    double y = 0;
  };
  struct Correction {
    int learners = 1;
    double factor = 1;  // measured / fitted
  };

  double Net(int learners, int nodes) const;
  double Fitted(int learners, int nodes, const StepWork& work) const;
  double FactorAt(int learners, int nodes) const;
  static Line FitLine(std::span<const std::array<double, 4>> rows);
  void FitNet(std::span<const MeasuredStep> steps, double gamma);
  double ErrorOf(std::span<const MeasuredStep> steps) const;

  Line compute_;
  std::optional<Line> net_one_node_;
  std::optional<Line> net_several_;
  double gamma_ = 1;
  int most_learners_ = 1;
  std::array<std::vector<Correction>, 2> corrections_;  // on one node, on several; by learners
};

}  // namespace pliant::speed
