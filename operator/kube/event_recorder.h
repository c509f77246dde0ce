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
  std::size_t max_waiting = 1000;  // maximum of notes not yet written; further ones are dropped
};

// Writes events.k8s.io/v1 events on its own thread. Events are for people: the caller never waits
// for them, excess ones are dropped, and a failed write is logged, never returned.
class EventRecorder {
 public:
  // `client` outlives the recorder.
  EventRecorder(KubeClient& client, EventRecorderOptions options);
  // Drops waiting notes.
  ~EventRecorder();

  // Never blocks. Any thread.
  void Record(EventNote note);

  // For shutdown: waits at most `limit` until all recorded notes are written. Returns whether they
  // are.
  bool Flush(Duration limit);

  // Number of lost notes: over the rate, over the queue's limit, or rejected by the server.
  std::uint64_t dropped() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace pliant::kube
