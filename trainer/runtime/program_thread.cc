#include "trainer/runtime/program_thread.h"

#include <optional>
#include <utility>
#include <variant>

#include "base/exceptions.h"
#include "base/overloaded.h"
#include "base/workers.h"

namespace pliant {
namespace {

Result<ShardSums> WithoutSums(Status done) {
  return std::move(done).transform([] { return ShardSums{}; });
}

class CallingThread final : public ProgramThread {
 public:
  explicit CallingThread(Program& program) : program_(program) {}

  ProgramView& program() override { return program_; }
  void Run(Operation& operation, Over over) override {
    if (!worker_) worker_.emplace("computation");
    worker_->Run([this, &operation, over = std::move(over)] {
      over(CatchAll([&] { Perform(program_, operation); }));
    });
  }
  void Stop() override { worker_.reset(); }

 private:
  Program& program_;
  // Starts with the first operation, so that it inherits the settings that the runtime has made for
  // its own thread by then: signals, and how floats are rounded. If the system cannot create a
  // thread, the learner of that operation fails.
  std::optional<Workers> worker_;
};

}  // namespace

std::unique_ptr<ProgramThread> NewProgramThread(Program& program) {
  return std::make_unique<CallingThread>(program);
}

Result<ShardSums> Call(Program& program, const Work& work) {
  return std::visit(
      Overloaded{[&](const ShardWork& shard) {
                   return shard.left.empty() ? program.ComputeShard(*shard.task, shard.gradient,
                                                                    shard.buffers, shard.sink)
                                             : program.AddShard(*shard.task, shard.left,
                                                                shard.gradient, *shard.added);
                 },
                 [&](const CommitTask& commit) { return WithoutSums(program.Commit(commit)); },
                 [&](const EvaluationTask& evaluation) {
                   return WithoutSums(program.Evaluated(evaluation));
                 },
                 [&](const LoadedWork&) { return WithoutSums(program.LoadedState()); }},
      work);
}

void Perform(Program& program, Operation& operation) {
  while (const std::optional<Work> work = operation.Next()) {
    operation.Done(Call(program, *work));
  }
}

}  // namespace pliant
