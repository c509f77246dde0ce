#include "trainer/process/replay.h"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/real_event_loop.h"
#include "trainer/checkpoint/file_store.h"
#include "trainer/process/control_port.h"
#include "trainer/process/replay_checker.h"
#include "trainer/process/signals.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/gradient_place.h"
#include "trainer/runtime/learner_loop.h"

namespace pliant {
namespace {

// The job's own metrics stay as they are.
class NoMetrics final : public MetricsSink {
 public:
  void Append(Tick, std::string_view) override {}
  void CutFrom(Tick) override {}
};

}  // namespace

Result<std::string> VerifyReplay(ProgramThread& thread, const Schedule& schedule,
                                 const RunLearnerOptions& options) {
  const LearnerEnvironment& environment = options.environment;
  if (environment.reproducibility != Reproducibility::kBitwise) {
    return Invalid("only a job in bitwise mode can be computed again with the same bits");
  }
  const ProgramInfo info = thread.program().info();
  RealEventLoop loop;
  FileStore store(environment.checkpoint_dir / environment.job_uid);
  std::optional<Result<std::string>> verdict;
  const auto end = [&](Result<std::string> found) {
    if (!verdict) verdict = std::move(found);
    loop.Stop();
  };
  ASSIGN_OR_RETURN(const std::unique_ptr<ReplayChecker> checker,
                   ReplayChecker::Open(loop, store, *environment.replay, end));
  NoMetrics metrics;
  const int shards = MostShards(schedule.spec());
  ASSIGN_OR_RETURN(auto place,
                   MakeGradientPlace(thread.program(), {.expected = shards, .ever = shards}));
  const auto compute = NewThreadedCompute(loop, thread, std::move(place));
  LearnerLoop learner(
      {.self = {environment.learner, environment.pod_uid, 0},
       .framework = options.framework,
       .checkpoint_at = checker->ticks(),
       .check_state_every_steps = 0},
      schedule, {.loop = loop, .compute = *compute, .checkpointer = *checker, .metrics = metrics},
      [&](const LearnerExit& exit) { end(Fail(exit.code, exit.message)); });
  std::optional<StopSignals> signals;
  const auto stop = [&](int) { end(Fail(ErrorCode::kUnavailable, "interrupted")); };
  if (options.take_signals) signals.emplace(loop, stop);
  ControlPort port(loop, learner, environment.grace);
  if (options.on_start) options.on_start(port.control());
  log::Info("steps are computed again", {{"program", info.name},
                                         {"fromStep", environment.replay->from},
                                         {"framework", options.framework}});
  learner.Start();
  loop.Run();
  return *std::move(verdict);
}

}  // namespace pliant
