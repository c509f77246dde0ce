#include "base/host_port.h"

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(HostPort, IsReadAsPeopleWriteIt) {
  EXPECT_EQ(ParseHostPort("name:8443"), (HostPort{.host = "name", .port = 8443}));
  EXPECT_EQ(ParseHostPort("0.0.0.0:8080"), (HostPort{.host = "0.0.0.0", .port = 8080}));
  EXPECT_EQ(ParseHostPort("[::1]:0"), (HostPort{.host = "::1", .port = 0}));
  EXPECT_EQ(ParseHostPort(":8081"), (HostPort{.host = "", .port = 8081}));
  for (const char* wrong : {"", "8080", "localhost", "a:", ":x", ":70000", ":-1", ":80 "}) {
    EXPECT_FALSE(ParseHostPort(wrong)) << wrong;
  }
}

TEST(HostPort, IsWrittenAsUrlsHaveIt) {
  EXPECT_EQ(HostAndPort("10.0.0.7", 8443), "10.0.0.7:8443");
  EXPECT_EQ(HostAndPort("fd00::7", 8443), "[fd00::7]:8443");
  EXPECT_EQ(HostAndPort("coordinator", 8443), "coordinator:8443");
}

TEST(HostPort, OnlyLoopbackIsNamedByItsNamesWithAnyPort) {
  for (const char* local : {"localhost", "localhost:6061", "LocalHost:1", "127.0.0.1",
                            "127.0.0.1:6061", "[::1]", "[::1]:6061"}) {
    EXPECT_TRUE(NamesLoopback(local)) << local;
  }
  for (const char* other :
       {"", ":6061", "evil.example", "evil.example:6061", "localhost.evil.example",
        "localhost:", "localhost:a", "127.0.0.2", "::1", "localhost:1:2"}) {
    EXPECT_FALSE(NamesLoopback(other)) << other;
  }
}

}  // namespace
}  // namespace pliant
