#include "operator/kube/event_recorder.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/utf8.h"
#include "operator/kube/wall_time.h"

namespace pliant::kube {
namespace {

using nlohmann::json;

// Limits of the API server's validation.
constexpr std::size_t kMaxNoteBytes = 1024;
constexpr std::size_t kMaxInstanceBytes = 128;
constexpr std::size_t kMaxNameBytes = 253;

// Deterministic for one event, so that a request sent twice finds the event that it created.
NamespacedName NameOf(const EventSeries::Decision& event) {
  const NamespacedName& object = event.note.regarding.meta.key;
  const std::string suffix = Format(".{:016x}", event.id);
  std::string name = object.name.substr(0, kMaxNameBytes - suffix.size());
  name.erase(name.find_last_not_of("-.") + 1);  // no part of a name may end with them
  return {object.ns.empty() ? "default" : object.ns, name + suffix};
}

json EventObject(const EventSeries::Decision& event, const EventRecorderOptions& options,
                 const std::string& wall_time) {
  const NamespacedName name = NameOf(event);
  const EventSubject& regarding = event.note.regarding;
  json object = {{"metadata", {{"namespace", name.ns}, {"name", name.name}}},
                 {"eventTime", wall_time},
                 {"reportingController", options.controller},
                 {"reportingInstance", CutAtCharacter(options.instance, kMaxInstanceBytes)},
                 {"type", event.note.type == EventType::kNormal ? "Normal" : "Warning"},
                 {"reason", event.note.reason},
                 {"action", event.note.action},
                 {"note", CutAtCharacter(event.note.note, kMaxNoteBytes)},
                 {"regarding",
                  {{"apiVersion", ApiVersion(regarding.type)},
                   {"kind", regarding.type.kind},
                   {"name", regarding.meta.key.name},
                   {"uid", regarding.meta.uid}}}};
  if (!regarding.meta.key.ns.empty()) object["regarding"]["namespace"] = regarding.meta.key.ns;
  return object;
}

}  // namespace

class EventRecorder::Impl {
 public:
  Impl(KubeClient& client, EventRecorderOptions options)
      : client_(client),
        options_(std::move(options)),
        series_(options_.series,
                static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                           Duration(1))),
        thread_([this](const std::stop_token& stop) { Run(stop); }) {}

  void Record(EventNote note) {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.size() >= options_.max_waiting) {
        ++dropped_;
        return;
      }
      waiting_.push_back(std::move(note));
    }
    changed_.notify_all();
  }

  bool Flush(Duration limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [this] { return waiting_.empty() && !writing_; });
  }

  std::uint64_t dropped() const { return dropped_; }

 private:
  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::optional<EventNote> note;
      {
        std::unique_lock lock(mutex_);
        writing_ = false;
        changed_.notify_all();
        changed_.wait_for(lock, stop, options_.series.write_every,
                          [this] { return !waiting_.empty(); });
        if (stop.stop_requested()) return;
        if (!waiting_.empty()) {
          note = std::move(waiting_.front());
          waiting_.pop_front();
        }
        writing_ = true;
      }
      if (note) Write(series_.OnNote(*note, MonotonicNow()), stop);
      for (const EventSeries::Decision& due : series_.Flush(MonotonicNow())) Write(due, stop);
    }
  }

  void Write(const EventSeries::Decision& event, const std::stop_token& stop) {
    const std::string wall_time = MicroTime(std::chrono::system_clock::now());
    switch (event.action) {
      case EventSeries::Action::kNothing:
        return;
      case EventSeries::Action::kDrop:
        ++dropped_;
        return;
      case EventSeries::Action::kCreate:
        Finish(client_.Create(kEvents, EventObject(event, options_, wall_time), {.stop = stop}));
        return;
      case EventSeries::Action::kUpdateSeries: {
        const json patch = {{"series", {{"count", event.count}, {"lastObservedTime", wall_time}}}};
        Finish(client_.Patch(kEvents, NameOf(event), patch, {.stop = stop}));
        return;
      }
    }
  }

  void Finish(const KubeResult<json>& written) {
    if (written) {
      failure_.clear();
      return;
    }
    const KubeError& error = written.error();
    // The request was sent twice, or the event's time to live has ended.
    if (error.code == ErrorCode::kAlreadyExists || error.code == ErrorCode::kNotFound) return;
    ++dropped_;
    if (error.code == ErrorCode::kCancelled || failure_ == error.message) return;
    failure_ = error.message;
    log::Warning("event not written", {{"error", error.message}});
  }

  KubeClient& client_;
  const EventRecorderOptions options_;
  std::atomic<std::uint64_t> dropped_{0};

  // The recorder's thread only.
  EventSeries series_;
  std::string failure_;  // what was logged last

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<EventNote> waiting_;  // guarded by mutex_
  bool writing_ = false;           // guarded by mutex_

  std::jthread thread_;  // last: joined before the rest is destroyed
};

EventRecorder::EventRecorder(KubeClient& client, EventRecorderOptions options)
    : impl_(std::make_unique<Impl>(client, std::move(options))) {}
EventRecorder::~EventRecorder() = default;

void EventRecorder::Record(EventNote note) { impl_->Record(std::move(note)); }
bool EventRecorder::Flush(Duration limit) { return impl_->Flush(limit); }
std::uint64_t EventRecorder::dropped() const { return impl_->dropped(); }

}  // namespace pliant::kube
