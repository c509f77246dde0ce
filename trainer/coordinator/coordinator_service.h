#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/cached.h"
#include "base/http_server.h"
#include "base/result.h"
#include "base/websocket.h"
#include "trainer/coordinator/counter_file.h"
#include "trainer/coordinator/job_metrics.h"
#include "trainer/membership/coordinator_core.h"

namespace pliant {

class RealEventLoop;

struct CoordinatorTokens {
  std::string operator_token;  // may push plans and read progress
  std::string learner_token;   // may take part and read progress
};

// Reads the files operator-token and learner-token in `folder`.
Result<CoordinatorTokens> ReadCoordinatorTokens(const std::filesystem::path& folder);

// Connects CoordinatorCore to the outside: requests and messages in, messages and the persisted
// counter out. Everything runs on the event loop.
class CoordinatorService {
 public:
  // `loop` outlives the service. `on_fatal` is called when the counter cannot be persisted: then no
  // membership may be issued any longer, and the process must end.
  CoordinatorService(RealEventLoop& loop, const std::string& job, CoordinatorOptions options,
                     CoordinatorTokens tokens, CounterFile counter_file,
                     std::function<void(const Error&)> on_fatal);
  CoordinatorService(const CoordinatorService&) = delete;
  CoordinatorService& operator=(const CoordinatorService&) = delete;

  void Start();

  // The routes of docs/contracts.md §2: for operator and learners; the plain, read-only ones; and
  // the kubelet's. The service outlives the servers.
  std::vector<HttpRoute> ApiRoutes();
  std::vector<HttpRoute> StatusRoutes();
  static std::vector<HttpRoute> ProbeRoutes();

 private:
  ServerResponse TakePlan(const ServerRequest& request);
  ServerResponse ShowProgress() const;
  WebSocketCallbacks Accept(std::shared_ptr<WebSocket> socket);
  void OnMessage(ConnectionId id, std::string_view text);
  void OnClosed(ConnectionId id, std::string_view reason);
  void OnTimer();
  void Do(const CoordinatorEffects& effects);
  void LogMessage(ConnectionId id, const LearnerMessage& message) const;
  void LogEffect(const SendMessage& send);
  void LogState();

  RealEventLoop& loop_;
  const CoordinatorTokens tokens_;
  const CounterFile counter_file_;
  const std::function<void(const Error&)> on_fatal_;
  JobMetrics metrics_;
  CoordinatorCore core_;
  CachedText metrics_text_;
  ConnectionId last_connection_ = 0;
  std::map<ConnectionId, std::shared_ptr<WebSocket>> connections_;
  bool failed_ = false;
  JobState logged_state_ = JobState::kWaiting;
  MembershipId logged_proposal_;
};

}  // namespace pliant
