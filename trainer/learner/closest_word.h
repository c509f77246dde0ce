#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace pliant::learner {

// The word of `words` that the user most likely meant by `typed`: at most a third of its letters
// differ (by insertion, deletion, replacement or a swap of neighbours; case is ignored).
std::optional<std::string_view> ClosestWord(std::string_view typed,
                                            std::span<const std::string_view> words);

}  // namespace pliant::learner
