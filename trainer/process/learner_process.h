#pragma once

#include <memory>
#include <optional>

#include "base/http_server.h"
#include "base/real_event_loop.h"
#include "base/result.h"
#include "trainer/checkpoint/checkpointer.h"
#include "trainer/collective/peer_transport.h"
#include "trainer/collective/shared_memory.h"
#include "trainer/data/schedule.h"
#include "trainer/process/control_port.h"
#include "trainer/process/learner_metrics.h"
#include "trainer/process/paced_thread.h"
#include "trainer/process/run_learner.h"
#include "trainer/process/signals.h"
#include "trainer/process/websocket_link.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/learner_loop.h"
#include "trainer/runtime/program_thread.h"
#include "trainer/runtime/sample_ledger.h"

namespace pliant {

// The parts of a learner that trains, wired together, and the event loop that they run on.
class LearnerProcess {
 public:
  // `thread` and `options` outlive it.
  LearnerProcess(ProgramThread& thread, const RunLearnerOptions& options, Schedule schedule);

  // Opens what can fail: the port for peers, memory, files.
  Status Prepare();
  // Trains on the calling thread. Called once, after Prepare. None: SIGINT came twice.
  std::optional<LearnerExit> Run();
  // Ends the program's and its device's work. False: see Compute::Stop.
  bool Stop() { return compute_->Stop(); }
  // Whether Ctrl-C ended it.
  bool interrupted() const { return interrupted_; }

 private:
  const ProgramInfo& info() const { return thread_.program().info(); }
  Status OpenTransport();
  Status OpenCompute();
  Status OpenLedger();
  void MakeLearner();
  void OnSignal(int signal);
  void LogStart() const;

  const RunLearnerOptions& options_;
  const LearnerEnvironment& environment_;
  const Schedule schedule_;
  const LearnerId self_;

  // A member uses only earlier ones, and is destroyed before them.
  SharedMemory shared_memory_;
  const std::unique_ptr<MemorySource> pinned_gradients_;  // nullptr: no device copies gradients
  MemorySource& gradients_;
  RealEventLoop loop_;
  std::unique_ptr<PeerTransport> transport_;  // nullptr: alone
  std::unique_ptr<WebSocketLink> link_;       // nullptr: alone
  std::unique_ptr<Checkpointer> checkpointer_;
  std::unique_ptr<MetricsSink> metrics_file_;
  std::unique_ptr<MetricsSink> metrics_;
  ProgramThread& thread_;
  PacedThread paced_;
  std::unique_ptr<Compute> compute_;
  std::unique_ptr<SampleLedger> ledger_;  // nullptr: not kept
  std::optional<LearnerExit> exit_;
  std::optional<LearnerLoop> learner_;
  LearnerMetrics learner_metrics_;
  std::unique_ptr<HttpServer> server_;  // nullptr: no metrics are served
  int signals_seen_ = 0;
  bool interrupted_ = false;
  std::optional<StopSignals> signals_;
  std::optional<ControlPort> port_;
};

}  // namespace pliant
