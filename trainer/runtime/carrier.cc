#include "trainer/runtime/carrier.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "trainer/collective/gradient_rounds.h"

namespace pliant {
namespace {

// A failure that is older than this does not lengthen the pause after the next one.
constexpr Duration kForget = std::chrono::hours(2);

constexpr int kAbortLooks = 4;

// How long the loss of a peer may explain why its communicator failed.
constexpr Duration kExplanation = std::chrono::seconds(1);

Bytes PayloadOf(const CommunicatorId& id) {
  const auto owner = std::make_shared<const CommunicatorId>(id);
  return {.owner = owner, .view = *owner};
}

}  // namespace

template <typename T>
std::function<void(T)> Carrier::InMembership(std::function<void(T)> callback) {
  auto on_loop =
      parts_.tasks.Guard<T>([this, entered = entered_, callback = std::move(callback)](T value) {
        if (now_ && entered == entered_) callback(std::move(value));
      });
  return [&loop = parts_.loop, on_loop = std::move(on_loop)](T value) {
    loop.Post([on_loop, value = std::move(value)] { on_loop(value); });
  };
}

void Carrier::Enter(int rank, int world_size) {
  ++entered_;
  now_ = Now{.rank = rank, .world_size = world_size};
}

void Carrier::Leave() {
  if (!now_) return;
  const State state = std::exchange(now_, std::nullopt)->state;
  if (state != State::kJoining && state != State::kReady && state != State::kFailed) return;
  const std::uint64_t abort = ++aborts_;
  auto on_loop = parts_.tasks.Guard<std::uint64_t>(
      [this](std::uint64_t done) { aborted_ = std::max(aborted_, done); });
  parts_.communicators->Abort([&loop = parts_.loop, on_loop = std::move(on_loop), abort] {
    loop.Post([on_loop, abort] { on_loop(abort); });
  });
  AwaitAbort(abort, kAbortLooks);
}

// Looks several times, so that a process that was suspended does not time out when it wakes up.
void Carrier::AwaitAbort(std::uint64_t abort, int looks) {
  parts_.tasks.After(kMaxAbort / kAbortLooks, [this, abort, looks] {
    if (aborted_ >= abort) return;
    if (looks > 1) return AwaitAbort(abort, looks - 1);
    parts_.on_hang(Format("a communicator was not aborted within {:.0f} s", ToSeconds(kMaxAbort)));
  });
}

std::optional<RoundsReport> Carrier::Report() const {
  if (parts_.communicators == nullptr || !now_ || now_->state == State::kFailed)
    return std::nullopt;
  if (failed_at_ && parts_.tasks.Now() < *failed_at_ + pause_) return std::nullopt;
  return RoundsReport{.ready = now_->state == State::kReady,
                      .partner = parts_.communicators->partner()};
}

void Carrier::OnTick(std::span<const std::optional<RoundsReport>> reports, bool all_in_sync) {
  if (!now_) return;  // the tick was being committed when this learner left
  const bool were_next = std::exchange(now_->rounds_next, all_in_sync && AllReady(reports));
  if (now_->rounds_next && !were_next)
    log::Info("gradients travel from GPU to GPU", {{"ranks", now_->world_size}});
  if (now_->rank == 0 && now_->state == State::kNone && all_in_sync && CanExchange(reports))
    Offer();
}

StepCarrier Carrier::For(const Team& team) const {
  if (team.redo) return StepCarrier::kFrames;
  if (team.in_sync.size() == 1) return StepCarrier::kNone;
  const bool rounds =
      now_ && now_->rounds_next && NodesOf(team.tick_map()).size() <= GradientRounds::kMaxNodes;
  return rounds ? StepCarrier::kRounds : StepCarrier::kFrames;
}

void Carrier::Offer() {
  now_->state = State::kOffering;
  parts_.communicators->NewId(
      InMembership<Result<CommunicatorId>>([this](const Result<CommunicatorId>& id) {
        if (!id) {
          log::Warning("no communicator", {{"error", id.error().message}});
          return FailUnlessExplained([] {});
        }
        parts_.peers.SendToAll(FrameKind::kCommunicator, PayloadOf(*id));
        Join(*id);
      }));
}

Status Carrier::OnOffer(int rank, const Frame& frame) {
  CommunicatorId id{};
  if (parts_.communicators == nullptr) return Invalid("a communicator for nobody");
  if (rank != 0 || frame.payload.view.size() != id.size())
    return Invalid("a communicator that it should not offer");
  // Rank 0 may not know yet that this learner has left, or can no longer use one.
  if (!now_ || now_->state == State::kFailed) return {};
  if (now_->state != State::kNone) return Invalid("a second communicator");
  std::ranges::copy(frame.payload.view, id.begin());
  Join(id);
  return {};
}

void Carrier::Join(const CommunicatorId& id) {
  now_->state = State::kJoining;
  parts_.communicators->Join(
      {.id = id, .rank = now_->rank, .world_size = now_->world_size, .all_reduce = all_reduce_},
      InMembership<Status>([this](const Status& joined) {
        if (now_->state != State::kJoining) return;
        if (joined) {
          now_->state = State::kReady;
          ++parts_.stats.communicators;
          return;
        }
        log::Warning("no communicator", {{"error", joined.error().message}});
        FailUnlessExplained([] {});
      }));
}

void Carrier::OnRoundsFailed(const std::string& why) {
  log::Warning("gradients did not travel from GPU to GPU", {{"error", why}});
  FailUnlessExplained([this, why] { parts_.on_failed(why); });
}

// Usually a peer was lost, and the transport is about to say which one.
void Carrier::FailUnlessExplained(std::function<void()> then) {
  if (!now_) return;
  now_->state = State::kFailed;
  parts_.tasks.After(kExplanation, [this, then = std::move(then), entered = entered_] {
    if (!now_ || entered != entered_) return;
    Fail();
    then();
  });
}

void Carrier::Fail() {
  ++parts_.stats.communicators_failed;
  const TimePoint now = parts_.tasks.Now();
  if (failed_at_ && now >= *failed_at_ + kForget) backoff_.Reset();
  pause_ = backoff_.Next(0);
  failed_at_ = now;
}

}  // namespace pliant
