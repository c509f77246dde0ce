#include "base/mailbox.h"

#include <thread>

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(Mailbox, KeepsOrderBetweenThreads) {
  Mailbox<int> mailbox;
  std::jthread writer([&] {
    for (int i = 0; i < 1000; ++i) mailbox.Put(i);
    mailbox.Close();
  });
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(mailbox.Take(), i);
  EXPECT_EQ(mailbox.Take(), std::nullopt);
}

TEST(Mailbox, AStopRequestWakesTheReader) {
  Mailbox<int> mailbox;
  std::optional<int> taken = 1;
  std::jthread reader([&](std::stop_token stop) { taken = mailbox.Take(stop); });
  reader.request_stop();
  reader.join();
  EXPECT_EQ(taken, std::nullopt);
}

TEST(Mailbox, AClosedOneDropsWhatComesLater) {
  Mailbox<int> mailbox;
  mailbox.Close();
  mailbox.Put(1);
  EXPECT_EQ(mailbox.Take(), std::nullopt);
}

}  // namespace
}  // namespace pliant
