#include "trainer/runtime/peers.h"

#include <algorithm>
#include <set>
#include <utility>

#include "trainer/protocol/state_transfer.h"

namespace pliant {
namespace {

// The place of `id` among sorted peers, or where it would be.
auto PlaceOf(auto& peers, const LearnerId& id) {
  return std::ranges::lower_bound(peers, id, {},
                                  [](const auto& peer) -> const LearnerId& { return *peer; });
}

}  // namespace

void Peers::Connect(const Membership& membership) {
  if (alone()) return;
  for (const Member& member : membership.members) {
    if (view_.IsSelf(member.id)) continue;
    const auto place = PlaceOf(wanted_, member.id);
    if (place == wanted_.end() || **place != member.id) {
      wanted_.insert(place, std::make_shared<const LearnerId>(member.id));
    }
    transport_->Connect(member);
  }
}

void Peers::DropUnneeded() {
  if (alone()) return;
  const std::set<LearnerId> needed = view_.NeededPeers();
  std::erase_if(wanted_, [&](const std::shared_ptr<const LearnerId>& peer) {
    if (needed.contains(*peer)) return false;
    transport_->Disconnect(*peer);
    return true;
  });
}

bool Peers::ConnectedToAll(const Membership& membership) const {
  return std::ranges::all_of(membership.members, [&](const Member& member) {
    return view_.IsSelf(member.id) || transport_->Connected(member.id);
  });
}

std::vector<int> Peers::ConnectedRanks() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < view_.current().world_size(); ++rank) {
    const LearnerId& member = view_.member(rank);
    if (!view_.IsSelf(member) && transport_->Connected(member)) ranks.push_back(rank);
  }
  return ranks;
}

std::shared_ptr<const LearnerId> Peers::Shared(const LearnerId& peer) const {
  const auto place = PlaceOf(wanted_, peer);
  if (place != wanted_.end() && **place == peer) return *place;
  return std::make_shared<const LearnerId>(peer);
}

void Peers::Send(const LearnerId& peer, Frame frame) {
  stats_.bytes_sent += frame.payload.view.size();
  transport_->Send(peer, std::move(frame));
}

void Peers::SendToAll(const Frame& frame) {
  for (const Member& member : view_.current().members) {
    if (!view_.IsSelf(member.id)) Send(member.id, frame);
  }
}

void Peers::AskForMoreState(int rank) {
  Frame frame = FrameOf(FrameKind::kStateRequest);
  frame.header.node = kLastOfBatch;
  SendTo(rank, std::move(frame));
}

Frame Peers::FrameOf(FrameKind kind, Bytes payload) const {
  return {.header = {.kind = kind, .membership = view_.current().id, .tick = group_.applied_ticks},
          .payload = std::move(payload)};
}

}  // namespace pliant
