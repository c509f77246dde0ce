#pragma once

#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/collective/peer_transport.h"
#include "trainer/membership/types.h"
#include "trainer/protocol/membership_view.h"

namespace pliant {

// A consequence that needs no more than its name.
enum class SimpleMove : std::uint8_t {
  kAdvanceOpening,
  kBeginTraining,
  kBeginTick,
  kCommit,  // if the tick is complete
  kAdvanceCatchUp,
  kEnterPutOff,  // the membership whose entry was put off, if there is one
  kFinish,
  kPublish,  // the final model, if this rank still has to
  kDrain,
  kTakeEarlyFrames,
  kTakeEarlyFramesSoon,
};
struct EnterMove {
  Membership membership;
  std::vector<Member> before = {};  // as in LearnerLoop::Enter
};
struct SwitchMove {
  Membership membership;
};
struct LossMove {
  Loss loss;
};
struct StopMove {
  Loss loss;
};
struct FrameMove {  // an early frame, whose time has come
  std::shared_ptr<const LearnerId> peer;
  Frame frame;
};
using Move = std::variant<SimpleMove, EnterMove, SwitchMove, LossMove, StopMove, FrameMove>;

// The consequences of what a learner handles. They are carried out when the handler has returned,
// so that no part of the learner is created or destroyed while one of its functions runs. Only an
// exit is immediate: it destroys no part.
class Moves {
 public:
  void Then(Move move) { queued_.push_back(std::move(move)); }
  // The peer sent what the protocol does not allow: its link counts as broken.
  void Accuse(const LearnerId& peer, std::string cause) {
    Then(StopMove{{.accused = {peer}, .cause = std::move(cause)}});
  }
  bool empty() const { return queued_.empty(); }
  // Moves them, in their order, in front of `others`.
  void PutBefore(std::deque<Move>& others) {
    others.insert(others.begin(), std::make_move_iterator(queued_.begin()),
                  std::make_move_iterator(queued_.end()));
    queued_.clear();
  }

 private:
  std::vector<Move> queued_;
};

}  // namespace pliant
