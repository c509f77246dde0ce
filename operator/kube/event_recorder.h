#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "operator/kube/client.h"
#include "operator/kube/event_series.h"

namespace pliant::kube {

struct EventRecorderOptions {
  std::string controller = "pliant.dev/operator";  // reportingController
  std::string instance;                            // reportingInstance: the pod's name
  EventSeries::Options series;
  std::size_t waiting_max = 1000;  // notes not yet written; more are dropped
};

// Writes events.k8s.io/v1 events from a thread of its own. Events are for people: they are dropped
// rather than waited for, and a failure to write one is logged, never returned.
class EventRecorder {
 public:
  // `client` outlives the recorder.
  EventRecorder(KubeClient& client, EventRecorderOptions options);
  // Drops what waits.
  ~EventRecorder();

  // Never blocks. Any thread.
  void Record(EventNote note);

  // Waits until what was recorded is written, at most `limit`. For shutdown. Whether it is.
  bool Flush(Duration limit);

  // Notes lost: over the rate, over the queue's limit, or refused by the server.
  std::uint64_t dropped() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace pliant::kube
