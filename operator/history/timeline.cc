#include "operator/history/timeline.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

namespace pliant::history {
namespace {

// A node of a frame's map, and its block's header.
constexpr std::size_t kEntryBytes = 96;
constexpr std::size_t kChangeBytes = 56;

// The memory of a text that is longer than what the string object itself can hold.
std::size_t HeapBytes(const std::string& packed) {
  constexpr std::size_t kInside = 15;
  return packed.size() > kInside ? packed.size() + 17 : 0;
}

// The memory of a record in both frames, without its texts.
std::size_t BytesInBoth(const Cells& cells) { return 2 * (kEntryBytes + HeapBytes(Pack(cells))); }

template <typename Key, typename Do>
void ForEachText(const Key& key, const Cells& cells, const Do& act) {
  act(key.name);
  act(key.node);
  for (const Cell& cell : cells)
    if (cell.type == Cell::Type::kText) act(static_cast<TextId>(cell.bits));
}

}  // namespace

Timeline::Timeline(std::string replica, std::size_t max_bytes)
    : replica_(std::move(replica)), max_bytes_(max_bytes) {}

std::size_t Timeline::bytes() const { return packed_bytes_ + texts_.bytes(); }

void Timeline::Use(const Key& key) {
  texts_.UseAgain(key.name);
  texts_.UseAgain(key.node);
}

void Timeline::Release(const Key& key) {
  texts_.Release(key.name);
  texts_.Release(key.node);
}

void Timeline::UseTexts(const Cells& cells) {
  for (const Cell& cell : cells)
    if (cell.type == Cell::Type::kText) texts_.UseAgain(static_cast<TextId>(cell.bits));
}

void Timeline::ReleaseTexts(const Cells& cells) {
  for (const Cell& cell : cells)
    if (cell.type == Cell::Type::kText) texts_.Release(static_cast<TextId>(cell.bits));
}

void Timeline::PinTexts(const Key& key, const Cells& cells) {
  latest_bytes_ += BytesInBoth(cells);
  ForEachText(key, cells, [this](TextId id) { texts_.Pin(id); });
}

void Timeline::UnpinTexts(const Key& key, const Cells& cells) {
  latest_bytes_ -= BytesInBoth(cells);
  ForEachText(key, cells, [this](TextId id) { texts_.Unpin(id); });
}

// An eighth of the memory stays for changes, however many subjects there are.
bool Timeline::HasRoomFor(const Key& key, const Cells& cells) const {
  std::size_t bytes = latest_bytes_ + texts_.pinned_bytes() + BytesInBoth(cells);
  if (const auto known = latest_.find(key); known != latest_.end())
    bytes -= BytesInBoth(Unpack(known->second));
  ForEachText(key, cells, [&](TextId id) {
    if (!texts_.IsPinned(id)) bytes += Texts::CostOf(texts_.Of(id));
  });
  return bytes <= max_bytes_ - max_bytes_ / 8;
}

void Timeline::Put(const Key& key, const Cells& cells, PackedFrame& frame) {
  UseTexts(cells);
  const auto [entry, is_new] = frame.try_emplace(key);
  if (is_new) {
    Use(key);
    packed_bytes_ += kEntryBytes;
  } else {
    packed_bytes_ -= HeapBytes(entry->second);
    ReleaseTexts(Unpack(entry->second));
  }
  entry->second = Pack(cells);
  packed_bytes_ += HeapBytes(entry->second);
}

void Timeline::Erase(const Key& key, PackedFrame& frame) {
  const auto entry = frame.find(key);
  if (entry == frame.end()) return;
  packed_bytes_ -= kEntryBytes + HeapBytes(entry->second);
  ReleaseTexts(Unpack(entry->second));
  frame.erase(entry);
  Release(key);
}

void Timeline::Record(WallTime at, const Key& key, bool gone, const Cells& changes) {
  Use(key);
  UseTexts(changes);
  changes_.push_back({.at = at, .key = key, .gone = gone, .values = Pack(changes)});
  packed_bytes_ += kChangeBytes + HeapBytes(changes_.back().values);
}

void Timeline::DropFirst() {
  const PackedChange first = std::move(changes_.front());
  changes_.pop_front();
  ++dropped_;
  packed_bytes_ -= kChangeBytes + HeapBytes(first.values);
  begin_ = first.at;
  const Cells changes = Unpack(first.values);
  if (first.gone) {
    Erase(first.key, base_);
  } else {
    const auto before = base_.find(first.key);
    Put(first.key, Changed(before == base_.end() ? Cells() : Unpack(before->second), changes),
        base_);
  }
  ReleaseTexts(changes);
  Release(first.key);
}

void Timeline::Append(WallTime at, const Subject& subject, const std::optional<Values>& values) {
  if (!begin_) begin_ = at;
  at = std::max(at, changes_.empty() ? *begin_ : changes_.back().at);
  const Key key{subject.kind, texts_.Use(subject.name), texts_.Use(subject.node)};
  const Cells cells = values ? ToCells(*values, texts_) : Cells();
  const bool fits = !values || HasRoomFor(key, cells);
  if (!fits) ++refused_;
  const auto known = latest_.find(key);
  const bool was_there = known != latest_.end();
  const Cells before = was_there ? Unpack(known->second) : Cells();
  if (values && fits) {
    if (const Cells changes = Difference(before, cells); !was_there || !changes.empty()) {
      Record(at, key, /*gone=*/false, changes);
      if (was_there) UnpinTexts(key, before);
      PinTexts(key, cells);
      Put(key, cells, latest_);
    }
  } else if (was_there) {
    Record(at, key, /*gone=*/true, {});
    UnpinTexts(key, before);
    Erase(key, latest_);
  }
  ReleaseTexts(cells);
  Release(key);
  while (bytes() > max_bytes_ && !changes_.empty()) DropFirst();
}

Subject Timeline::SubjectOf(const Key& key) const {
  return {.kind = key.kind, .name = texts_.Of(key.name), .node = texts_.Of(key.node)};
}

Change Timeline::Unpacked(std::size_t index) const {
  const PackedChange& packed = changes_[index];
  Change change{.sequence = dropped_ + index + 1,
                .at = packed.at,
                .subject = SubjectOf(packed.key),
                .gone = packed.gone,
                .values = {}};
  for (const Cell& cell : Unpack(packed.values)) {
    std::optional<Value>& value = change.values[cell.field];
    if (cell.type != Cell::Type::kAbsent) value = ToValue(cell, texts_);
  }
  return change;
}

std::optional<std::vector<Change>> Timeline::Since(const Cursor& cursor) const {
  const bool is_held = cursor.replica == replica_ && cursor.sequence >= dropped_ &&
                       cursor.sequence <= dropped_ + changes_.size();
  if (!is_held) return std::nullopt;
  std::vector<Change> since;
  for (std::size_t index = cursor.sequence - dropped_; index < changes_.size(); ++index)
    since.push_back(Unpacked(index));
  return since;
}

std::pair<WallTime, Cursor> Timeline::Visit(WallTime t,
                                            const std::function<void(const Sight&)>& see) const {
  t = std::max(t, begin_.value_or(t));
  const auto after = std::ranges::upper_bound(changes_, t, {}, &PackedChange::at);
  const auto count = static_cast<std::size_t>(after - changes_.begin());
  PackedFrame state = base_;
  for (std::size_t index = 0; index < count; ++index) {
    const PackedChange& change = changes_[index];
    if (change.gone) {
      state.erase(change.key);
    } else {
      std::string& packed = state[change.key];
      packed = Pack(Changed(Unpack(packed), Unpack(change.values)));
    }
  }
  std::vector<const PackedFrame::value_type*> sorted;
  sorted.reserve(state.size());
  for (const auto& entry : state) sorted.push_back(&entry);
  std::ranges::sort(sorted, {}, [this](const PackedFrame::value_type* entry) {
    const Key& key = entry->first;
    return std::tuple<Kind, std::string_view, std::string_view>(key.kind, texts_.Of(key.name),
                                                                texts_.Of(key.node));
  });
  for (const auto* entry : sorted) {
    const Key& key = entry->first;
    const Cells cells = Unpack(entry->second);
    see({.kind = key.kind,
         .name = texts_.Of(key.name),
         .node = texts_.Of(key.node),
         .cells = cells});
  }
  return {t, {replica_, dropped_ + count}};
}

Moment Timeline::At(WallTime t) const {
  Moment moment;
  std::tie(moment.at, moment.cursor) = Visit(t, [&](const Sight& sight) {
    Values& values = moment.frame[{.kind = sight.kind, .name = sight.name, .node = sight.node}];
    for (const Cell& cell : sight.cells)
      values.emplace_hint(values.end(), cell.field, ToValue(cell, texts_));
  });
  return moment;
}

}  // namespace pliant::history
