#include "operator/planner/apportion.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <tuple>

namespace pliant::planner {
namespace {

struct NextSeat {
  std::int64_t weight = 1;
  std::int64_t divisor = 1;  // 2 · seats + 1
  bool is_held = false;
  std::size_t claimant = 0;

  // Whether this claim comes after the other.
  bool operator<(const NextSeat& other) const {
    return std::tuple(weight * other.divisor, is_held, other.claimant) <
           std::tuple(other.weight * divisor, other.is_held, claimant);
  }
};

class Apportionment {
 public:
  Apportionment(std::span<const Claimant> claimants, std::int64_t seats)
      : claimants_(claimants), left_(std::max<std::int64_t>(seats, 0)), seats_(claimants.size()) {}

  // Gives each claimant seats up to target(claimant), as far as there are enough.
  void RaiseTo(const std::function<std::int64_t(const Claimant&)>& target) {
    std::int64_t wanted = 0;
    std::vector<std::int64_t> targets;
    targets.reserve(seats_.size());
    for (std::size_t index = 0; index < seats_.size(); ++index) {
      const Claimant& claimant = claimants_[index];
      targets.push_back(std::max(seats_[index], std::min(target(claimant), claimant.cap)));
      wanted += targets.back() - seats_[index];
    }
    if (wanted <= left_) {
      left_ -= wanted;
      seats_ = std::move(targets);
      return;
    }
    Divide(targets);
  }

  // The same, but all of the first claimant's before any of the second's.
  void FillInOrder() {
    for (std::size_t index = 0; index < seats_.size(); ++index) {
      const std::int64_t more =
          std::clamp<std::int64_t>(claimants_[index].cap - seats_[index], 0, left_);
      seats_[index] += more;
      left_ -= more;
    }
  }

  std::vector<std::int64_t> Take() { return std::move(seats_); }

 private:
  NextSeat Next(std::size_t index) const {
    return {.weight = claimants_[index].weight,
            .divisor = 2 * seats_[index] + 1,
            .is_held = seats_[index] < claimants_[index].held,
            .claimant = index};
  }

  void Divide(const std::vector<std::int64_t>& targets) {
    std::vector<NextSeat> claims;
    claims.reserve(seats_.size());
    for (std::size_t index = 0; index < seats_.size(); ++index) {
      if (seats_[index] < targets[index]) claims.push_back(Next(index));
    }
    std::make_heap(claims.begin(), claims.end());
    for (; left_ > 0 && !claims.empty(); --left_) {
      std::pop_heap(claims.begin(), claims.end());
      const std::size_t index = claims.back().claimant;
      claims.pop_back();
      if (++seats_[index] == targets[index]) continue;
      claims.push_back(Next(index));
      std::push_heap(claims.begin(), claims.end());
    }
  }

  const std::span<const Claimant> claimants_;
  std::int64_t left_;
  std::vector<std::int64_t> seats_;
};

Apportionment FloorsOf(std::span<const Claimant> claimants, std::int64_t seats) {
  Apportionment apportionment(claimants, seats);
  apportionment.RaiseTo([](const Claimant& claimant) { return claimant.floor; });
  apportionment.RaiseTo([](const Claimant& claimant) { return claimant.kept; });
  return apportionment;
}

}  // namespace

std::vector<std::int64_t> Apportion(std::span<const Claimant> claimants, std::int64_t seats) {
  Apportionment apportionment = FloorsOf(claimants, seats);
  apportionment.RaiseTo([](const Claimant& claimant) { return claimant.cap; });
  return apportionment.Take();
}

std::vector<std::int64_t> ApportionInOrder(std::span<const Claimant> claimants,
                                           std::int64_t seats) {
  Apportionment apportionment = FloorsOf(claimants, seats);
  apportionment.FillInOrder();
  return apportionment.Take();
}

}  // namespace pliant::planner
