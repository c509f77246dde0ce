#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/http_server.h"
#include "base/text_stream.h"
#include "operator/history/observe.h"
#include "operator/history/timeline.h"

namespace pliant::web {

// The timeline, and the readers that follow it by server-sent events (docs/timeline.md). One
// thread, which is not that of the control loop.
class TimelineFeed {
 public:
  static constexpr std::size_t kMaxReaders = 64;
  // Frames that readers are being sent at the same time. A frame may have megabytes.
  static constexpr std::size_t kMaxFrames = 4;

  // `replica`: as for Timeline.
  explicit TimelineFeed(std::string replica) : timeline_(std::move(replica)) {}

  // Records what the control loop has seen until `now`, and sends readers the changes and the time.
  void Take(history::WallTime now, const std::vector<history::Observation>& observations);

  // Adds a reader: first it gets the changes that it missed or, if it names none or they are not
  // known, the state at the time of the query (`from=`, milliseconds since 1970; by default now)
  // and the changes since then. nullopt: it was added; otherwise why it was not.
  std::optional<ServerResponse> Join(const ServerRequest& request,
                                     std::shared_ptr<TextStream> reader);
  // The same state and changes as one JSON document.
  ServerResponse Answer(const ServerRequest& request) const;

  const history::Timeline& timeline() const { return timeline_; }
  std::size_t readers() const;

 private:
  void Send(const std::shared_ptr<const std::string>& text);
  std::shared_ptr<const std::string> Opening(const ServerRequest& request, history::WallTime from);

  history::Timeline timeline_;
  history::WallTime now_{};
  std::vector<std::shared_ptr<TextStream>> readers_;
  std::vector<std::weak_ptr<const std::string>> frames_;  // that readers are being sent
};

}  // namespace pliant::web
