#pragma once

#include <string>

namespace pliant::simulator {

// Pairs in which one of two policies is better.
struct SignTest {
  int better = 0;
  int worse = 0;
  int ties = 0;  // are not counted
  // If both policies were equally good, the probability that at least as many of the pairs agree,
  // in one direction or the other: exact and two-sided. 1 if there are only ties.
  double p = 1;
  bool operator==(const SignTest&) const = default;
};

SignTest TestSigns(int better, int worse, int ties);

// "better in 8 of 8 workloads, p = 0.008"
std::string Sentence(const SignTest& test);

}  // namespace pliant::simulator
