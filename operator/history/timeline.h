#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/history/packed.h"
#include "operator/history/texts.h"
#include "operator/history/values.h"

namespace pliant::history {

// A place in the timeline of one replica: the changes up to `sequence` are before it.
struct Cursor {
  std::string replica;
  std::uint64_t sequence = 0;
  bool operator==(const Cursor&) const = default;
};

// The state at one moment, and the place in the timeline after the last change that it includes.
struct Moment {
  WallTime at;
  Cursor cursor;
  Frame frame;
};

// A subject at one moment, with its values as they are kept.
struct Sight {
  Kind kind{};
  const std::string& name;
  const std::string& node;
  const Cells& cells;
};

// The newest changes of the cluster's state, as many as fit in a bounded memory, and the state
// before the first of them, which moves forward as old changes are dropped. One thread.
class Timeline {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{12} << 20;

  // `replica` names this process. It differs after each start, because what was recorded is then
  // another timeline.
  explicit Timeline(std::string replica, std::size_t max_bytes = kMaxBytes);

  // Records the state of a subject; nullopt: it is gone. Without a difference there is no change. A
  // time before that of the last change counts as that time. A subject for which the memory does
  // not suffice counts as gone.
  void Append(WallTime at, const Subject& subject, const std::optional<Values>& values);

  // The changes after the cursor; nullopt if it is of another replica, or some are dropped.
  std::optional<std::vector<Change>> Since(const Cursor& cursor) const;
  // The state at `t`; if `t` is before begin(), the state at begin().
  Moment At(WallTime t) const;
  // The same without copies: calls `see` with each subject, in the order of Subject. Returns the
  // time and the place of the state.
  std::pair<WallTime, Cursor> Visit(WallTime t, const std::function<void(const Sight&)>& see) const;
  const Texts& texts() const { return texts_; }

  // The earliest time at which the state is known; nullopt while nothing is recorded.
  std::optional<WallTime> begin() const { return begin_; }
  Cursor cursor() const { return {replica_, dropped_ + changes_.size()}; }
  // An upper bound of the memory in use.
  std::size_t bytes() const;
  std::uint64_t dropped() const { return dropped_; }
  // States that were not recorded because the memory did not suffice.
  std::uint64_t refused() const { return refused_; }

 private:
  struct Key {
    Kind kind{};
    TextId name = 0;
    TextId node = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct PackedChange {
    WallTime at;
    Key key;
    bool gone = false;
    std::string values;
  };
  using PackedFrame = std::map<Key, std::string>;

  bool HasRoomFor(const Key& key, const Cells& cells) const;
  void Put(const Key& key, const Cells& cells, PackedFrame& frame);
  void Erase(const Key& key, PackedFrame& frame);
  void Record(WallTime at, const Key& key, bool gone, const Cells& changes);
  void DropFirst();
  void Use(const Key& key);
  void Release(const Key& key);
  void UseTexts(const Cells& cells);
  void ReleaseTexts(const Cells& cells);
  Subject SubjectOf(const Key& key) const;
  Change Unpacked(std::size_t index) const;
  void PinTexts(const Key& key, const Cells& cells);
  void UnpinTexts(const Key& key, const Cells& cells);

  const std::string replica_;
  const std::size_t max_bytes_;
  Texts texts_;
  std::optional<WallTime> begin_;
  PackedFrame base_;    // the state at begin_
  PackedFrame latest_;  // the state after the last change
  std::deque<PackedChange> changes_;
  std::uint64_t dropped_ = 0;  // changes that are part of base_
  std::uint64_t refused_ = 0;
  std::size_t packed_bytes_ = 0;  // of both frames and all changes, without their texts
  // The memory of latest_ and an equal base_, without their texts, which are pinned.
  std::size_t latest_bytes_ = 0;
};

}  // namespace pliant::history
