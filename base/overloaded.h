#pragma once

namespace pliant {

// Combines functions of one argument each, for std::visit.
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

}  // namespace pliant
