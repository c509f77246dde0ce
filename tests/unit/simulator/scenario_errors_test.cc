#include <initializer_list>
#include <string>

#include <gtest/gtest.h>

#include "simulator/inputs/scenario.h"
#include "tests/unit/simulator/small_profile.h"

// Errors in scenarios name the file, the line and the remedy.
namespace pliant::simulator {
namespace {

struct BadScenario {
  std::string text;
  std::string error;  // after the name of the file
};

void ExpectErrors(std::initializer_list<BadScenario> cases) {
  for (const BadScenario& each : cases) {
    const auto scenario = ParseScenario(each.text, "s.yaml", SmallProfiles());
    ASSERT_FALSE(scenario) << each.text;
    EXPECT_EQ(scenario.error().message, "s.yaml" + each.error) << each.text;
    EXPECT_EQ(scenario.error().code, ErrorCode::kInvalid);
  }
}

const std::string kNodes = "nodes: [{count: 2, gpus: 4}]\n";      // line 1
const std::string kJobs = "jobs: [{name: a, profile: small}]\n";  // line 1

std::string Job(const std::string& fields) {
  return kNodes + "jobs:\n  - {name: a, profile: small, " + fields + "}\n";  // line 3
}
std::string Event(const std::string& fields) {
  return kNodes + "jobs:\n  - {name: a, profile: small, submit: 53s}\nevents:\n  - {" + fields +
         "}\n";  // line 5
}
std::string Queue(const std::string& fields) {
  return kNodes + kJobs + "queues:\n  research:\n    " + fields + "\n";  // line 5
}

TEST(ScenarioErrorsTest, Yaml) {
  ExpectErrors({
      {"", ":1: the scenario is (empty); write a mapping with nodes, queues, jobs, events"},
      {"[]", ":1: the scenario is a list; write a mapping with nodes, queues, jobs, events"},
      {"nodes: [\n", ":2: this is not YAML: end of sequence flow not found; correct it"},
      {kNodes + "jobs: *a\n",
       ":2: this is not YAML: the referenced anchor is not defined: a; correct it"},
      {"nodes: &a [{count: 2, gpus: 4}]\njobs: *a\n",
       ":2: aliases are not supported; write the value itself"},
      {"a: &a [x,x]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]\n",
       ":2: aliases are not supported; write the value itself"},
      {"nodes: [[[[[[[[[[]]]]]]]]]]\n",
       ":1: values are nested more than 8 levels deep; no scenario needs that"},
      {kNodes + "---\n" + kJobs, ":2: a second document begins; write one document only"},
      {kNodes + kNodes, ":2: 'nodes' stands there twice; remove one"},
      {kNodes + "[a]: 1\n", ":2: a key is not a text; write a name before the colon"},
      {kNodes + "job: []\n",
       ":2: the scenario has the unknown key 'job'; use nodes, queues, jobs, events"},
      {kJobs, ":1: the scenario has no 'nodes'; add it, for example nodes: [{count: 16, gpus: 4}]"},
      {kNodes,
       ":1: the scenario has no 'jobs'; add it, for example jobs: [{name: a, profile: "
       "cifar10}]"},
  });
}

TEST(ScenarioErrorsTest, Nodes) {
  ExpectErrors({
      {kJobs + "nodes: 16x4\n",
       ":2: 'nodes' is 16x4; write a list of at least one, for example [{count: 16, gpus: 4}]"},
      {kJobs + "nodes: []\n",
       ":2: 'nodes' is empty; write a list of at least one, for example [{count: 16, gpus: 4}]"},
      {kJobs + "nodes:\n  - gpu: 4\n",
       ":3: a group of nodes has the unknown key 'gpu'; use count, gpus, labels"},
      {kJobs + "nodes:\n  - count: 4\n",
       ":3: a group of nodes has no 'gpus'; add it, for example gpus: 4"},
      {kJobs + "nodes:\n  - count: 0\n    gpus: 4\n",
       ":3: 'count' of a group of nodes is 0; write a whole number from 1 to 100000"},
      {kJobs + "nodes:\n  - count: 100001\n    gpus: 4\n",
       ":3: 'count' of a group of nodes is 100001; write a whole number from 1 to 100000"},
      {kJobs + "nodes:\n  - count: 4\n    gpus: [4]\n",
       ":4: 'gpus' of a group of nodes is a list; write a whole number from 1 to 1024"},
      {kJobs + "nodes:\n  - {count: 100000, gpus: 1}\n  - {gpus: 1}\n",
       ":4: this group makes 100001 nodes; write at most 100000 in all"},
      {kJobs + "nodes:\n  - {count: 1000, gpus: 1000}\n  - {gpus: 1}\n",
       ":4: this group makes 1000001 GPUs; write at most 1000000 in all"},
      {kJobs + "nodes:\n  - gpus: 1\n    labels: a\n",
       ":4: 'labels' of a group of nodes are no mapping; write at most 16, for example {zone: a}"},
      {kJobs + "nodes:\n  - gpus: 1\n    labels: {a: [b]}\n",
       ":4: the label 'a' is a list; write texts of at most 317 bytes"},
  });
}

TEST(ScenarioErrorsTest, Queues) {
  ExpectErrors({
      {kNodes + kJobs + "queues: [a]\n",
       ":3: 'queues' is a list; write a mapping, for example {research: {weight: 200}}"},
      {kNodes + kJobs + "queues: {a b: {}}\n",
       ":3: the name of a queue is a b; write 1 to 255 letters, digits and -_."},
      {Queue("wight: 3"),
       ":5: queue research has the unknown key 'wight'; use weight, guaranteed, "
       "limit, lendingLimit, policy, bias, queueing, reclaim"},
      {Queue("weight: 0"),
       ":5: 'weight' of queue research is 0; write a whole number from 1 to 10000"},
      {Queue("guaranteed: 1000001"),
       ":5: 'guaranteed' of queue research is 1000001; write a whole number from 0 to 1000000"},
      {Queue("limit: 1e3"),
       ":5: 'limit' of queue research is 1e3; write a whole number from 0 to 1000000"},
      {Queue("policy: Fair"),
       ":5: 'policy' of queue research is Fair; write one of FairShare, "
       "Priority, Fifo, Throughput"},
      {Queue("bias: Long"), ":5: 'bias' of queue research is Long; write one of None, ShortJobs"},
      {Queue("guaranteed: 8\n    limit: 4"),
       ":5: queue research: guaranteed is 8, more than limit, which is 4; lower guaranteed, or "
       "raise limit"},
      {Queue("lendingLimit: 1"),
       ":5: queue research: lendingLimit is 1, more than guaranteed, which is 0; lower "
       "lendingLimit, or raise guaranteed"},
      {kNodes + kJobs + "queues:\n  a: {}\n  b: {}\n  a: {}\n",
       ":6: 'a' stands there twice; remove one"},
  });
}

TEST(ScenarioErrorsTest, Jobs) {
  ExpectErrors({
      {kNodes + "jobs: {}\n",
       ":2: 'jobs' is a mapping; write a list of at least one, for example "
       "[{name: a, profile: cifar10}]"},
      {kNodes + "jobs:\n  - a\n",
       ":3: a job is a; write a mapping with name, submit, profile, batch, min, max, queue, "
       "priority, gpusPerLearner, gpus, reproducibility, deadline"},
      {kNodes + "jobs:\n  - profile: small\n",
       ":3: a job has no 'name'; add it, for example name: a"},
      {kNodes + "jobs:\n  - name: a\n",
       ":3: job a has no 'profile'; add it, for example profile: cifar10"},
      {kNodes + "jobs:\n  - name: a/b\n    profile: small\n",
       ":3: 'name' of a job is a/b; write 1 to 255 letters, digits and -_."},
      {kNodes + "jobs:\n  - {name: a, profile: small}\n  - {name: b, profile: small}\n  - {name: "
                "a, profile: small}\n",
       ":5: job a is there already, at line 3; rename one"},
      {kNodes + "jobs:\n  - name: a\n    profile: large\n",
       ":4: 'profile' of job a is large, which is no profile; use one of small"},
      {Job("\n     batch: 7"), ":4: 'batch' of job a is 7; write a whole number from 8 to 32"},
      {Job("batch: 33"), ":3: 'batch' of job a is 33; write a whole number from 8 to 32"},
      {Job("submit: -1s"), ":3: 'submit' of job a is -1s; write a duration of at least 0ms"},
      {Job("submit: 1500ms"),
       ":3: 'submit' of job a is 1500ms; write whole seconds, for example 1s"},
      {Job("submit: soon"),
       ":3: 'submit' of job a is soon; write a duration, for example 250ms, "
       "53s, 10m, 2h or 1d"},
      {Job("submit: 1h, deadline: 30m"),
       ":3: 'deadline' of job a is not after its submission at 3600s; write a later time since "
       "the beginning of the run"},
      {Job("min: 0"), ":3: 'min' of job a is 0; write a whole number from 1 to 1024"},
      {Job("max: 99999999999999999999"),
       ":3: 'max' of job a is 99999999999999999999; write a whole number from 1 to 1024"},
      {Job("min: 2, max: 1"),
       ":3: 'min' of job a is 2, more than 'max', which is 1; lower one, or raise the other"},
      {Job("max: 3"),
       ":3: 'max' of job a is 3; a batch of 8 is enough for at most 2 learners of profile small"},
      {Job("min: 3"),
       ":3: 'min' of job a is 3; a batch of 8 is enough for at most 2 learners of profile small"},
      {Job("gpusPerLearner: 3"),
       ":3: 'gpusPerLearner' of job a is 3; a batch of 8 is enough for "
       "at most 2 GPUs of profile small"},
      {Job("gpusPerLearner: 17"),
       ":3: 'gpusPerLearner' of job a is 17; write a whole number from 1 to 16"},
      {Job("gpus: 3"), ":3: 'gpus' of job a is 3; write a whole number from 1 to 2"},
      {Job("priority: 10001"),
       ":3: 'priority' of job a is 10001; write a whole number from 1 to 10000"},
      {Job("reproducibility: Exact"),
       ":3: 'reproducibility' of job a is Exact; write one of Bitwise, Statistical"},
      {Job("queue: resarch") + "queues: {batch: {}, research: {}}\n",
       ":3: 'queue' of job a is resarch, which is no queue; add it to 'queues', or use one of "
       "batch, default, research"},
      {Job("batch: 32, gpusPerLearner: 5"),
       ":3: job a needs 5 GPUs on one node, and the largest node has 4; lower 'gpusPerLearner', or "
       "add larger nodes"},
  });
}

TEST(ScenarioErrorsTest, Events) {
  ExpectErrors({
      {Event("at: 1h"),
       ":5: an event has none of cordon, uncordon, fail, priority, finish; write "
       "exactly one"},
      {Event("at: 1h, cordon: n00, finish: a"),
       ":5: an event has several of cordon, uncordon, fail, priority, finish; write exactly one"},
      {Event("cordon: n00"), ":5: an event has no 'at'; add it, for example at: 1h"},
      {Event("at: 1h, cordon: n02"),
       ":5: 'cordon' of an event is n02, which is no node; use one of n00 to n01"},
      {Event("at: 1h, fail: n00"), ":5: an event has no 'for'; add it, for example for: 10m"},
      {Event("at: 1h, fail: n00, for: 0"),
       ":5: 'for' of an event is 0; write a duration of at least 1ms"},
      {Event("at: 1h, cordon: n00, for: 1h"),
       ":5: 'for' of an event is only for 'fail'; remove it"},
      {Event("at: 1h, finish: b"), ":5: 'finish' of an event is b, which is no job; use one of a"},
      {Event("at: 52s, finish: a"),
       ":5: 'finish' of an event is a, which is submitted later, at 53s; raise 'at'"},
      {Event("at: 1h, priority: 5"),
       ":5: 'priority' of an event is 5; write a mapping with job, to"},
      {Event("at: 1h, priority: {job: a}"),
       ":5: 'priority' of an event has no 'to'; add it, for example to: 10000"},
      {Event("at: 1h, priority: {job: a, to: 0}"),
       ":5: 'to' of 'priority' of an event is 0; write a whole number from 1 to 10000"},
      {Event("at: -1h, finish: a"),
       ":5: 'at' of an event is -1h; write a duration of at least "
       "0ms"},
      {Event("at: 1h, cordn: n00"),
       ":5: an event has the unknown key 'cordn'; use at, cordon, "
       "uncordon, fail, for, priority, finish"},
  });
}

TEST(ScenarioErrorsTest, TooManyJobs) {
  std::string text = kNodes + "jobs:\n";
  for (int job = 0; job <= 100'000; ++job) text += "- {}\n";
  ExpectErrors({{text, ":100003: 'jobs' has 100001 items; write at most 100000"}});
}

TEST(ScenarioErrorsTest, TooManyValues) {
  std::string text = "a:\n";
  for (int line = 0; line < 1000; ++line) {
    text += "- [";
    for (int value = 0; value < 2000; ++value) text += "1,";
    text += "]\n";
  }
  ExpectErrors({{text, ":1001: there are more than 2000000 values; split the file"}});
}

TEST(ScenarioErrorsTest, TooManyTokens) {
  ExpectErrors({{"a:\n" + std::string(3'000'001, '['),
                 ":2: there are more than 3000000 brackets, braces and commas; split the file"}});
}

TEST(ScenarioErrorsTest, ManyLearnersNeedManyNodes) {
  ExpectErrors(
      {{"nodes:\n- {count: 3, gpus: 1}\n- {gpus: 2}\njobs:\n- {name: a, profile: small, "
        "batch: 32, min: 2, gpusPerLearner: 2}\n",
        ":5: job a needs 2 learners of 2 GPUs, and the nodes have room for 1: the largest "
        "has 2 GPUs; lower 'min', or add nodes"}});
}

}  // namespace
}  // namespace pliant::simulator
