#pragma once

#include <functional>
#include <optional>

#include "base/result.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/gradient_place.h"

namespace pliant {

// The last tick, once this learner's part of it is computed: the exchange between devices, which
// still reads its sums, and the copies of its nodes to the host, if it is aborted. In host memory
// there is neither. Runs on the event loop.
class ComputedTick {
 public:
  using DoneTick = Compute::DoneTick;
  using DoneStatus = Compute::DoneStatus;

  // `place` outlives it. `post` runs a task on the event loop, and not after this is destroyed.
  // `saved` is called after each Save that had to wait.
  ComputedTick(GradientPlace& place, std::function<void(std::function<void()>)> post,
               std::function<void()> saved)
      : place_(place), post_(std::move(post)), saved_(std::move(saved)) {}

  // A part is computed; `rounds` are its exchange, nullptr: it has none.
  void Begin(GradientRounds* rounds);
  // The step is whole: its nodes can be saved until it is forgotten. `exchanged` is called when the
  // exchange is over.
  void Keep(const TickOutput& output, DoneStatus exchanged);
  bool kept() const { return whole_.has_value(); }
  // The sums are overwritten from here on.
  void Forget() { whole_.reset(); }

  // Gives the output to `done` when nothing uses the sums any longer: with nodes in host memory
  // instead of a mean on the device. At once, if nothing is awaited.
  void Save(Result<TickOutput> output, DoneTick done);
  // The same for the step that is kept(). Aborts its exchange.
  void SaveKept(DoneTick done);
  // Another receiver for what is being saved.
  void Redirect(DoneTick done) { saving_->done = std::move(done); }
  bool saving() const { return saving_.has_value(); }
  bool exchanging() const { return exchanging_; }

 private:
  struct Saving {
    Result<TickOutput> output;
    DoneTick done;
  };

  void OnExchanged(const Status& exchanged);
  void CopyNodes();
  void EndSaving();

  GradientPlace& place_;
  const std::function<void(std::function<void()>)> post_;
  const std::function<void()> saved_;
  bool exchanging_ = false;
  DoneStatus exchanged_;             // of a tick that was not aborted
  std::optional<TickOutput> whole_;  // not committed
  std::optional<Saving> saving_;
};

}  // namespace pliant
