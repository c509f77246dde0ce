#pragma once

#include <cstddef>
#include <cstdint>

namespace pliant {

// The part [begin, begin + size) of a vector.
struct ElementRange {
  std::size_t begin = 0;
  std::size_t size = 0;
  std::size_t end() const { return begin + size; }
  bool operator==(const ElementRange&) const = default;
};

// Bucket sizes, in elements. They do not influence the bits of a sum, but are equal on all members
// of a membership: frames name buckets by number.
struct BucketSizes {
  std::size_t first = 0;  // small, so that sending starts early
  std::size_t rest = 0;
  bool operator==(const BucketSizes&) const = default;
};

// A flat gradient cut into buckets, each reduced separately. They are numbered from the end of the
// vector, since a backward pass finishes the last parameters first. All begin on a cache-line
// boundary (16 floats): sizes are rounded up to whole lines.
class BucketLayout {
 public:
  BucketLayout() = default;
  BucketLayout(std::size_t elements, const BucketSizes& sizes);

  std::size_t elements() const { return elements_; }
  std::uint32_t count() const { return count_; }
  ElementRange RangeOf(std::uint32_t bucket) const;      // bucket < count()
  std::uint32_t BucketOf(std::size_t element) const;     // element < elements()
  bool operator==(const BucketLayout&) const = default;  // compares cuts, whatever their sizes

 private:
  std::size_t elements_ = 0;
  std::size_t first_begin_ = 0;  // where bucket 0 begins
  std::size_t rest_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace pliant
