// Actions of one tenant have no effect on the others.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "operator/controller/model/names.h"
#include "operator/controller/rounds/crash_notes.h"
#include "tests/simulation/operator/objects.h"
#include "tests/simulation/operator/sized_story.h"

namespace pliant::operator_sim {
namespace {

using namespace std::chrono_literals;

class Tenants : public SizedStory {
 protected:
  Tenants() : SizedStory(11) {}

  void TearDown() override {
    EXPECT_EQ(world.deaths(), deaths_expected) << "deaths of the operator\n" << world.Describe();
    SizedStory::TearDown();
  }

  Json Job(const std::string& name) const { return *world.server.Find(PathOf(name)); }

  // Stores a spec without validation, as if an earlier CRD had accepted it.
  void StoreSpec(const std::string& job, const Json& changes) {
    world.server.Change(PathOf(job), [&](Json& object) {
      object["spec"].merge_patch(changes);
      object["metadata"]["generation"] = object["metadata"].value("generation", 1) + 1;
    });
  }

  std::string ConditionOf(const std::string& job, const std::string& type) const {
    for (const Json& condition : world.Status(job).value("conditions", Json::array())) {
      if (condition.at("type") == type) return condition.at("reason");
    }
    return "";
  }

  int deaths_expected = 0;
};

TEST_F(Tenants, ATemplateThatCannotBeReadHarmsNobodyElse) {
  const Json kBad[] = {Json::parse(R"({"template": {"spec": {"containers": [
                        {"name": "learner", "resources": {"limits": {"memory": "64GB"}}}]}}})"),
                       Json::parse(R"({"template": {"spec": {"nodeSelector": {"gpu": true}}}})")};
  for (const Json& bad : kBad) {
    SCOPED_TRACE(bad.dump());
    Submit("one", 1, 4);
    Submit("two", 1, 8);
    ASSERT_TRUE(ReachLearners("one", 4) && ReachLearners("two", 4)) << world.Describe();
    // Stored while its learners leave.
    world.Edit("one", {{"suspend", true}});
    StoreSpec("one", bad);
    ASSERT_TRUE(ReachLearners("two", 8)) << world.Describe();
    world.Edit("one", {{"suspend", false}});
    ASSERT_TRUE(
        world.RunUntil([&] { return ConditionOf("one", "Admitted") == "InvalidTemplate"; }, 1min));
    for (const char* job : {"one", "two"}) world.Delete(job);
    ASSERT_TRUE(world.RunUntil([&] { return world.PodsOf("", "learner").empty(); }, 2min));
  }
}

// No operator sees that the job was suspended in between.
TEST_F(Tenants, ATemplateThatIsChangedWhileNobodyLeadsIsCheckedAgain) {
  Submit("one", 2, 8);
  ASSERT_TRUE(ReachLearners("one", 8)) << world.Describe();
  const std::vector<std::string> former = world.PodsOf("one", "learner");
  for (const std::size_t replica : {0, 1}) world.Kill(replica);
  deaths_expected = 2;
  world.Edit("one", {{"suspend", true}});
  world.Edit(
      "one",
      Json::parse(
          R"({"template": {"spec": {"containers": [{"name": "learner", "image": "new"}]}}})"));
  world.Edit("one", {{"suspend", false}});
  const auto all_are_new = [&] {
    for (const std::string& path : former) {
      if (world.cluster.Runs(path)) return false;
    }
    const auto learners = world.PodsOf("one", "learner");
    for (const std::string& path : learners) {
      const auto pod = world.server.Find(path);
      const Json& container = pod->at("/spec/containers/0"_json_pointer);
      if (container.at("image") != "new") return false;
    }
    return learners.size() == 8;
  };
  EXPECT_TRUE(world.RunUntil(all_are_new, 5min)) << world.Describe();
  EXPECT_TRUE(ReachLearners("one", 8));
}

TEST_F(Tenants, AJobThatIsNotUnderstoodTrainsOnAsItWas) {
  Submit("one", 1, 4);
  Submit("two", 1, 8);
  ASSERT_TRUE(ReachLearners("one", 4) && ReachLearners("two", 4));
  StoreSpec("one", {{"priority", "high"}});
  ASSERT_TRUE(
      world.RunUntil([&] { return ConditionOf("one", "Readable") == "NotUnderstood"; }, 1min));
  world.loop.RunFor(5min);
  EXPECT_EQ(world.Status("one").value("learners", 0), 4);
  EXPECT_EQ(world.Phase("one"), "Running");

  const int before = world.writes_besides_lease();
  world.loop.RunFor(10min);
  EXPECT_LT(world.writes_besides_lease() - before, 80) << "only statistics of two jobs are written";
  StoreSpec("one", {{"priority", 5000}});
  EXPECT_TRUE(world.RunUntil([&] { return ConditionOf("one", "Readable") == "Understood"; }, 1min));
}

TEST_F(Tenants, ADaemonSetThatFitsNoNodeTakesNoRoom) {
  world.CreateDaemonSet("evil", "phantom", 1000);
  Submit("good", 2, 8);
  ASSERT_TRUE(ReachLearners("good", 8, 1min)) << world.Describe();
  world.loop.RunFor(5min);
  EXPECT_EQ(world.Status("good").value("resizes", -1), 0);
  world.cluster.EndProgram(world.PodsOf("good", "learner").front(), 1, Json());
  ASSERT_TRUE(world.RunUntil([&] { return world.Status("good").value("restarts", 0) == 1; }, 1min));
  EXPECT_TRUE(ReachLearners("good", 8)) << world.Describe();
}

// Makes the file that `deaths` processes leave when they die while they process `job`.
std::unique_ptr<controller::CrashNotes> NotesOfDeathsAt(const api::ObjectMeta& job, int deaths) {
  const std::string file = testing::TempDir() + "/crash-notes";
  std::remove(file.c_str());
  for (int death = 0; death < deaths; ++death) {
    const auto notes = controller::CrashNotes::Open(file);
    EXPECT_TRUE(notes) << notes.error();
    // A dying process does not clear its mark.
    alignas(
        controller::CrashNotes::Mark) static std::byte kept[sizeof(controller::CrashNotes::Mark)];
    new (kept) controller::CrashNotes::Mark(controller::CrashNotes::BusyWith(notes->get(), job));
  }
  auto notes = controller::CrashNotes::Open(file);
  EXPECT_TRUE(notes) << notes.error();
  return *std::move(notes);
}

TEST_F(Tenants, AJobAtWhichTheOperatorDiedTwiceIsLeftAlone) {
  Submit("deadly", 1, 4);
  Submit("good", 1, 4);
  ASSERT_TRUE(ReachLearners("deadly", 4) && ReachLearners("good", 4));
  const api::ObjectMeta deadly = *api::DecodeMeta(Job("deadly"), "pliant.dev/");
  const auto notes = NotesOfDeathsAt(deadly, 2);
  world.crash_notes = notes.get();
  for (const std::size_t replica : {0, 1}) world.Kill(replica);
  deaths_expected = 2;

  ASSERT_TRUE(
      world.RunUntil([&] { return ConditionOf("deadly", "Quarantined") == "OperatorDied"; }, 2min))
      << world.Describe();
  world.Edit("good", {{"elastic", {{"maxLearners", 8}}}});
  world.loop.RunFor(2min);
  EXPECT_EQ(world.PodsOf("deadly", "learner").size(), 4u) << "it continues to train";
  EXPECT_EQ(world.Status("good").value("desiredLearners", 0), 4)
      << "its GPUs are not given to another job";
  world.cluster.EndProgram(world.PodsOf("good", "learner").front(), 1, Json());
  EXPECT_TRUE(world.RunUntil([&] { return world.Status("good").value("restarts", 0) == 1; }, 1min));
  EXPECT_TRUE(ReachLearners("good", 4)) << world.Describe();

  world.Edit("deadly", {{"priority", 1}});
  ASSERT_TRUE(
      world.RunUntil([&] { return ConditionOf("deadly", "Quarantined") == "LookedAfter"; }, 1min));
  EXPECT_TRUE(ReachLearners("good", 7)) << world.Describe();
}

// As if its owner had removed the image, or the network policy that admits the operator.
TEST_F(Tenants, ACoordinatorThatNeverComesKeepsNoGpus) {
  TrainingOptions training = kLong;
  training.has_no_coordinator = true;
  world.Submit("headless", training,
               {{"elastic", {{"maxLearners", 8}}}, {"startTimeoutSeconds", 120}});
  ASSERT_TRUE(
      world.RunUntil([&] { return world.PodsOf("headless", "learner").size() == 8; }, 1min));
  Submit("good", 8, 8);
  EXPECT_TRUE(ReachLearners("good", 8, 5min)) << world.Describe();
  world.Edit("headless", {{"suspend", true}});
  EXPECT_TRUE(world.RunUntil([&] { return world.PodsOf("headless", "learner").empty(); }, 3min));
}

// The job trained, and then its owner cut the coordinator off.
TEST_F(Tenants, LearnersThatCannotBeAskedToLeaveAreDeleted) {
  Submit("cut", 1, 8);
  ASSERT_TRUE(ReachLearners("cut", 8));
  world.coordinators_cut = true;
  world.loop.RunFor(10s);
  Submit("good", 4, 4);
  EXPECT_TRUE(world.RunUntil([&] { return world.PodsOf("cut", "learner").size() == 4; }, 5min))
      << world.Describe();
  world.coordinators_cut = false;
  EXPECT_TRUE(ReachLearners("good", 4)) << world.Describe();
  EXPECT_TRUE(ReachLearners("cut", 4)) << world.Describe();
}

TEST_F(Tenants, ACoordinatorThatRefusesEveryPlanCostsLittleAndIsReplaced) {
  TrainingOptions training = kLong;
  training.refuses_plans = true;
  world.Submit("mute", training, {{"elastic", {{"maxLearners", 4}}}});
  ASSERT_TRUE(world.RunUntil([&] { return world.PodsOf("mute", "learner").size() == 4; }, 2min));
  world.loop.RunFor(20s);
  const int refused = world.trainings.plans_refused;
  EXPECT_TRUE(world.RunUntil(
      [&] { return ConditionOf("mute", "Progressing") == "CoordinatorUnreachable"; }, 100s))
      << world.Describe();
  world.loop.RunFor(100s);
  EXPECT_LT(world.trainings.plans_refused - refused, 60);
  EXPECT_TRUE(
      world.RunUntil([&] { return world.Status("mute").value("coordinatorTerm", 0) > 1; }, 5min));
  Submit("good", 8, 8);
  EXPECT_TRUE(ReachLearners("good", 8, 5min)) << world.Describe();
}

TEST_F(Tenants, ACoordinatorThatTellsSomethingElseEachTimeIsWrittenOfSeldom) {
  TrainingOptions training = kLong;
  training.flaps = true;
  world.Submit("flapping", training, {{"elastic", {{"maxLearners", 4}}}});
  ASSERT_TRUE(
      world.RunUntil([&] { return world.PodsOf("flapping", "learner").size() == 4; }, 2min));
  world.loop.RunFor(3min);
  const int before = world.writes_besides_lease();
  world.loop.RunFor(10min);
  EXPECT_LT(world.writes_besides_lease() - before, 330) << "about one write in two seconds";
  Submit("good", 4, 4);
  EXPECT_TRUE(ReachLearners("good", 4)) << world.Describe();
}

// A cluster has only a few thousand Service addresses.
TEST_F(Tenants, AJobThatHasEndedKeepsNoAddressAndNoKeys) {
  const auto left_of = [&](const char* kind) {
    return world.server.All(Format("/api/v1/namespaces/team-a/{}", kind)).size();
  };
  TrainingOptions training;
  training.steps = 20;
  world.Submit("short", training, {{"elastic", {{"maxLearners", 2}}}});
  world.Submit("wrong", {.exit_code = 2}, {{"elastic", {{"maxLearners", 2}}}});
  ASSERT_TRUE(
      world.RunUntil([&] { return left_of("services") == 2 && left_of("secrets") == 4; }, 1min))
      << left_of("services") << " Services, " << left_of("secrets") << " Secrets";
  ASSERT_TRUE(world.RunUntil(
      [&] { return world.Phase("short") == "Succeeded" && world.Phase("wrong") == "Failed"; },
      5min));
  EXPECT_TRUE(world.RunUntil([&] { return left_of("services") == 0; }, 1min)) << world.Describe();
  EXPECT_TRUE(world.RunUntil([&] { return left_of("secrets") == 0; }, 1min));
}

// Seen: a job suspended and resumed every few seconds made its neighbor create 80 pods in 90 s.
TEST_F(Tenants, AJobThatIsSuspendedAndResumedAgainAndAgainHardlyMovesItsNeighbor) {
  Submit("restless", 1, 8);
  Submit("calm", 1, 8);
  ASSERT_TRUE(ReachLearners("restless", 4) && ReachLearners("calm", 4)) << world.Describe();
  world.loop.RunFor(40s);
  const std::int64_t before = Job("calm").at("/status/nextLearner"_json_pointer);
  for (int flip = 0; flip < 12; ++flip) {
    world.Edit("restless", {{"suspend", flip % 2 == 0}});
    world.loop.RunFor(3s);
    EXPECT_GE(world.Learners("calm"), 4);
  }
  const std::int64_t after = Job("calm").at("/status/nextLearner"_json_pointer);
  EXPECT_LE(after - before, 20) << world.Describe();
  world.Edit("restless", {{"suspend", false}});
  EXPECT_TRUE(ReachLearners("restless", 4) && ReachLearners("calm", 4)) << world.Describe();
}

TEST_F(Tenants, JobsOfOneNamespaceShareItsQuota) {
  world.SetQuota(4);
  Submit("q1", 1, 4);
  ASSERT_TRUE(ReachLearners("q1", 4)) << world.Describe();
  Submit("q2", 1, 4);
  EXPECT_TRUE(ReachLearners("q1", 2) && ReachLearners("q2", 2)) << world.Describe();
  EXPECT_EQ(ConditionOf("q2", "Admitted"), "Admitted");

  Submit("large", 5, 8);
  world.loop.RunFor(1min);
  EXPECT_EQ(world.Phase("large"), "Queued");
  EXPECT_EQ(world.Status("large").value("reason", ""),
            "waits for 5 GPUs (minLearners 5): the ResourceQuotas of namespace team-a leave its "
            "jobs 4 GPUs");
  world.SetQuota({});
  EXPECT_TRUE(world.RunUntil([&] { return world.Phase("large") == "Running"; }, 3min))
      << world.Describe();
}

// The role `edit` in a namespace allows its holder to create any pod there.
struct Forgery {
  const char* what;
  std::function<void(Json& pod, const std::string& uid)> change;
};

TEST_F(Tenants, PodsOfAnotherNamespaceAreNotTheJobs) {
  Submit("victim", 1, 8);
  ASSERT_TRUE(ReachLearners("victim", 8));
  const std::string uid = UidOf(Job("victim"));
  const std::string name = Format("victim-{}-", uid.substr(0, 5));
  const Json completed = Json::parse(R"([{"name": "learner", "state": {"terminated": {"exitCode": 0,
      "message": "{\"reason\":\"Completed\",\"parametersSha256\":\"0000deadbeef\"}"}}}])");
  const Json failed = Json::parse(
      R"([{"name": "learner", "state": {"terminated": {"exitCode": 2, "message": ""}}}])");
  const Forgery kForgeries[] = {
      {"a learner that has completed, of an owner of no kind",
       [&](Json& pod, const std::string&) {
         pod["metadata"]["ownerReferences"][0]["kind"] = "X";
         pod["status"] = {{"phase", "Succeeded"}, {"containerStatuses", completed}};
       }},
      {"a learner that has completed",
       [&](Json& pod, const std::string&) {
         pod["status"] = {{"phase", "Succeeded"}, {"containerStatuses", completed}};
       }},
      {"a learner that failed permanently",
       [&](Json& pod, const std::string&) {
         pod["status"] = {{"phase", "Failed"}, {"containerStatuses", failed}};
       }},
      {"a learner of the greatest number",
       [&](Json& pod, const std::string&) {
         pod["metadata"]["labels"]["pliant.dev/learner"] = "2147483647";
         pod["metadata"]["name"] = name + "2147483647";
         pod["status"] = {{"phase", "Failed"}, {"containerStatuses", failed}};
       }},
      {"a coordinator of the present term",
       [&](Json& pod, const std::string&) {
         pod["metadata"]["labels"]["pliant.dev/role"] = "coordinator";
         pod["metadata"]["labels"]["pliant.dev/term"] = "1";
         pod["metadata"]["name"] = name + "coordinator-1";
         pod["status"] = {
             {"phase", "Running"},
             {"podIP", "10.9.9.9"},
             {"containerStatuses",
              Json::array({{{"name", "coordinator"}, {"state", {{"running", Json::object()}}}}})}};
       }},
  };
  const Json before = world.Status("victim");
  for (const Forgery& forgery : kForgeries) {
    Json pod = {
        {"metadata",
         {{"namespace", "evil"},
          {"name", name + "0"},
          {"labels",
           {{"pliant.dev/job", "victim"},
            {"pliant.dev/job-uid", uid},
            {"pliant.dev/role", "learner"},
            {"pliant.dev/learner", "0"}}},
          {"ownerReferences", Json::array({{{"apiVersion", controller::kJobApiVersion},
                                            {"kind", controller::kJobKind},
                                            {"name", "victim"},
                                            {"uid", uid},
                                            {"controller", true}}})}}},
        {"spec", {{"nodeName", "node-0"}, {"containers", Json::array({{{"name", "learner"}}})}}}};
    forgery.change(pod, uid);
    const std::string path =
        Format("/api/v1/namespaces/evil/pods/{}", pod["metadata"]["name"].get<std::string>());
    world.server.Put(path, pod);
    world.loop.RunFor(2min);
    SCOPED_TRACE(forgery.what);
    const Json status = world.Status("victim");
    EXPECT_EQ(status.value("phase", ""), "Running") << world.Describe();
    EXPECT_EQ(status.value("learners", 0), 8);
    EXPECT_EQ(status.value("parametersSha256", ""), "");
    for (const char* same : {"nextLearner", "coordinatorTerm", "restarts", "resizes"}) {
      EXPECT_EQ(status.value(same, -1), before.value(same, -1)) << same;
    }
    world.server.Remove(path);
  }
}

class Leftovers : public Tenants {
 protected:
  // Paths of all objects whose labels name this job.
  std::vector<std::string> ObjectsOf(const std::string& uid) const {
    std::vector<std::string> paths;
    for (const char* kind : {"pods", "services", "secrets"}) {
      for (const auto& [path, object] : world.server.All(Format("/api/v1/{}", kind))) {
        if (LabelOf(*object, controller::kLabelJobUid) == uid) paths.push_back(path);
      }
    }
    return paths;
  }
  bool HoldsGpus(const std::string& uid) const {
    return std::ranges::any_of(world.server.All(kPods), [&](const auto& entry) {
      return LabelOf(*entry.second, controller::kLabelJobUid) == uid && !HasEnded(*entry.second);
    });
  }
};

TEST_F(Leftovers, ObjectsOfAnOrphanedJobAreDeleted) {
  Submit("one", 1, 8);
  ASSERT_TRUE(ReachLearners("one", 8));
  const std::string uid = UidOf(Job("one"));
  world.DeleteAndOrphan("one");
  ASSERT_TRUE(world.RunUntil([&] { return world.Jobs().empty(); }, 1min));
  // Another job of the name adopts nothing.
  Submit("one", 8, 8);
  world.loop.RunFor(1min);
  EXPECT_TRUE(HoldsGpus(uid)) << "the server must say twice that the job is gone";
  EXPECT_EQ(world.Phase("one"), "Queued");
  EXPECT_TRUE(
      world.leader()->Metrics().contains("pliant_orphaned_gpus{job_namespace=\"team-a\"} 8"));
  EXPECT_TRUE(world.RunUntil([&] { return !HoldsGpus(uid); }, 4min)) << world.Describe();
  EXPECT_TRUE(ReachLearners("one", 8)) << world.Describe();
  EXPECT_TRUE(world.RunUntil([&] { return ObjectsOf(uid).empty(); }, 1min)) << world.Describe();
  EXPECT_FALSE(world.leader()->Metrics().contains("pliant_orphaned_gpus{"));
}

// The operator may be killed between the two looks.
TEST_F(Leftovers, OrphansGoAlsoIfTheOperatorIsKilled) {
  Submit("one", 1, 8);
  ASSERT_TRUE(ReachLearners("one", 8));
  const std::string uid = UidOf(Job("one"));
  world.DeleteAndOrphan("one");
  world.loop.RunFor(1min);
  world.KillOperator();
  deaths_expected = 2;
  EXPECT_TRUE(world.RunUntil([&] { return ObjectsOf(uid).empty(); }, 4min)) << world.Describe();
}

TEST_F(Leftovers, AJobThatAFinalizerHoldsGivesItsGpusBack) {
  Submit("one", 1, 8);
  ASSERT_TRUE(ReachLearners("one", 8));
  const std::string uid = UidOf(Job("one"));
  world.Hold("one");
  world.Delete("one");
  EXPECT_TRUE(world.RunUntil([&] { return world.Phase("one") == "Terminating"; }, 10s));
  Submit("two", 8, 8);
  EXPECT_TRUE(ReachLearners("two", 8, 1min)) << world.Describe();
  EXPECT_TRUE(world.RunUntil([&] { return ObjectsOf(uid).empty(); }, 2min)) << world.Describe();
  EXPECT_EQ(world.Status("one").value("reason", ""),
            "being deleted: nothing of it runs, a finalizer keeps the object");
  EXPECT_EQ(world.Status("one").value("restarts", 0), 0);
  EXPECT_TRUE(std::ranges::contains(world.events, "one: Terminating"));
  const int before = world.Writes();
  world.loop.RunFor(2min);
  EXPECT_LE(world.Writes() - before, 6) << "only statistics of the other job are written";
  world.LetGo("one");
  EXPECT_TRUE(world.RunUntil([&] { return world.Jobs().size() == 1; }, 10s));
}

TEST_F(Leftovers, PodsThatFitNoNodeAreInNobodysWay) {
  world.Apply(controller::kGpuPools, "default", {{"yieldToPending", true}});
  world.CreateFatPods("evil", "fat", 6, 2048);
  Submit("good", 2, 8);
  ASSERT_TRUE(ReachLearners("good", 8)) << world.Describe();
  world.loop.RunFor(5min);
  EXPECT_EQ(world.Status("good").value("resizes", -1), 0);
}

// A later version may have ended it.
TEST_F(Tenants, AJobWithAStatusOfTheFutureIsLeftAlone) {
  Submit("future", 1, 4);
  Submit("good", 1, 8);
  ASSERT_TRUE(ReachLearners("future", 4) && ReachLearners("good", 4));
  const auto set_phase = [&](const char* phase) {
    world.server.Change(PathOf("future"), [&](Json& job) {
      job["status"]["phase"] = phase;
      job["status"]["speeds"] = Json::array({{{"learners", 1 << 20}}});
    });
  };
  set_phase("Hibernating");
  for (const bool restarted : {false, true}) {
    if (restarted) world.KillOperator();
    ASSERT_TRUE(world.RunUntil(
        [&] { return ConditionOf("future", "Readable") == "StatusNotUnderstood"; }, 2min));
    world.loop.RunFor(3min);
    EXPECT_EQ(world.Phase("future"), "Hibernating");
    EXPECT_EQ(world.PodsOf("future", "learner").size(), 4u) << "it continues to train";
    EXPECT_EQ(world.Learners("good"), 4) << "its GPUs are not given to another job";
  }
  deaths_expected = 2;
  world.server.Change(PathOf("future"), [&](Json& job) {
    job["status"]["phase"] = "Running";
    job["status"].erase("speeds");
  });
  EXPECT_TRUE(
      world.RunUntil([&] { return ConditionOf("future", "Readable") == "Understood"; }, 1min));
  world.Edit("future", {{"suspend", true}});
  EXPECT_TRUE(ReachLearners("good", 8)) << world.Describe();
}

// Somebody deletes it while no operator runs: leaders count from the beginning.
TEST_F(Tenants, ADeletedLeaseStopsNoJob) {
  Submit("one", 1, 4);
  ASSERT_TRUE(ReachLearners("one", 4));
  world.KillOperator();
  // The coordinator gets a plan of the next leader.
  world.Edit("one", {{"elastic", {{"maxLearners", 6}}}});
  ASSERT_TRUE(ReachLearners("one", 6)) << world.Describe();
  world.KillOperator();
  deaths_expected = 4;
  world.server.Remove(
      "/apis/coordination.k8s.io/v1/namespaces/pliant-system/leases/pliant-operator");
  world.Edit("one", {{"elastic", {{"maxLearners", 8}}}});
  EXPECT_TRUE(ReachLearners("one", 8)) << world.Describe();
  EXPECT_EQ(world.Term("one"), 1);
}

TEST_F(Tenants, ACoordinatorThatInventsALeaderIsReplacedRarely) {
  TrainingOptions training = kLong;
  training.invents_a_leader = true;
  world.Submit("liar", training, {{"elastic", {{"maxLearners", 4}}}});
  Submit("good", 1, 8);
  EXPECT_TRUE(world.RunUntil([&] { return world.Term("liar") > 1; }, 2min)) << world.Describe();
  EXPECT_TRUE(world.ReachEvent("liar: CoordinatorReplaced"));
  EXPECT_TRUE(world.ReachEvent("liar: PlanRefused"));
  world.loop.RunFor(30min);
  EXPECT_LE(world.Term("liar"), 6 + 15 + 1) << "once in two minutes after the sixth";
  EXPECT_GE(world.Term("liar"), 10);
  world.Edit("liar", {{"suspend", true}});
  EXPECT_TRUE(ReachLearners("good", 8)) << world.Describe();
}

}  // namespace
}  // namespace pliant::operator_sim
