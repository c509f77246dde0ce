#include "trainer/coordinator/counter_file.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace pliant {
namespace {

class CounterFileTest : public testing::Test {
 protected:
  ~CounterFileTest() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      testing::TempDir() + "pliant-counter-test-" + std::to_string(::getpid());
};

TEST_F(CounterFileTest, IsReadBackByTheSameTermOnly) {
  const CounterFile first(folder_, 1);
  EXPECT_EQ(first.Read(), 0U) << "nothing written yet";
  ASSERT_TRUE(first.Write(7));
  ASSERT_TRUE(first.Write(8));
  EXPECT_EQ(CounterFile(folder_, 1).Read(), 8U);

  const CounterFile second(folder_, 2);
  EXPECT_EQ(second.Read(), 0U) << "a new term starts over";
  ASSERT_TRUE(second.Write(1));
  EXPECT_EQ(first.Read().error().code, ErrorCode::kConflict) << "an old coordinator still runs";
}

TEST_F(CounterFileTest, RefusesContentThatItDoesNotUnderstand) {
  ASSERT_TRUE(CounterFile(folder_, 1).Write(1));
  for (const char* content :
       {"", "1", "1 2", "1 2\n3\n", "1  2\n", "a b\n", "1 -2\n", "1 99999999999999999999999\n"}) {
    SCOPED_TRACE(content);
    ASSERT_TRUE(WriteFileAtomically(folder_ / "membership-counter", content));
    const auto counter = CounterFile(folder_, 1).Read();
    ASSERT_FALSE(counter);
    EXPECT_EQ(counter.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(counter.error().message, testing::HasSubstr("raise the term"));
  }
}

TEST_F(CounterFileTest, AFolderThatCannotBeMadeIsAnError) {
  EXPECT_FALSE(CounterFile("/proc/nowhere", 1).Write(1));
}

}  // namespace
}  // namespace pliant
