#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace pliant::learner {

// The one of `words` that `typed` was most likely meant to be: at most a third of its letters
// differ (by insertion, deletion, replacement or a swap of neighbours; case does not count).
std::optional<std::string_view> ClosestWord(std::string_view typed,
                                            std::span<const std::string_view> words);

}  // namespace pliant::learner
