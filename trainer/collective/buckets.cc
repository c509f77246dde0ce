#include "trainer/collective/buckets.h"

#include <algorithm>

#include "base/check.h"
#include "trainer/collective/cache_line.h"

namespace pliant {
namespace {

std::size_t DownToLine(std::size_t elements) { return elements - elements % kFloatsPerCacheLine; }

// Where a bucket begins that ends at `end`.
std::size_t BeginOf(std::size_t end, std::size_t size) {
  return size >= end ? 0 : DownToLine(end - size);
}

}  // namespace

BucketLayout::BucketLayout(std::size_t elements, const BucketSizes& sizes) : elements_(elements) {
  CHECK(sizes.first > 0 && sizes.rest > 0, "a bucket holds something");
  if (elements == 0) return;
  first_begin_ = BeginOf(elements, sizes.first);
  // Equal cuts must compare equal: once the first bucket covers everything, or the second one the
  // rest, a larger size makes no difference.
  rest_ = std::min(CacheLines(sizes.rest) * kFloatsPerCacheLine, first_begin_);
  count_ = 1;
  if (first_begin_ > 0) count_ += static_cast<std::uint32_t>((first_begin_ + rest_ - 1) / rest_);
}

ElementRange BucketLayout::RangeOf(std::uint32_t bucket) const {
  CHECK(bucket < count_, "one of the buckets");
  if (bucket == 0) return {.begin = first_begin_, .size = elements_ - first_begin_};
  const std::size_t end = first_begin_ - (bucket - 1) * rest_;
  const std::size_t begin = BeginOf(end, rest_);
  return {.begin = begin, .size = end - begin};
}

std::uint32_t BucketLayout::BucketOf(std::size_t element) const {
  CHECK(element < elements_, "an element of the vector");
  if (element >= first_begin_) return 0;
  return 1 + static_cast<std::uint32_t>((first_begin_ - 1 - element) / rest_);
}

}  // namespace pliant
