#include "tests/simulation/rounds_network.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "tests/fakes/rounds/all_ranks.h"
#include "trainer/collective/tree_sum.h"

namespace pliant::sim {
namespace {

using namespace std::chrono_literals;

using Values = std::vector<float>;

Values Add(const Values& left, const Values& right) {
  Values sum(left.size());
  AddFloats(left, right, sum);
  return sum;
}

}  // namespace

Duration RoundsNetwork::Between(Duration least, Duration most) {
  return least + Duration(static_cast<std::int64_t>(
                     random_() % static_cast<std::uint64_t>((most - least).count() + 1)));
}

bool RoundsNetwork::Chance(double probability) {
  return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
}

// All ranks have begun the sum.
void RoundsNetwork::Finish(Group& group) {
  const TickWork& first = group.works.begin()->second.work;
  std::vector<ReductionPlan> plans;
  for (const auto& [rank, given] : group.works) {
    const TickWork& work = given.work;
    if (work.step != first.step || work.device_step->divisor != first.device_step->divisor ||
        work.device_step->all_reduce != first.device_step->all_reduce ||
        !(work.buckets == first.buckets))
      return wrong_(Format("rank {} exchanges step {} with step {}", rank, work.step, first.step));
    plans.push_back(*work.device_step->rounds);
  }
  const auto own = [&](int rank, NodeIndex node, ElementRange range) -> Values {
    for (const HeldNode& held : group.works.at(rank).nodes) {
      if (held.node != node) continue;
      const auto part = held.sum.view().subspan(range.begin, range.size);
      return {part.begin(), part.end()};
    }
    wrong_(Format("rank {} lacks node {}", rank, node));
    return Values(range.size);
  };
  std::size_t elements = 0;
  for (const auto& [rank, given] : group.works)
    for (const HeldNode& held : given.nodes) elements = held.sum.view().size();
  const BucketLayout layout(elements, first.buckets);
  std::vector<AllRanks<Values>::Means> roots;
  try {
    roots = AllRanks<Values>(std::move(plans), layout, own, Add).Run();
  } catch (const std::runtime_error& error) {
    return wrong_(error.what());
  }
  ++sums_;
  const float divisor = first.device_step->divisor;
  for (const auto& [rank, member] : group.members) {
    FloatBuffer mean(elements);
    for (const auto& [begin, root] : roots[static_cast<std::size_t>(rank)])
      for (std::size_t i = 0; i < root.size(); ++i) mean.view()[begin + i] = root[i] / divisor;
    member->Tell<Result<FloatBuffer>>(member->summed_, mean, Between(10us, 2ms));
  }
  group.works.clear();
}

void RoundsNetwork::Leave(Group& group, int rank) {
  group.members.erase(rank);
  if (std::exchange(group.broken, true)) return;
  // The others notice, or not.
  for (const auto& [other, member] : group.members) {
    if (member->summed_ && Chance(0.5))
      member->Tell<Result<FloatBuffer>>(
          member->summed_, Fail(ErrorCode::kUnavailable, "a rank was lost"), Between(0ms, 200ms));
    if (member->joined_ && Chance(0.5))
      member->Tell<Status>(member->joined_, Fail(ErrorCode::kUnavailable, "a rank was lost"),
                           Between(0ms, 200ms));
  }
}

SimRounds::~SimRounds() {
  if (group_ != nullptr) network_.Leave(*group_, rank_);
}

template <typename T>
void SimRounds::Tell(std::function<void(T)>& callback, T value, Duration after) {
  loop_.PostAfter(after, [callback = std::exchange(callback, nullptr), value = std::move(value)] {
    callback(value);
  });
}

void SimRounds::NewId(std::function<void(Result<CommunicatorId>)> done) {
  CommunicatorId id{};
  for (std::byte& byte : id) byte = static_cast<std::byte>(network_.random_());
  Result<CommunicatorId> made = id;
  if (network_.Chance(0.03)) made = Fail(ErrorCode::kUnavailable, "no id");
  Tell<Result<CommunicatorId>>(done, std::move(made), network_.Between(0ms, 50ms));
}

void SimRounds::Join(const Seat& seat, std::function<void(Status)> done) {
  CHECK(group_ == nullptr, "one communicator at a time");
  network_.on_state(device_, "creating");
  auto& group = network_.groups_[seat.id];
  if (group == nullptr) group = std::make_shared<RoundsNetwork::Group>();
  group_ = group;
  rank_ = seat.rank;
  joined_ = std::move(done);
  group->world_size = static_cast<std::size_t>(seat.world_size);
  if (!group->members.emplace(rank_, this).second) network_.wrong_("two members of one rank");
  // It hangs if one never comes.
  if (group->members.size() < group->world_size || group->broken) return;
  const bool fails = network_.Chance(0.1);
  for (const auto& [rank, member] : group->members) {
    if (!member->joined_ || (fails && network_.Chance(0.3))) continue;
    Status status;
    if (fails) status = Fail(ErrorCode::kUnavailable, "the communicator was not made");
    member->Tell<Status>(member->joined_, std::move(status),
                         network_.Between(1ms, network_.Chance(0.5) ? 30ms : 1500ms));
  }
}

void SimRounds::Abort(std::function<void()> done) {
  network_.on_state(device_, "aborting");
  const Duration takes = network_.Between(0ms, 600ms);
  if (joined_) Tell<Status>(joined_, Fail(ErrorCode::kCancelled, "aborted"), takes);
  if (summed_) Tell<Result<FloatBuffer>>(summed_, Fail(ErrorCode::kCancelled, "aborted"), takes);
  if (group_ != nullptr) network_.Leave(*std::exchange(group_, nullptr), rank_);
  loop_.PostAfter(takes, std::move(done));
}

void SimRounds::Sum(const TickWork& work, std::vector<HeldNode> nodes, Done done) {
  summed_ = std::move(done);
  if (group_ == nullptr) {
    Tell<Result<FloatBuffer>>(summed_, Fail(ErrorCode::kUnavailable, "there is no communicator"),
                              0ms);
    return;
  }
  network_.on_state(device_, "in use");
  group_->works[rank_] = {.work = work, .nodes = std::move(nodes)};
  if (group_->works.size() == group_->world_size && !group_->broken) network_.Finish(*group_);
}

}  // namespace pliant::sim
