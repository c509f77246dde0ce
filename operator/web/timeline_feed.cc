#include "operator/web/timeline_feed.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "operator/history/encode.h"

namespace pliant::web {
namespace {

using history::Cursor;
using history::WallTime;

std::string Event(const Cursor& cursor, std::string_view kind, std::string_view data) {
  return Format("id: {}/{}\nevent: {}\ndata: {}\n\n", cursor.replica, cursor.sequence, kind, data);
}

template <typename Number>
std::optional<Number> NumberIn(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// nullopt for a text that this program did not write.
std::optional<Cursor> CursorIn(const std::string& id) {
  const std::size_t slash = id.rfind('/');
  if (slash == id.npos) return std::nullopt;
  const auto sequence = NumberIn<std::uint64_t>(std::string_view(id).substr(slash + 1));
  if (!sequence) return std::nullopt;
  return Cursor{.replica = id.substr(0, slash), .sequence = *sequence};
}

// The time in the query, at most `now`; nullopt if it has another form than from=MILLISECONDS.
std::optional<WallTime> FromIn(std::string_view query, WallTime now) {
  constexpr std::string_view kFrom = "from=";
  if (query.empty()) return now;
  if (!query.starts_with(kFrom)) return std::nullopt;
  const auto milliseconds = NumberIn<std::int64_t>(query.substr(kFrom.size()));
  if (!milliseconds) return std::nullopt;
  return std::min(WallTime(std::chrono::milliseconds(*milliseconds)), now);
}

ServerResponse WrongQuery() {
  return ErrorResponse(400, "the query must be from=TIME in milliseconds since 1970, or empty");
}

}  // namespace

std::size_t TimelineFeed::readers() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(readers_, [](const auto& reader) { return reader->open(); }));
}

void TimelineFeed::Send(const std::shared_ptr<const std::string>& text) {
  std::erase_if(readers_, [](const auto& reader) { return !reader->open(); });
  for (const auto& reader : readers_) reader->Send(text);
}

void TimelineFeed::Take(WallTime now, const std::vector<history::Observation>& observations) {
  const Cursor before = timeline_.cursor();
  now_ = std::max(now, now_);
  for (const history::Observation& each : observations)
    timeline_.Append(now_, each.subject, each.values);
  const auto changes = timeline_.Since(before);
  const std::int64_t time = now_.time_since_epoch().count();
  if (!changes) {
    // More changed at once than the memory holds: readers begin again.
    for (const auto& reader : readers_) reader->Close();
  } else if (changes->empty()) {
    Send(std::make_shared<const std::string>(
        Event(timeline_.cursor(), "now", std::to_string(time))));
  } else {
    Send(std::make_shared<const std::string>(
        Event(timeline_.cursor(), "changes", history::EncodeChanges(*changes))));
  }
}

ServerResponse TimelineFeed::Answer(const ServerRequest& request) const {
  const std::optional<WallTime> from = FromIn(request.query, now_);
  if (!from) return WrongQuery();
  if (!timeline_.begin())
    return ErrorResponse(503, "nothing was recorded yet: the operator still lists objects");
  return {.body = history::EncodeTimeline(timeline_, *from, now_)};
}

// Null: too many frames are being sent.
std::shared_ptr<const std::string> TimelineFeed::Opening(const ServerRequest& request,
                                                         WallTime from) {
  if (const auto cursor = CursorIn(request.last_event_id)) {
    if (const auto missed = timeline_.Since(*cursor)) {
      return std::make_shared<const std::string>(
          Event(timeline_.cursor(), "changes", history::EncodeChanges(*missed)));
    }
  }
  std::erase_if(frames_, [](const auto& frame) { return frame.expired(); });
  if (frames_.size() >= kMaxFrames) return nullptr;
  auto frame = std::make_shared<const std::string>(
      Event(timeline_.cursor(), "frame", history::EncodeTimeline(timeline_, from, now_)));
  frames_.emplace_back(frame);
  return frame;
}

std::optional<ServerResponse> TimelineFeed::Join(const ServerRequest& request,
                                                 std::shared_ptr<TextStream> reader) {
  const std::optional<WallTime> from = FromIn(request.query, now_);
  if (!from) return WrongQuery();
  if (!timeline_.begin()) return Answer({});
  if (readers() >= kMaxReaders)
    return ErrorResponse(503, "too many readers follow the timeline; close another page");
  const auto opening = Opening(request, *from);
  if (opening == nullptr)
    return ErrorResponse(503, "too many readers begin at the same time; try again later");
  reader->Send(opening);
  readers_.push_back(std::move(reader));
  return std::nullopt;
}

}  // namespace pliant::web
