#include "base/listen_address.h"

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(ListenAddress, IsReadAsPeopleWriteIt) {
  EXPECT_EQ(ParseListenAddress("0.0.0.0:8080"), (ListenAddress{.host = "0.0.0.0", .port = 8080}));
  EXPECT_EQ(ParseListenAddress("[::1]:0"), (ListenAddress{.host = "::1", .port = 0}));
  EXPECT_EQ(ParseListenAddress(":8081"), (ListenAddress{.host = "", .port = 8081}));
  for (const char* wrong : {"", "8080", "localhost", "a:", ":x", ":70000", ":-1", ":80 "}) {
    EXPECT_FALSE(ParseListenAddress(wrong)) << wrong;
  }
}

TEST(ListenAddress, IsWrittenAsUrlsHaveIt) {
  EXPECT_EQ(HostAndPort("10.0.0.7", 8443), "10.0.0.7:8443");
  EXPECT_EQ(HostAndPort("fd00::7", 8443), "[fd00::7]:8443");
  EXPECT_EQ(HostAndPort("coordinator", 8443), "coordinator:8443");
}

}  // namespace
}  // namespace pliant
