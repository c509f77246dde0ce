#include "simulator/report/sign_test.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace pliant::simulator {
namespace {

// The probability that a fair coin shows heads at least `heads` times in `tosses`. The binomials
// are summed as integers; 2^512 is taken out whenever they would become too large for a double.
double AtLeast(int heads, int tosses) {
  constexpr int kScale = 512;
  double binomial = 1;
  double sum = 1;
  int exponent = -tosses;
  for (int at = tosses; at > heads; --at) {
    binomial = binomial * at / (tosses - at + 1);
    sum += binomial;
    if (sum > std::ldexp(1.0, kScale)) {
      binomial = std::ldexp(binomial, -kScale);
      sum = std::ldexp(sum, -kScale);
      exponent += kScale;
    }
  }
  return std::ldexp(sum, exponent);
}

}  // namespace

SignTest TestSigns(int better, int worse, int ties) {
  const int pairs = better + worse;
  const double p = pairs == 0 ? 1 : std::min(1.0, 2 * AtLeast(std::max(better, worse), pairs));
  return {.better = better, .worse = worse, .ties = ties, .p = p};
}

std::string Sentence(const SignTest& test) {
  const int pairs = test.better + test.worse;
  if (pairs == 0) return Format("equal in {}", Counted(test.ties, "workload"));
  const bool is_better = test.better >= test.worse;
  const std::string p = test.p < 0.001 ? "p < 0.001" : Format("p = {:.3f}", test.p);
  const std::string ties = test.ties == 0 ? "" : Format(" ({} equal)", test.ties);
  return Format("{} in {} of {}{}, {}", is_better ? "better" : "worse",
                is_better ? test.better : test.worse, Counted(pairs, "workload"), ties, p);
}

}  // namespace pliant::simulator
