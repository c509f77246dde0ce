#include "trainer/collective/byte_pool.h"

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(BytePool, GivesTheSameMemoryAgain) {
  BytePool pool(1 << 20);
  const std::byte* first = nullptr;
  for (int i = 0; i < 5; ++i) {
    const MutableBytes buffer = pool.Take(1000);
    EXPECT_EQ(buffer.view.size(), 1000U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.view.data()) % 64, 0U);
    if (i == 0) first = buffer.view.data();
    EXPECT_EQ(buffer.view.data(), first);
    const MutableBytes other = pool.Take(1000);
    EXPECT_NE(other.view.data(), first);
  }
}

TEST(BytePool, TakesEverySize) {
  BytePool pool(1 << 16);
  for (const std::size_t size : {0U, 1U, 64U, 65U, 4096U, 1U << 20}) {
    const MutableBytes buffer = pool.Take(size);
    ASSERT_EQ(buffer.view.size(), size);
    for (std::byte& byte : buffer.view) byte = std::byte{1};
  }
}

TEST(BytePool, BuffersMayOutliveItAndEndOnAnyThread) {
  auto pool = std::make_unique<BytePool>(1 << 20);
  std::vector<MutableBytes> buffers;
  for (std::size_t i = 0; i < 100; ++i) buffers.push_back(pool->Take(100 * i));
  std::jthread other(
      [half = std::vector(buffers.begin(), buffers.begin() + 50)]() mutable { half.clear(); });
  buffers.erase(buffers.begin(), buffers.begin() + 50);
  for (std::size_t i = 0; i < 50; ++i) buffers.push_back(pool->Take(100 * i));
  pool.reset();
  buffers.clear();
}

}  // namespace
}  // namespace pliant
