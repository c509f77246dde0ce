#include "operator/controller/model/node_terms.h"

#include <gtest/gtest.h>

#include "operator/planner/feasibility.h"

namespace pliant::controller {
namespace {

using planner::NodeOperator;

using Labels = std::map<std::string, std::string>;

bool Has(const NodeTerms& terms, const Labels& labels) {
  return planner::ObstacleInLooks({.labels = labels}, {.node_affinity = terms}) ==
         planner::Obstacle::kNone;
}

const Labels kNodes[] = {{},
                         {{"gpu", "a100"}},
                         {{"gpu", "h100"}},
                         {{"gpu", "a100"}, {"team", "x"}},
                         {{"gpu", "h100"}, {"team", "x"}},
                         {{"team", "y"}}};

const api::LabelSelector kSelectors[] = {
    {.match_labels = {{"gpu", "a100"}}},
    {.match_labels = {{"gpu", "a100"}, {"team", "x"}}},
    {.match_expressions = {{"gpu", NodeOperator::kIn, {"a100", "h100"}}}},
    {.match_expressions = {{"gpu", NodeOperator::kNotIn, {"a100"}}}},
    {.match_expressions = {{"team", NodeOperator::kExists, {}}}},
    {.match_labels = {{"gpu", "h100"}},
     .match_expressions = {{"team", NodeOperator::kDoesNotExist, {}}}}};

TEST(NodeTerms, AreWhatTheSelectorMatchesAndTheRest) {
  for (const api::LabelSelector& selector : kSelectors) {
    for (const Labels& labels : kNodes) {
      EXPECT_EQ(Has(NodesIn(selector), labels), selector.Matches(labels));
      EXPECT_EQ(Has(NodesNotIn(selector), labels), !selector.Matches(labels));
    }
  }
}

TEST(NodeTerms, BothHold) {
  for (const api::LabelSelector& left : kSelectors) {
    for (const api::LabelSelector& right : kSelectors) {
      const NodeTerms both = BothHold(NodesIn(left), NodesNotIn(right));
      for (const Labels& labels : kNodes) {
        EXPECT_EQ(Has(both, labels), left.Matches(labels) && !right.Matches(labels));
      }
    }
  }
}

TEST(NodeTerms, AllNodes) {
  EXPECT_EQ(NodesIn({}), NodeTerms{});
  const NodeTerms some = NodesIn(kSelectors[0]);
  EXPECT_EQ(BothHold({}, some), some);
  EXPECT_EQ(BothHold(some, {}), some);
}

// A hundred pools with ten labels each would otherwise take a term for each choice of ten.
TEST(NodeTerms, AreNotTooMany) {
  api::LabelSelector wide;
  for (char key = 'a'; key <= 'j'; ++key) wide.match_labels[std::string(1, key)] = "1";
  NodeTerms terms;
  for (int pool = 0; pool < 100; ++pool) terms = BothHold(terms, NodesNotIn(wide));
  EXPECT_LE(terms.size(), kMaxNodeTerms);
}

}  // namespace
}  // namespace pliant::controller
