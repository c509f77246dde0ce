#include "trainer/cuda/nccl_loader.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

using ::testing::HasSubstr;

TEST(NcclLibrary, WhenAbsentSaysWhatToDo) {
  const auto library = NcclLibrary::Load("libnccl-that-is-not-there.so.2");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(library.error().message, HasSubstr("libnccl-that-is-not-there.so.2"));
  EXPECT_THAT(library.error().message, HasSubstr("use TCP"));
}

TEST(NcclLibrary, IsKnownByItsVersion) {
  const auto library = NcclLibrary::Load(FAKE_NCCL_NEW);
  ASSERT_TRUE(library) << library.error();
  EXPECT_EQ(library->version(), 22809);
  EXPECT_TRUE(library->Find<int(int*)>("ncclGetVersion"));
  const auto missing = library->Find<int()>("ncclCommGrow");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("NCCL 2.28.9 has no ncclCommGrow"));
}

TEST(NcclLibrary, StaysInMemoryForItsThreads) {
  int (*version)(int*) = nullptr;
  {
    const auto library = NcclLibrary::Load(FAKE_NCCL_NEW);
    ASSERT_TRUE(library) << library.error();
    version = *library->Find<int(int*)>("ncclGetVersion");
  }
  void* const still_there = ::dlopen(FAKE_NCCL_NEW, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(still_there, nullptr);
  int number = 0;
  EXPECT_EQ(version(&number), 0);
  EXPECT_EQ(number, 22809);
}

TEST(NcclLibrary, TooOldIsRefused) {
  const auto library = NcclLibrary::Load(FAKE_NCCL_OLD);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(library.error().message, HasSubstr("NCCL 2.13.4"));
  EXPECT_THAT(library.error().message, HasSubstr("at least 2.27.3"));
}

}  // namespace
}  // namespace pliant
