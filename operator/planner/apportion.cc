#include "operator/planner/apportion.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "operator/planner/quotient.h"

namespace pliant::planner {
namespace {

// The next seats that a claimant would get.
struct NextSeats {
  Quotient claim;
  bool are_held = false;
  std::size_t claimant = 0;
  std::int64_t more = 1;

  // Whether this claim comes after the other.
  bool operator<(const NextSeats& other) const {
    return std::tuple(claim, are_held, other.claimant) <
           std::tuple(other.claim, other.are_held, claimant);
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

  // Raises all to what they can use, by their speeds.
  void RaiseBySpeed() {
    looks_at_speeds_ = true;
    RaiseTo([](const Claimant& claimant) { return claimant.cap; });
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
  // nullopt: it can use no more seats, of those that are left.
  std::optional<NextSeats> Next(std::size_t index, std::int64_t target) const {
    const Claimant& claimant = claimants_[index];
    const std::int64_t seats = seats_[index];
    if (!looks_at_speeds_ || claimant.speeds == nullptr) {
      if (seats >= target) return std::nullopt;
      return NextSeats{.claim = {.numerator = claimant.weight, .divisor = 2 * seats + 1},
                       .are_held = seats < claimant.held,
                       .claimant = index};
    }
    const std::int64_t per_learner = claimant.seats_per_learner;
    const std::int64_t most = std::min(target, seats + left_) / per_learner;
    const int learners = static_cast<int>(seats / per_learner);
    const auto larger = claimant.speeds->Next(learners, static_cast<int>(most));
    if (!larger) return std::nullopt;
    const std::int64_t more = larger->to * per_learner - seats;
    const bool are_held = seats + more <= claimant.held;
    return NextSeats{
        .claim = ClaimBySpeed(claimant.weight, *larger, more, are_held ? claimant.hold_percent : 0),
        .are_held = are_held,
        .claimant = index,
        .more = more};
  }

  void Divide(const std::vector<std::int64_t>& targets) {
    std::vector<NextSeats> claims;
    claims.reserve(seats_.size());
    for (std::size_t index = 0; index < seats_.size(); ++index) {
      if (const auto next = Next(index, targets[index])) claims.push_back(*next);
    }
    std::make_heap(claims.begin(), claims.end());
    while (left_ > 0 && !claims.empty()) {
      std::pop_heap(claims.begin(), claims.end());
      const NextSeats top = claims.back();
      claims.pop_back();
      if (top.more <= left_) {  // otherwise others took seats since it claimed them
        seats_[top.claimant] += top.more;
        left_ -= top.more;
      }
      if (const auto next = Next(top.claimant, targets[top.claimant])) {
        claims.push_back(*next);
        std::push_heap(claims.begin(), claims.end());
      }
    }
  }

  const std::span<const Claimant> claimants_;
  std::int64_t left_;
  std::vector<std::int64_t> seats_;
  bool looks_at_speeds_ = false;
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
  apportionment.RaiseBySpeed();
  return apportionment.Take();
}

std::vector<std::int64_t> ApportionInOrder(std::span<const Claimant> claimants,
                                           std::int64_t seats) {
  Apportionment apportionment = FloorsOf(claimants, seats);
  apportionment.FillInOrder();
  return apportionment.Take();
}

}  // namespace pliant::planner
