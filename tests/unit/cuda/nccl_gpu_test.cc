// The real NCCL has all functions that the runtime looks for. PLIANT_NCCL names the library.

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "trainer/collective/nccl_functions.h"
#include "trainer/collective/nccl_loader.h"

namespace pliant {
namespace {

TEST(Nccl, HasTheFunctions) {
  const char* const path = std::getenv("PLIANT_NCCL");
  if (path == nullptr) GTEST_SKIP() << "PLIANT_NCCL is not set";
  const auto library = NcclLibrary::Load(path);
  ASSERT_TRUE(library) << library.error();
  const auto functions = FindNcclFunctions(*library);
  ASSERT_TRUE(functions) << functions.error();
  EXPECT_NE(functions->comm_abort, nullptr);
  RecordProperty("version", NcclVersionText(library->version()));
}

}  // namespace
}  // namespace pliant
