#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>

#include "base/result.h"

namespace pliant {

// A secret: whoever knows it may join the communicator. It travels over the learners' own
// connections only.
using CommunicatorId = std::array<std::byte, 128>;

// The properties of a member that the others know before they make a communicator.
struct CommunicatorPartner {
  int version = 0;     // of the library: equal on all
  std::string device;  // two members cannot share one
  bool operator==(const CommunicatorPartner&) const = default;
};

// The communicators over which the devices of a membership's ranks exchange gradients, one at a
// time. They are made in the background, and end by being aborted. Used by one thread.
class Communicators {
 public:
  struct Seat {
    CommunicatorId id{};
    int rank = 0;
    int world_size = 1;
    bool all_reduce = false;  // this operation is used, too
  };

  virtual ~Communicators() = default;
  virtual CommunicatorPartner partner() const = 0;
  // `done` is called on any thread.
  virtual void NewId(std::function<void(Result<CommunicatorId>)> done) = 0;

  // Creates a communicator and warms it up: each two ranks have exchanged something. `done` is
  // called on any thread. It may wait forever; Abort ends it. Requires that none exists.
  virtual void Join(const Seat& seat, std::function<void(Status)> done) = 0;
  // Ends the communicator, if there is one, and what it is doing, with an error. `done` is called
  // on any thread when it has ended.
  virtual void Abort(std::function<void()> done) = 0;
};

}  // namespace pliant
