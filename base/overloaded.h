#pragma once

namespace pliant {

// Functions of one argument each, for std::visit.
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

}  // namespace pliant
