#include "operator/history/timeline.h"

#include <algorithm>
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

// The texts are charged to each record, although records share them: so the sum of all records is a
// bound.
std::size_t Timeline::RecordCost(const Key& key, const Cells& cells) const {
  std::size_t texts = Texts::CostOf(texts_.Of(key.name)) + Texts::CostOf(texts_.Of(key.node));
  for (const Cell& cell : cells) {
    if (cell.type == Cell::Type::kText)
      texts += Texts::CostOf(texts_.Of(static_cast<TextId>(cell.bits)));
  }
  return 2 * (kEntryBytes + HeapBytes(Pack(cells))) + texts;
}

// An eighth of the memory stays for changes, however many subjects there are.
bool Timeline::HasRoomFor(const Key& key, const Cells& cells) const {
  std::size_t others = latest_bytes_;
  if (const auto known = latest_.find(key); known != latest_.end())
    others -= RecordCost(key, Unpack(known->second));
  return others + RecordCost(key, cells) <= max_bytes_ - max_bytes_ / 8;
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
      if (was_there) latest_bytes_ -= RecordCost(key, before);
      latest_bytes_ += RecordCost(key, cells);
      Record(at, key, /*gone=*/false, changes);
      Put(key, cells, latest_);
    }
  } else if (was_there) {
    latest_bytes_ -= RecordCost(key, before);
    Record(at, key, /*gone=*/true, {});
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

Moment Timeline::At(WallTime t) const {
  t = std::max(t, begin_.value_or(t));
  const auto after = std::ranges::upper_bound(changes_, t, {}, &PackedChange::at);
  const auto count = static_cast<std::size_t>(after - changes_.begin());
  std::map<Key, Cells> state;
  for (const auto& [key, packed] : base_) state.emplace(key, Unpack(packed));
  for (std::size_t index = 0; index < count; ++index) {
    const PackedChange& change = changes_[index];
    if (change.gone) {
      state.erase(change.key);
    } else {
      Cells& cells = state[change.key];
      cells = Changed(cells, Unpack(change.values));
    }
  }
  Moment moment{
      .at = std::max(t, begin_.value_or(t)), .cursor = {replica_, dropped_ + count}, .frame = {}};
  for (const auto& [key, cells] : state) {
    Values& values = moment.frame[SubjectOf(key)];
    for (const Cell& cell : cells)
      values.emplace_hint(values.end(), cell.field, ToValue(cell, texts_));
  }
  return moment;
}

}  // namespace pliant::history
