#include "trainer/runtime/operation_queue.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

using Kind = OperationQueue::Kind;

// Adds operations by letter: t, a tick; c, a copy; s, a change of the state.
void AddAll(OperationQueue& queue, std::string_view letters, std::string& begun) {
  for (const char letter : letters) {
    const Kind kind = letter == 't' ? Kind::kTick : letter == 'c' ? Kind::kCopy : Kind::kChange;
    queue.Add(kind, [&begun, letter] { begun += letter; });
  }
}

void BeginAll(OperationQueue& queue) {
  while (auto begin = queue.Next()) (*begin)();
}

TEST(OperationQueue, BeginsInTheOrderOfTheCallsAndChangesWaitForCopies) {
  struct Case {
    std::string_view asked;
    std::string at_once;      // begun before any copy has ended
    std::string after_one;    // and after one has
    std::string after_all{};  // and after two
  };
  for (const Case& c : {Case{"", "", ""}, Case{"ts", "ts", "ts"}, Case{"cts", "ct", "cts"},
                        Case{"scs", "sc", "scs"}, Case{"ccts", "cct", "cct", "ccts"},
                        Case{"cst", "c", "cst"}, Case{"csc", "c", "csc"}}) {
    SCOPED_TRACE(c.asked);
    OperationQueue queue;
    std::string begun;
    AddAll(queue, c.asked, begun);
    BeginAll(queue);
    EXPECT_EQ(begun, c.at_once);
    if (!begun.contains('c')) continue;
    queue.OnCopied();
    BeginAll(queue);
    EXPECT_EQ(begun, c.after_one);
    if (c.after_all.empty()) continue;
    queue.OnCopied();
    BeginAll(queue);
    EXPECT_EQ(begun, c.after_all);
    EXPECT_EQ(queue.begun(), c.after_all.size());
  }
}

TEST(OperationQueue, DroppedTicksDoNotBegin) {
  OperationQueue queue;
  std::string begun;
  AddAll(queue, "tstct", begun);
  queue.DropTicks();
  BeginAll(queue);
  EXPECT_EQ(begun, "sc");
}

}  // namespace
}  // namespace pliant
