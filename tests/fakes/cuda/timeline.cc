#include "tests/fakes/cuda/timeline.h"

#include <algorithm>
#include <utility>

namespace pliant::fake_cuda {

Timeline::Timeline(std::uint64_t seed, int devices)
    : random_(seed), lazy_(seed % 4 == 0), legacy_(static_cast<StreamId>(devices)) {
  for (int device = 0; device < devices; ++device) streams_.push_back({.device = device});
}

StreamId Timeline::NewStream(int device, bool blocking) {
  streams_.push_back({.device = device, .blocking = blocking});
  return streams_.size() - 1;
}

bool Timeline::IsStream(StreamId stream) const {
  return stream < streams_.size() && streams_[stream].open;
}

bool Timeline::EndStream(StreamId stream) {
  if (!IsStream(stream) || stream < legacy_) return false;
  streams_[stream].open = false;
  return true;
}

EventId Timeline::NewEvent() {
  events_.emplace(++last_event_, Event{});
  return last_event_;
}

Point Timeline::Enqueue(StreamId stream, std::string name, std::vector<Access> accesses,
                        Work work) {
  return Enqueue(
      stream, {.name = std::move(name), .accesses = std::move(accesses), .work = std::move(work)},
      {});
}

Point Timeline::EnqueueExchange(StreamId stream, std::string name, std::vector<Access> accesses,
                                std::function<bool()> over) {
  return Enqueue(
      stream, {.name = std::move(name), .accesses = std::move(accesses), .over = std::move(over)},
      {});
}

Point Timeline::Enqueue(StreamId id, Operation operation, VectorClock after) {
  Stream& stream = streams_[id];
  after.Join(stream.clock);
  after.Join(host_);
  const auto await = [&](StreamId other) {
    after.Join(streams_[other].clock);
    operation.after.push_back({.stream = other, .number = streams_[other].queued});
  };
  if (id >= legacy_) {
    if (stream.blocking) await(static_cast<StreamId>(stream.device));
  } else {
    for (StreamId other = legacy_; other < streams_.size(); ++other)
      if (streams_[other].blocking && streams_[other].device == stream.device) await(other);
  }
  operation.number = ++stream.queued;
  const Point point{.stream = id, .number = operation.number};
  for (const Access& access : operation.accesses)
    if (auto race = detector_.Touch(operation.name, point, after, access))
      Violation(std::move(*race));
  after.Include(point);
  stream.clock = std::move(after);
  stream.queue.push_back(std::move(operation));
  return point;
}

void Timeline::Record(EventId id, StreamId stream) {
  const Point point = Enqueue(stream, {.name = "record of an event"}, {});
  events_[id] = {.point = point, .clock = streams_[stream].clock};
}

void Timeline::Wait(StreamId stream, EventId id) {
  const Event& event = events_[id];
  if (!event.point) return;
  Enqueue(stream, {.name = "wait for an event", .after = {*event.point}}, event.clock);
}

bool Timeline::CanRun(const Stream& stream) const {
  return !stream.hangs && !stream.queue.empty() &&
         std::ranges::all_of(stream.queue.front().after,
                             [&](const Point& point) { return Ended(point); }) &&
         (!stream.queue.front().over || error_ != 0 || stream.queue.front().over());
}

bool Timeline::RunOne() {
  std::vector<Stream*> ready;
  for (Stream& stream : streams_)
    if (CanRun(stream)) ready.push_back(&stream);
  if (ready.empty()) return false;
  Stream& stream = *ready[random_() % ready.size()];
  const Operation operation = std::move(stream.queue.front());
  stream.queue.pop_front();
  stream.ended = operation.number;
  if (error_ != 0 || !operation.work) return true;  // a broken context runs nothing
  if (to_failure_ == 0) {
    error_ = failure_;
    return true;
  }
  if (to_failure_) --*to_failure_;
  error_ = operation.work();
  return true;
}

void Timeline::MakeProgress() {
  if (lazy_) return;
  for (std::uint64_t left = random_() % 3; left > 0 && RunOne(); --left) {
  }
}

void Timeline::MakeSomeProgress() {
  RunOne();
  MakeProgress();
}

bool Timeline::RunUntil(const std::function<bool()>& condition) {
  while (!condition())
    if (!RunOne()) return false;
  return true;
}

bool Timeline::EventEnded(EventId id) const {
  const Event& event = events_.at(id);
  return !event.point || Ended(*event.point);
}

bool Timeline::StreamEnded(StreamId stream) const {
  if (streams_[stream].ended < streams_[stream].queued) return false;
  // The legacy stream stands for all that it would wait for.
  if (stream >= legacy_) return true;
  return std::ranges::all_of(streams_, [&](const Stream& other) {
    return !other.blocking || other.device != streams_[stream].device || other.queue.empty();
  });
}

bool Timeline::DeviceEnded(int device) const {
  return std::ranges::all_of(streams_, [&](const Stream& stream) {
    return stream.device != device || stream.queue.empty();
  });
}

void Timeline::HostSawEvent(EventId id) { host_.Join(events_[id].clock); }

void Timeline::HostSawStream(StreamId id) {
  host_.Join(streams_[id].clock);
  if (id >= legacy_) return;
  for (const Stream& other : streams_)
    if (other.blocking && other.device == streams_[id].device) host_.Join(other.clock);
}

void Timeline::HostSawDevice(int device) {
  for (const Stream& stream : streams_)
    if (stream.device == device) host_.Join(stream.clock);
}

void Timeline::FailAfter(std::optional<int> operations, int error) {
  to_failure_ = operations;
  failure_ = error;
  if (!operations) error_ = 0;
}

bool Timeline::IsAwaited(std::uint64_t begin, std::size_t bytes) const {
  return std::ranges::any_of(streams_, [&](const Stream& stream) {
    return std::ranges::any_of(stream.queue, [&](const Operation& operation) {
      return std::ranges::any_of(operation.accesses, [&](const Access& access) {
        return access.begin < begin + bytes && begin < access.end();
      });
    });
  });
}

}  // namespace pliant::fake_cuda
