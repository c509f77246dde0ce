#pragma once

#include <span>
#include <string_view>

namespace pliant::simulator {

// The name that needs the fewest letters inserted, removed or replaced to become `text`, whether
// small or capital; of several the first. `names` is not empty.
std::string_view Nearest(std::string_view text, std::span<const std::string_view> names);

}  // namespace pliant::simulator
