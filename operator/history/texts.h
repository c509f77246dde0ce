#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pliant::history {

using TextId = std::uint32_t;

// Holds each text once, for as long as someone counts as its user. One thread.
class Texts {
 public:
  // Adds a user of `text`, and returns the number of the text.
  TextId Use(std::string_view text);
  // Adds a user of a text that has one.
  void UseAgain(TextId id);
  // Removes a user. With its last user the text is gone, and its number is given to another one.
  void Release(TextId id);

  // A user may also pin its text. Counts how much memory the pinned texts need alone.
  void Pin(TextId id);
  void Unpin(TextId id);
  bool IsPinned(TextId id) const { return entries_[id].pins > 0; }
  std::size_t pinned_bytes() const { return pinned_bytes_; }

  const std::string& Of(TextId id) const { return entries_[id].text; }
  std::size_t size() const { return ids_.size(); }
  // An upper bound of the memory of all texts.
  std::size_t bytes() const { return bytes_; }
  static std::size_t CostOf(std::string_view text) { return kOverhead + text.size(); }

 private:
  // The entry, the node and the bucket of the table, and the blocks' headers.
  static constexpr std::size_t kOverhead = 144;

  struct Entry {
    std::string text;
    std::uint32_t users = 0;
    std::uint32_t pins = 0;
  };

  std::deque<Entry> entries_;  // a text never moves, because keys of ids_ point to it
  std::vector<TextId> free_;
  std::unordered_map<std::string_view, TextId> ids_;
  std::size_t bytes_ = 0;
  std::size_t pinned_bytes_ = 0;
};

}  // namespace pliant::history
