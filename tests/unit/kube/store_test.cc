#include "operator/kube/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant::kube {
namespace {

struct Pod {
  std::string node;
};

class StoreTest : public testing::Test {
 protected:
  StoreTest()
      : by_node_(store_.AddIndex([](const Pod& pod) {
          return pod.node.empty() ? std::vector<std::string>() : std::vector{pod.node};
        })) {
    store_.OnChange([this](const Store<Pod>::Change& change) {
      const auto show = [](const auto& pod) { return pod ? pod->node : std::string("none"); };
      told_.push_back(change.key.name + ": " + show(change.before) + " > " + show(change.after));
    });
  }

  static Store<Pod>::Item Item(std::string name, std::string version, std::string node,
                               std::string uid = "uid-1") {
    return {.meta = {.key = {"a", std::move(name)},
                     .uid = std::move(uid),
                     .resource_version = std::move(version)},
            .value = std::make_shared<const Pod>(Pod{std::move(node)})};
  }
  static Store<Pod>::Item NotUnderstood(std::string name, std::string version) {
    Store<Pod>::Item item = Item(std::move(name), std::move(version), "");
    item.value = nullptr;
    return item;
  }
  std::vector<std::string> Told() { return std::exchange(told_, {}); }

  Store<Pod> store_;
  const Store<Pod>::IndexId by_node_;
  std::vector<std::string> told_;
};

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(StoreTest, KeepsTheLatestStateAndItsIndexes) {
  store_.Put(Item("p", "1", ""));
  store_.Put(Item("q", "2", "n1"));
  store_.Put(Item("p", "3", "n1"));
  EXPECT_THAT(Told(), ElementsAre("p: none > ", "q: none > n1", "p:  > n1"));
  EXPECT_EQ(store_.Lookup(by_node_, "n1").size(), 2u);
  EXPECT_EQ(store_.Find({"a", "p"})->node, "n1");

  store_.Put(Item("q", "4", "n2"));
  store_.Erase({"a", "p"});
  EXPECT_THAT(Told(), ElementsAre("q: n1 > n2", "p: n1 > none"));
  EXPECT_THAT(store_.Lookup(by_node_, "n1"), IsEmpty());
  EXPECT_EQ(store_.Lookup(by_node_, "n2").size(), 1u);
  EXPECT_EQ(store_.Find({"a", "p"}), nullptr);
}

TEST_F(StoreTest, AListTellsOfDeletionsThatNoWatchSaw) {
  EXPECT_FALSE(store_.synced());
  store_.ReplaceAll({Item("gone", "1", "n1"), Item("same", "2", "n1"), Item("other", "3", "n1")});
  EXPECT_TRUE(store_.synced());
  Told();
  store_.ReplaceAll({Item("same", "2", "n1"), Item("other", "5", "n2"), Item("new", "4", "n2")});
  EXPECT_THAT(Told(), ElementsAre("gone: n1 > none", "other: n1 > n2", "new: none > n2"));
  EXPECT_EQ(store_.size(), 3u);
}

TEST_F(StoreTest, AnObjectMadeAgainUnderItsNameIsAnotherOne) {
  store_.ReplaceAll({Item("p", "1", "n1", "uid-1")});
  Told();
  store_.ReplaceAll({Item("p", "9", "n2", "uid-2")});
  EXPECT_THAT(Told(), ElementsAre("p: n1 > none", "p: none > n2"));
}

TEST_F(StoreTest, AStateThatIsNotUnderstoodDoesNotLookDeleted) {
  store_.ReplaceAll({Item("p", "1", "n1")});
  Told();
  store_.Put(NotUnderstood("p", "2"));
  store_.ReplaceAll({NotUnderstood("p", "3"), NotUnderstood("never-understood", "4")});
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_EQ(store_.Find({"a", "p"})->node, "n1");
  EXPECT_EQ(store_.size(), 1u);
}

TEST_F(StoreTest, UnknownDeletionsAreNoNews) {
  store_.Erase({"a", "p"});
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(StoreTest, HiddenObjectsAreKeptUpToDateAndComeBack) {
  store_.Put(Item("p", "1", "n1"));
  store_.Put(Item("q", "2", "n1"));
  Told();
  store_.Hide({"a", "b"});
  EXPECT_THAT(Told(), ElementsAre("p: n1 > none", "q: n1 > none"));
  EXPECT_EQ(store_.Find({"a", "p"}), nullptr);
  EXPECT_THAT(store_.All(), IsEmpty());
  EXPECT_THAT(store_.Lookup(by_node_, "n1"), IsEmpty());
  EXPECT_EQ(store_.size(), 0u);

  store_.Put(Item("p", "3", "n2"));
  store_.Erase({"a", "q"});
  store_.Put(Item("r", "4", "n2"));
  store_.Hide({"a"});
  EXPECT_THAT(Told(), IsEmpty());
  store_.Hide({});
  EXPECT_THAT(Told(), ElementsAre("p: none > n2", "r: none > n2"));
  EXPECT_EQ(store_.Lookup(by_node_, "n2").size(), 2u);
}

TEST_F(StoreTest, ReadersKeepWhatTheyRead) {
  store_.Put(Item("p", "1", "n1"));
  const auto read = store_.Find({"a", "p"});
  store_.Put(Item("p", "2", "n2"));
  EXPECT_EQ(read->node, "n1");
}

}  // namespace
}  // namespace pliant::kube
