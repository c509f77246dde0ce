#include "trainer/collective/shm_lender.h"

#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Bytes PayloadIn(MemorySource& memory, std::size_t bytes) {
  auto owner = memory.Allocate(bytes);
  std::memset(owner.get(), 7, bytes);
  std::span<const std::byte> view(owner.get(), bytes);
  return {.owner = std::move(owner), .view = view};
}

TEST(ShmLender, APayloadStaysUntilItIsReturned) {
  SharedMemory memory;
  ShmLender lender(memory);
  Bytes payload = PayloadIn(memory, 100);
  const std::weak_ptr<const void> kept = payload.owner;
  const std::byte* const begin = payload.view.data();
  const auto loan = lender.Lend(std::move(payload));
  ASSERT_TRUE(loan);
  EXPECT_EQ(loan->block->view().data() + loan->offset, begin) << "it was not copied";
  EXPECT_FALSE(kept.expired());
  EXPECT_EQ(lender.bytes(), 100U);
  EXPECT_TRUE(lender.Return(1));
  EXPECT_TRUE(kept.expired());
  EXPECT_EQ(lender.bytes(), 0U);
}

TEST(ShmLender, ThePlaceIsWithinTheBlock) {
  SharedMemory memory;
  ShmLender lender(memory);
  Bytes payload = PayloadIn(memory, 100);
  payload.view = payload.view.subspan(64);
  EXPECT_EQ(lender.Lend(std::move(payload))->offset, 64U);
}

TEST(ShmLender, CopiesAPayloadThatIsNotInSharedMemory) {
  SharedMemory memory;
  ShmLender lender(memory);
  Bytes payload = PayloadIn(HeapMemory(), 100);
  const std::weak_ptr<const void> original = payload.owner;
  const auto loan = lender.Lend(std::move(payload));
  ASSERT_TRUE(loan);
  EXPECT_TRUE(original.expired()) << "only the copy is kept";
  EXPECT_EQ(loan->block->view()[loan->offset + 99], std::byte{7});
}

TEST(ShmLender, WithoutSharedMemoryNothingIsLent) {
  SharedMemory memory([](std::uint64_t, std::size_t) -> Result<std::shared_ptr<const SharedBlock>> {
    return Fail(ErrorCode::kUnavailable, "not here");
  });
  ShmLender lender(memory);
  EXPECT_FALSE(lender.Lend(PayloadIn(HeapMemory(), 100)));
  EXPECT_EQ(lender.loans(), 0U);
  EXPECT_EQ(lender.bytes(), 0U);
}

TEST(ShmLender, ABlockIsAnnouncedOnceAndForgottenWithTheNextNewOne) {
  SharedMemory memory;
  ShmLender lender(memory);
  const Bytes first = PayloadIn(memory, 100);
  const auto fresh = lender.Lend(first);
  EXPECT_TRUE(fresh->announce);
  EXPECT_FALSE(lender.Lend(first)->announce);

  std::optional<ShmLender::Loan> gone = lender.Lend(PayloadIn(memory, 100));
  EXPECT_TRUE(gone->announce);
  EXPECT_THAT(gone->forgotten, IsEmpty());
  const std::uint64_t id = gone->block->id();
  gone.reset();
  ASSERT_TRUE(lender.Return(3));  // the block's last owner
  EXPECT_THAT(lender.Lend(first)->forgotten, IsEmpty());
  const auto next = lender.Lend(PayloadIn(memory, 100));
  EXPECT_TRUE(next->announce);
  EXPECT_THAT(next->forgotten, ElementsAre(id));
  EXPECT_THAT(lender.Lend(PayloadIn(memory, 100))->forgotten, IsEmpty())
      << "a block is reported once";
}

TEST(ShmLender, PayloadsReturnInAnyOrder) {
  SharedMemory memory;
  ShmLender lender(memory);
  const Bytes payload = PayloadIn(memory, 10);
  struct Step {
    std::uint64_t number;
    bool is_lent;
    std::size_t loans_after;
  };
  const Step steps[] = {{0, false, 4}, {5, false, 4}, {UINT64_MAX, false, 4}, {2, true, 4},
                        {2, false, 4}, {1, true, 2},  {1, false, 2},          {2, false, 2},
                        {4, true, 2},  {3, true, 0},  {3, false, 0},          {4, false, 0}};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(lender.Lend(payload));
  for (const Step& step : steps) {
    SCOPED_TRACE(step.number);
    const std::uint64_t before = lender.bytes();
    EXPECT_EQ(lender.Return(step.number).has_value(), step.is_lent);
    EXPECT_EQ(before - lender.bytes(), step.is_lent ? 10U : 0U);
    EXPECT_EQ(lender.loans(), step.loans_after);
  }
  ASSERT_TRUE(lender.Lend(payload));
  EXPECT_TRUE(lender.Return(5)) << "numbers continue";
}

TEST(ShmLender, AllReturnsAtOnce) {
  SharedMemory memory;
  ShmLender lender(memory);
  Bytes payload = PayloadIn(memory, 10);
  const std::weak_ptr<const void> kept = payload.owner;
  ASSERT_TRUE(lender.Lend(std::move(payload)));
  lender.ReturnAll();
  EXPECT_TRUE(kept.expired());
  EXPECT_EQ(lender.loans(), 0U);
}

}  // namespace
}  // namespace pliant
