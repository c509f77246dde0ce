#include "trainer/collective/shm_borrower.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Access = ShmBorrower::Access;

constexpr std::size_t kBorrowedBlockBytes = 4096;

class ShmBorrowerTest : public testing::Test {
 protected:
  ShmBorrowerTest() { EXPECT_TRUE(Map(1, kBorrowedBlockBytes)); }

  Status Map(std::uint64_t id, std::uint64_t bytes) {
    return borrower_->Map({.type = ShmRecordType::kBlock, .block = id, .bytes = bytes},
                          block_->descriptor());
  }
  Result<Bytes> Borrow(std::uint64_t block, std::uint64_t offset, std::uint64_t bytes,
                       Access access = Access::kInPlace) {
    return borrower_->Borrow({.block = block, .offset = offset, .bytes = bytes}, access);
  }
  std::vector<std::uint64_t> Returns() {
    std::vector<std::uint64_t> numbers;
    borrower_->TakeReturns(numbers);
    return numbers;
  }

  BytePool pool_{kBorrowedBlockBytes};
  int woken_ = 0;
  std::optional<ShmBorrower> borrower_{
      std::in_place, pool_, /*max_payload_bytes=*/std::uint64_t{1000}, [this] { ++woken_; }};
  const std::shared_ptr<const SharedBlock> block_ = *SharedBlock::Make(1, kBorrowedBlockBytes);
};

TEST_F(ShmBorrowerTest, InPlaceItIsThePeersMemoryUntilItWasRead) {
  auto payload = Borrow(1, 100, 200);
  ASSERT_TRUE(payload);
  EXPECT_EQ(payload->view.size(), 200U);
  block_->view()[100] = std::byte{9};
  EXPECT_EQ(payload->view[0], std::byte{9});
  EXPECT_THAT(Returns(), IsEmpty());
  EXPECT_EQ(woken_, 0);
  *payload = {};
  EXPECT_THAT(Returns(), ElementsAre(1));
  EXPECT_EQ(woken_, 1);
}

TEST_F(ShmBorrowerTest, ACopyStaysAndIsReturnedAtOnce) {
  block_->view()[100] = std::byte{7};
  const auto payload = Borrow(1, 100, 200, Access::kCopy);
  ASSERT_TRUE(payload);
  EXPECT_THAT(Returns(), ElementsAre(1));
  block_->view()[100] = std::byte{9};
  EXPECT_EQ(payload->view[0], std::byte{7});
}

TEST_F(ShmBorrowerTest, LoansAreReturnedByTheirNumber) {
  auto first = Borrow(1, 0, 10);
  auto second = Borrow(1, 10, 10);
  auto third = Borrow(1, 20, 10);
  *third = {};
  *first = {};
  EXPECT_THAT(Returns(), ElementsAre(3, 1));
  *second = {};
  EXPECT_THAT(Returns(), ElementsAre(2));
  EXPECT_THAT(Returns(), IsEmpty());
}

TEST_F(ShmBorrowerTest, EveryPlaceIsChecked) {
  struct Case {
    const char* name;
    std::uint64_t block;
    std::uint64_t offset;
    std::uint64_t bytes;
    const char* reason;  // empty: the payload is accepted
  };
  const Case cases[] = {
      {"all that is allowed", 1, 3096, 1000, ""},
      {"the last byte", 1, 4095, 1, ""},
      {"nothing", 1, 0, 0, "a payload of 0 bytes"},
      {"more than is allowed", 1, 0, 1001, "a payload of 1001 bytes"},
      {"beyond the end", 1, 4000, 97, "in a block of 4096"},
      {"an offset beyond the end", 1, 4097, 1, "in a block of 4096"},
      {"a sum that wraps around", 1, UINT64_MAX - 8, 16, "in a block of 4096"},
      {"another block", 2, 0, 64, "never gave"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto payload = Borrow(c.block, c.offset, c.bytes);
    EXPECT_EQ(payload.has_value(), *c.reason == '\0');
    const std::string reason = payload ? "" : payload.error().message;
    EXPECT_THAT(reason, HasSubstr(c.reason));
  }
}

TEST_F(ShmBorrowerTest, EveryBlockIsChecked) {
  EXPECT_FALSE(Map(1, kBorrowedBlockBytes)) << "the number is in use";
  EXPECT_FALSE(Map(0, kBorrowedBlockBytes)) << "0 is no block";
  EXPECT_FALSE(Map(2, kBorrowedBlockBytes + 1)) << "larger than the memory";
  EXPECT_FALSE(Borrow(2, 0, 1)) << "a block that was refused";
  EXPECT_TRUE(Map(3, kBorrowedBlockBytes));
}

TEST_F(ShmBorrowerTest, AForgottenBlockIsGoneButNotWhatWasBorrowed) {
  block_->view()[0] = std::byte{7};
  const auto payload = Borrow(1, 0, 10);
  ASSERT_TRUE(payload);
  EXPECT_TRUE(borrower_->Forget(1));
  EXPECT_FALSE(borrower_->Forget(1));
  EXPECT_FALSE(Borrow(1, 0, 10));
  EXPECT_EQ(payload->view[0], std::byte{7});
  EXPECT_TRUE(Map(1, kBorrowedBlockBytes)) << "its number may be reused";
}

TEST_F(ShmBorrowerTest, BorrowedMemoryOutlivesTheBorrower) {
  block_->view()[0] = std::byte{7};
  auto payload = Borrow(1, 0, 10);
  borrower_.reset();
  EXPECT_EQ(payload->view[0], std::byte{7});
  *payload = {};
  EXPECT_EQ(woken_, 1);
}

}  // namespace
}  // namespace pliant
