#pragma once

namespace pliant::kube {

// Deleter of a std::unique_ptr for objects of a C library.
template <auto free>
struct Free {
  void operator()(auto* object) const { free(object); }
};

}  // namespace pliant::kube
