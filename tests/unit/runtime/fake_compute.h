#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/lifetime.h"
#include "trainer/runtime/compute.h"

namespace pliant {

// A program with some tensors; commits add the gradient to its weights. Like the threaded Compute
// it runs one operation after another, each takes `time`, and reports from the loop. It computes no
// ticks: requested ticks fail, or never end (simulation/process.h has a program that does).
class FakeCompute final : public Compute {
 public:
  explicit FakeCompute(EventLoop& loop) : loop_(loop) {}

  Duration time = std::chrono::milliseconds(10);
  std::optional<ProgramCall> at;   // the call that the program runs
  std::optional<Error> fault;      // error of the operations that end from now on
  std::vector<std::string> asked;  // requested operations, in order
  std::vector<std::string> done;   // finished operations, in order
  double gradient_square = 1;      // of the gradient of each measured commit

  std::array<float, 4> weights{};
  std::array<float, 4> bias{};
  std::array<float, 4> momentum{};

  const ProgramInfo& info() const override { return info_; }
  const StateDict& state_shape() const override { return state_; }
  std::optional<ProgramCall> call() const override { return at; }
  ProgramWishes wishes() const override { return {}; }

  void RunTick(TickWork /*work*/, TickCalls calls) override {
    Enqueue("tick", [this, done_tick = std::move(calls.done)] {
      if (fault) done_tick(std::unexpected(*fault));
    });
  }
  void AbortTick(std::function<void(TickOutput)> rest) override {
    Enqueue("abandon", [rest = std::move(rest)] { rest({}); });
  }
  void Commit(CommitWork work, Done<CommitOutput> done_commit) override {
    Enqueue("commit " + std::to_string(work.step),
            [this, gradient = work.mean.values, measure = work.measure,
             done_commit = std::move(done_commit)] {
              if (fault) return done_commit(std::unexpected(*fault));
              const auto values = gradient.view();
              for (std::size_t i = 0; i < std::min(weights.size(), values.size()); ++i)
                weights[i] += values[i];
              done_commit(CommitOutput{.gradient_square = measure ? gradient_square : 0});
            });
  }
  void Evaluated(EvaluationTask evaluation, DoneStatus done_status) override {
    Enqueue("evaluated " + std::to_string(evaluation.epoch),
            [this, done_status = std::move(done_status)] {
              done_status(fault ? Status(std::unexpected(*fault)) : Status());
            });
  }
  void CopyState(StateSlice slice, Done<std::shared_ptr<const StateCopy>> done_copy) override {
    Enqueue("copy " + std::to_string(slice.index) + "/" + std::to_string(slice.count),
            [this, slice, done_copy = std::move(done_copy)] {
              if (fault) return done_copy(std::unexpected(*fault));
              done_copy(std::make_shared<const StateCopy>(StateCopy::Of(SliceOf(state_, slice))));
            });
  }
  void LoadState(std::shared_ptr<const StateCopy> state, DoneStatus done_status) override {
    Enqueue("load", [this, state = std::move(state), done_status = std::move(done_status)] {
      if (fault) return done_status(std::unexpected(*fault));
      done_status(pliant::CopyState(state->view(), state_));
    });
  }

 private:
  void Enqueue(std::string name, std::function<void()> end) {
    asked.push_back(name);
    free_at_ = std::max(free_at_, loop_.Now()) + time;
    loop_.PostAfter(free_at_ - loop_.Now(),
                    lifetime_.Guard([this, name = std::move(name), end = std::move(end)] {
                      done.push_back(name);
                      end();
                    }));
  }

  EventLoop& loop_;
  const StateDict state_ = {
      {.name = "model.weights", .shape = {4}, .bytes = std::as_writable_bytes(std::span(weights))},
      {.name = "model.bias", .shape = {4}, .bytes = std::as_writable_bytes(std::span(bias))},
      {.name = "optimizer.momentum",
       .shape = {4},
       .bytes = std::as_writable_bytes(std::span(momentum))}};
  const ProgramInfo info_{.gradient_elements = 4, .name = "fake"};
  TimePoint free_at_{};
  const Lifetime lifetime_;
};

}  // namespace pliant
