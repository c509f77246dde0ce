#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/collective/buckets.h"
#include "trainer/collective/communicators.h"
#include "trainer/collective/gradient_accumulator.h"
#include "trainer/collective/reduction_plan.h"
#include "trainer/runtime/compute.h"

namespace pliant::sim {

class SimRounds;

// All communicators of a simulated world, with their faults: they take long to be made, or fail;
// the loss of a member is an error, or its rounds just hang; an abort takes its time.
class RoundsNetwork {
 public:
  // `wrong` receives what no run may show: ranks that do not exchange the same step, say.
  RoundsNetwork(EventLoop& loop, std::uint64_t seed, std::function<void(std::string)> wrong)
      : loop_(loop), random_(seed), wrong_(std::move(wrong)) {}

  // Sums of all ranks so far.
  std::uint64_t sums() const { return sums_; }
  // Called when a communicator reaches a state: "creating", "in use", "aborting".
  std::function<void(const std::string& device, const char* state)> on_state =
      [](const std::string&, const char*) {};

 private:
  friend class SimRounds;
  struct Work;
  struct Group {
    std::map<int, SimRounds*> members;  // by rank
    std::size_t world_size = 0;
    bool broken = false;        // a member is gone
    std::map<int, Work> works;  // of the running sum
  };

  Duration Between(Duration least, Duration most);
  bool Chance(double probability);
  void Finish(Group& group);
  void Leave(Group& group, int rank);

  EventLoop& loop_;
  std::mt19937_64 random_;
  const std::function<void(std::string)> wrong_;
  std::map<CommunicatorId, std::shared_ptr<Group>> groups_;
  std::uint64_t sums_ = 0;
};

// One process's side. Everything reaches it by its own loop.
class SimRounds final : public Communicators {
 public:
  using Done = std::function<void(Result<FloatBuffer>)>;

  SimRounds(RoundsNetwork& network, EventLoop& loop, std::string device)
      : network_(network), loop_(loop), device_(std::move(device)) {}
  ~SimRounds() override;

  CommunicatorPartner partner() const override { return {.version = 1, .device = device_}; }
  void NewId(std::function<void(Result<CommunicatorId>)> done) override;
  void Join(const Seat& seat, std::function<void(Status)> done) override;
  void Abort(std::function<void()> done) override;

  // Sums this rank's nodes and those of the others, in the step's rounds.
  void Sum(const TickWork& work, std::vector<HeldNode> nodes, Done done);

 private:
  friend class RoundsNetwork;
  template <typename T>
  void Tell(std::function<void(T)>& callback, T value, Duration after);

  RoundsNetwork& network_;
  EventLoop& loop_;
  const std::string device_;
  std::shared_ptr<RoundsNetwork::Group> group_;
  int rank_ = 0;
  std::function<void(Status)> joined_;               // while it is made
  std::function<void(Result<FloatBuffer>)> summed_;  // while it sums
};

struct RoundsNetwork::Work {
  TickWork work;
  std::vector<HeldNode> nodes;
};

}  // namespace pliant::sim
