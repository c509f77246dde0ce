#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "operator/controller/actions/status_writer.h"
#include "operator/controller/calls/executor.h"
#include "operator/controller/rounds/event_sink.h"
#include "operator/controller/rounds/queue_status.h"

namespace pliant::controller {

// When the status of a queue or pool is written, next to that of thousands of jobs: numbers at most
// every 30 s; a new share, a condition or an edited spec sooner, but at most every 2 s.
struct ReportPace {
  std::chrono::seconds numbers{30};
  std::chrono::seconds news{2};
};

struct QueueReporterParts {
  EventLoop& loop;
  const QueueBook& book;
  const StatusWriter& writer;
  Executor api_calls;
  std::function<void()> request_round;  // when a failed write is to be tried again
  EventSink on_event;
};

// Keeps the statuses of queues and pools as the last plan says. Control thread.
class QueueReporter {
 public:
  explicit QueueReporter(QueueReporterParts parts, ReportPace pace = {})
      : parts_(std::move(parts)), pace_(pace) {}
  QueueReporter(const QueueReporter&) = delete;
  QueueReporter& operator=(const QueueReporter&) = delete;

  // Writes what has changed. Returns when to call it again, even if nothing happens.
  std::optional<api::WallTime> Report(const PlannedCluster& cluster, api::WallTime now);

 private:
  // One object's last write.
  struct Written {
    std::string uid;
    std::optional<api::WallTime> at;
    bool is_under_way = false;
    bool failed = false;
  };

  template <typename T, typename Status>
  std::optional<api::WallTime> ReportOn(const kube::ResourceType& type, const T& object,
                                        const Status& status, bool is_news,
                                        std::map<std::string, Written>& written, api::WallTime now);

  const QueueReporterParts parts_;
  const ReportPace pace_;
  std::map<std::string, Written> queues_;
  std::map<std::string, Written> pools_;
  // Answers of writes that end after the reporter have nowhere to go.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace pliant::controller
