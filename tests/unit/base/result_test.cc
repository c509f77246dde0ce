#include "base/result.h"

#include <gtest/gtest.h>

namespace pliant {
namespace {

Result<int> Half(int value) {
  if (value % 2 != 0) return Invalid(std::to_string(value) + " is odd");
  return value / 2;
}

Result<int> Quarter(int value) {
  ASSIGN_OR_RETURN(const int half, Half(value));
  RETURN_IF_ERROR(Half(half));
  return half / 2;
}

TEST(Result, MacrosPassTheFirstErrorOn) {
  EXPECT_EQ(Quarter(8), 2);
  EXPECT_EQ(Quarter(7).error(), (Error{ErrorCode::kInvalid, "7 is odd"}));
  EXPECT_EQ(Quarter(6).error(), (Error{ErrorCode::kInvalid, "3 is odd"}));
}

TEST(Result, ContextComesBeforeTheSentence) {
  EXPECT_EQ(InContext("read model.yaml", {ErrorCode::kNotFound, "no such file"}).message,
            "read model.yaml: no such file");
}

}  // namespace
}  // namespace pliant
