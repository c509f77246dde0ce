#include "operator/history/texts.h"

#include "base/check.h"

namespace pliant::history {

TextId Texts::Use(std::string_view text) {
  if (const auto found = ids_.find(text); found != ids_.end()) {
    ++entries_[found->second].users;
    return found->second;
  }
  TextId id = static_cast<TextId>(entries_.size());
  if (free_.empty()) {
    entries_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  entries_[id] = {.text = std::string(text), .users = 1, .pins = 0};
  ids_.emplace(entries_[id].text, id);
  bytes_ += CostOf(text);
  return id;
}

void Texts::UseAgain(TextId id) {
  CHECK(entries_[id].users > 0, "a text without users is gone");
  ++entries_[id].users;
}

void Texts::Release(TextId id) {
  Entry& entry = entries_[id];
  CHECK(entry.users > 0, "each use ends once");
  if (--entry.users > 0) return;
  CHECK(entry.pins == 0, "only a user pins a text");
  bytes_ -= CostOf(entry.text);
  ids_.erase(entry.text);
  entry = {};
  free_.push_back(id);
}

void Texts::Pin(TextId id) {
  if (++entries_[id].pins == 1) pinned_bytes_ += CostOf(entries_[id].text);
}

void Texts::Unpin(TextId id) {
  CHECK(entries_[id].pins > 0, "each pin ends once");
  if (--entries_[id].pins == 0) pinned_bytes_ -= CostOf(entries_[id].text);
}

}  // namespace pliant::history
