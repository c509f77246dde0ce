#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "base/result.h"
#include "trainer/runtime/operation.h"

namespace pliant {

// A change of the state is one piece of work.
class ChangeStepper final : public Operation {
 public:
  // `begin` runs on the program's thread.
  explicit ChangeStepper(std::function<Result<Work>()> begin) : begin_(std::move(begin)) {}

  std::optional<Work> Next() override {
    if (over_) return std::nullopt;
    Result<Work> work = begin_();
    if (work) return *std::move(work);
    Done(std::unexpected(std::move(work).error()));
    return std::nullopt;
  }
  void Done(Result<ShardSums> sums) override {
    over_ = true;
    begin_ = nullptr;  // its input is no longer needed
    if (!sums) status_ = std::unexpected(std::move(sums).error());
  }
  bool over() const override { return over_; }

  const Status& status() const { return status_; }

 private:
  std::function<Result<Work>()> begin_;
  bool over_ = false;
  Status status_;
};

}  // namespace pliant
