#pragma once

namespace pliant::kube {

// How a std::unique_ptr lets go of what a C library made.
template <auto free>
struct Free {
  void operator()(auto* object) const { free(object); }
};

}  // namespace pliant::kube
