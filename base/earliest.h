#pragma once

#include <optional>
#include <type_traits>

namespace pliant {

// Sets `earliest` to `time` if that is earlier; nullopt: never.
template <typename Time>
void KeepEarliest(const std::type_identity_t<std::optional<Time>>& time,
                  std::optional<Time>& earliest) {
  if (time && (!earliest || *time < *earliest)) earliest = time;
}

}  // namespace pliant
