#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/fakes/cuda/race_detector.h"
#include "tests/fakes/cuda/vector_clock.h"

namespace pliant::fake_cuda {

using EventId = std::uint64_t;

// The streams and events of all devices of a process, as CUDA defines them. Operations run within
// calls of the host, at times and in an order that a seed chooses among those that CUDA allows: a
// single-threaded program runs in the same way again with the same seed. For one thread at a time.
//
// Besides running operations it judges their order by vector clocks: see RaceDetector. The host
// counts as one thread: what any of its threads has waited for happened before all that the host
// queues later. (Races between the host's own threads are ThreadSanitizer's to find.)
class Timeline {
 public:
  // A stream's queue of work: `work` returns a CUDA error, or 0.
  using Work = std::function<int()>;

  // Streams 0 to devices - 1 are the devices' legacy default streams.
  Timeline(std::uint64_t seed, int devices);

  // A blocking stream and the legacy stream of its device wait for each other.
  StreamId NewStream(int device, bool blocking);
  // Queued operations still run. Afterwards the stream is unknown.
  bool EndStream(StreamId stream);
  bool IsStream(StreamId stream) const;
  int DeviceOf(StreamId stream) const { return streams_[stream].device; }

  EventId NewEvent();
  bool EndEvent(EventId event) { return events_.erase(event) > 0; }
  bool IsEvent(EventId event) const { return events_.contains(event); }

  Point Enqueue(StreamId stream, std::string name, std::vector<Access> accesses, Work work);
  // An operation that others end: it is asked from its turn on.
  Point EnqueueExchange(StreamId stream, std::string name, std::vector<Access> accesses,
                        std::function<bool()> over);
  void Record(EventId event, StreamId stream);
  // Later operations of the stream begin after what the event's last record captured. Waiting for
  // an event that was never recorded is no wait.
  void Wait(StreamId stream, EventId event);

  // Runs a few operations, or none, as the seed has it.
  void MakeProgress();
  // The same, but at least one if any can run: a host that polls must get somewhere.
  void MakeSomeProgress();
  // Runs operations until the condition holds. False: none can run, so the wait would never end.
  bool RunUntil(const std::function<bool()>& condition);

  bool Ended(Point point) const { return streams_[point.stream].ended >= point.number; }
  bool EventEnded(EventId event) const;
  bool StreamEnded(StreamId stream) const;
  // All operations of the device's streams.
  bool DeviceEnded(int device) const;
  // The host has seen that these have ended.
  void HostSawEvent(EventId event);
  void HostSawStream(StreamId stream);
  void HostSawDevice(int device);

  // The first error of an operation: it stays, as a broken context does.
  int error() const { return error_; }
  // Operations after the next `operations` ones fail with `error`; nullopt: none fails any longer.
  void FailAfter(std::optional<int> operations, int error);
  // A stream that hangs runs nothing.
  void Hang(StreamId stream, bool hangs) { streams_[stream].hangs = hangs; }

  void Forget(std::uint64_t begin, std::size_t bytes) { detector_.Forget(begin, bytes); }
  // Whether an operation that has not run yet touches the memory.
  bool IsAwaited(std::uint64_t begin, std::size_t bytes) const;
  void Violation(std::string message) { violations_.push_back(std::move(message)); }
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct Operation {
    std::string name;
    std::uint64_t number = 0;
    std::vector<Point> after;  // in other streams
    std::vector<Access> accesses;
    Work work;
    std::function<bool()> over;  // none: it ends when it was run
  };
  struct Stream {
    int device = 0;
    bool blocking = true;
    bool open = true;
    bool hangs = false;
    std::deque<Operation> queue;
    std::uint64_t queued = 0;  // operations so far
    std::uint64_t ended = 0;
    VectorClock clock;  // of its last operation
  };
  struct Event {
    std::optional<Point> point;  // none: never recorded
    VectorClock clock;
  };

  Point Enqueue(StreamId stream, Operation operation, VectorClock after);
  bool CanRun(const Stream& stream) const;
  bool RunOne();

  std::mt19937_64 random_;
  const bool lazy_;        // operations run only when the host waits or polls
  const StreamId legacy_;  // number of legacy streams
  std::vector<Stream> streams_;
  std::map<EventId, Event> events_;
  EventId last_event_ = 0;
  VectorClock host_;
  RaceDetector detector_;
  std::vector<std::string> violations_;
  std::optional<int> to_failure_;
  int failure_ = 0;
  int error_ = 0;
};

}  // namespace pliant::fake_cuda
