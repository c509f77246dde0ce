#include "operator/controller/actions/job_table.h"

#include <gtest/gtest.h>

#include "tests/unit/controller/cluster_stores.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

class JobTableTest : public testing::Test, protected OwnStores {
 protected:
  void Show(const api::ElasticTrainingJob& job) {
    jobs.Put({.meta = {.key = {job.meta.name_space, job.meta.name},
                       .uid = job.meta.uid,
                       .resource_version = job.meta.resource_version},
              .value = std::make_shared<const api::ElasticTrainingJob>(job)});
  }
  void Show(const api::Pod& pod) {
    pods.Put({.meta = {.key = {pod.meta.name_space, pod.meta.name},
                       .uid = pod.meta.uid,
                       .resource_version = pod.meta.resource_version},
              .value = std::make_shared<const api::Pod>(pod)});
  }
  void Show(const api::Service& service) {
    services.Put({.meta = {.key = {service.meta.name_space, service.meta.name},
                           .uid = service.meta.uid,
                           .resource_version = service.meta.resource_version},
                  .value = std::make_shared<const api::Service>(service)});
  }
  JobView View(double at = 0) { return table.Refresh(At(at)).at({"team-a", "digits"}); }

  Batch BatchOf(std::vector<Action> actions) {
    return {.job = *View().job, .actions = std::move(actions)};
  }

  JobTable table{all()};
};

TEST_F(JobTableTest, GathersWhatBelongsToAJob) {
  Show(AdmittedJob(2));
  Show(Learner(10, Life::kRunning));
  Show(Learner(9, Life::kRunning));
  Show(Coordinator(1));
  api::Pod stranger = Learner(3, Life::kRunning);
  stranger.meta.owner_uid = "another";
  Show(stranger);
  const JobView view = View();
  ASSERT_EQ(view.learners.size(), 2u);
  EXPECT_EQ(view.learners[0].meta.name, Name(9)) << "by number";
  EXPECT_EQ(view.coordinators.size(), 1u);
  EXPECT_EQ(view.needs->resources.gpus, 1);
}

TEST_F(JobTableTest, AJobWhoseQueueIsGoneStaysInItsPoolUnderANewLeader) {
  api::ElasticTrainingJob job = AdmittedJob(2);
  job.spec.queue = "gone";
  job.status.pool = "slices";
  Show(job);
  EXPECT_EQ(View().membership.pool, "slices");
}

// Anyone who may create a pod in some namespace can write the job's reference into it.
TEST_F(JobTableTest, APodOfAnotherNamespaceIsNone) {
  Show(AdmittedJob(1));
  View();
  api::Pod learner = Ended(Learner(0, Life::kRunning), 0, R"({"reason":"Completed"})");
  api::Pod coordinator = Coordinator(1);
  for (api::Pod* pod : {&learner, &coordinator}) {
    pod->meta.name_space = "evil";
    Show(*pod);
  }
  const JobView view = View(1);
  EXPECT_TRUE(table.refreshed().empty()) << "nor is the job refreshed";
  EXPECT_TRUE(view.learners.empty());
  EXPECT_TRUE(view.coordinators.empty());
}

// The living learners were made with the needs that could be read.
TEST_F(JobTableTest, ATemplateThatCannotBeReadLeavesTheNeedsAsTheyWere) {
  api::ElasticTrainingJob job = AdmittedJob(1);
  SetTemplate(
      R"({"spec":{"containers":[{"name":"learner","resources":{"requests":{"cpu":"2"}}}]}})",
      job.spec);
  Show(job);
  EXPECT_EQ(View().needs->resources.cpu_millis, 2000);
  SetTemplate(
      R"({"spec":{"containers":[{"name":"learner","resources":{"requests":{"cpu":"two"}}}]}})",
      job.spec);
  job.meta.generation = 2;
  job.meta.resource_version = "101";
  Show(job);
  EXPECT_EQ(View(1).needs->resources.cpu_millis, 2000);
  EXPECT_NE(View(1).job->spec.learner_template.error, "");
}

TEST_F(JobTableTest, ASpecThatIsNotUnderstoodLeavesTheJobAsItWas) {
  api::ElasticTrainingJob job = AdmittedJob(1);
  job.spec.priority_asked = job.spec.priority = 7;
  Show(job);
  EXPECT_EQ(View().unreadable, "");
  api::ElasticTrainingJob newer = job;
  newer.spec = {};
  newer.unreadable = "spec.priority: not a whole number";
  newer.meta.generation = 2;
  newer.meta.resource_version = "101";
  newer.status.progress.step = 12;
  Show(newer);
  const JobView view = View(1);
  EXPECT_EQ(view.unreadable, newer.unreadable);
  EXPECT_EQ(view.job->unreadable, "") << "the job continues";
  EXPECT_EQ(view.job->spec, job.spec);
  EXPECT_EQ(view.job->meta.generation, 1) << "decisions refer to that generation";
  EXPECT_EQ(view.job->meta.resource_version, "101") << "so that writes do not conflict";
  EXPECT_EQ(view.job->status.progress.step, 12);

  newer.unreadable = "spec.queue: not a string";
  newer.meta.resource_version = "102";
  Show(newer);
  EXPECT_EQ(View(2).job->spec, job.spec);
  job.meta.generation = 4;
  job.meta.resource_version = "103";
  Show(job);
  EXPECT_EQ(View(3).unreadable, "");
  EXPECT_EQ(View(3).job->meta.generation, 4);
}

TEST_F(JobTableTest, AJobThatWasNeverUnderstoodSaysSo) {
  api::ElasticTrainingJob job = NewJob();
  job.spec = {};
  job.unreadable = "spec.template: larger than 524288 bytes";
  Show(job);
  EXPECT_EQ(View().unreadable, job.unreadable);
  EXPECT_EQ(View().job->unreadable, job.unreadable);
}

TEST_F(JobTableTest, ACreationCountsFromItsOrderOn) {
  Show(AdmittedJob(0));
  const Batch batch = BatchOf({CreateLearner{.number = 4, .place = {"gpu-1"}}});
  table.Begin(Shared(batch), At(1));
  ASSERT_EQ(View(1).learners.size(), 1u);
  EXPECT_TRUE(IsGated(View(1).learners[0]));
  EXPECT_EQ(NodeOf(View(1).learners[0]), "gpu-1");
  EXPECT_EQ(View(1).learners[0].meta.uid, "");

  // The pod was created, but the watch has not shown it yet.
  table.Settle(batch, {.created = {Learner(4, Life::kGated)}}, At(2));
  EXPECT_EQ(View(3).learners[0].meta.uid, "uid-4");
  // The watch shows it, then its deletion.
  Show(Learner(4, Life::kRunning));
  EXPECT_TRUE(IsRunning(View(4).learners[0]));
  pods.Erase({"team-a", Name(4)});
  EXPECT_TRUE(View(5).learners.empty());
}

TEST_F(JobTableTest, ACreationThatFailedIsForgotten) {
  Show(AdmittedJob(0));
  const Batch batch = BatchOf({CreateLearner{.number = 4, .place = {"gpu-1"}}});
  table.Begin(Shared(batch), At(1));
  table.Settle(batch, {.error = Error{ErrorCode::kDenied, "quota"}}, At(2));
  EXPECT_TRUE(View(3).learners.empty());
}

TEST_F(JobTableTest, APodThatTheWatchNeverShowsCountsUntilTheServerSaysThatThereIsNone) {
  Show(AdmittedJob(0));
  const Batch batch = BatchOf({CreateLearner{.number = 4, .place = {"gpu-1"}}});
  table.Begin(Shared(batch), At(1));
  table.Settle(batch, {.created = {Learner(4, Life::kGated)}}, At(2));
  EXPECT_EQ(View(30).overdue_at, At(62)) << "only time makes it overdue";
  EXPECT_EQ(View(30).overdue_pods, std::vector<std::string>{});
  EXPECT_EQ(View(1000).overdue_pods, std::vector{Name(4)});
  EXPECT_EQ(View(1000).overdue_at, std::nullopt);
  EXPECT_EQ(View(1000).learners.size(), 1u);

  const LookForPod look{.pod = Name(4)};
  const Batch search = BatchOf({look});
  // The pod exists: the watch gets the same time again.
  table.Begin(Shared(search), At(1000));
  table.Settle(search, {.found = {Learner(4, Life::kRunning)}}, At(1001));
  EXPECT_EQ(View(1060).overdue_pods, std::vector<std::string>{});
  ASSERT_EQ(View(1060).learners.size(), 1u);
  EXPECT_TRUE(IsRunning(View(1060).learners[0]));
  // The pod does not exist.
  table.Begin(Shared(search), At(1070));
  table.Settle(search, {.gone = {look}}, At(1071));
  EXPECT_TRUE(View(1072).learners.empty());
}

TEST_F(JobTableTest, APodThatIsGoneAndStillShownStaysDeleted) {
  Show(AdmittedJob(1));
  Show(Learner(0, Life::kRunning));
  const Batch batch = BatchOf({DeletePod{.pod = Name(0), .uid = "uid-0"}});
  table.Begin(Shared(batch), At(1));
  table.Settle(batch, {.deleted = {Name(0)}}, At(2));
  EXPECT_EQ(View(70).overdue_pods, std::vector{Name(0)});
  const Batch search = BatchOf({LookForPod{.pod = Name(0)}});
  table.Begin(Shared(search), At(70));
  table.Settle(search, {.gone = {LookForPod{.pod = Name(0)}}}, At(71));
  EXPECT_EQ(View(72).overdue_pods, std::vector<std::string>{});
  ASSERT_EQ(View(72).learners.size(), 1u);
  EXPECT_TRUE(View(72).learners[0].deleting());
}

TEST_F(JobTableTest, APodThatWasFoundAndIsShownByNowNeedsNoMemory) {
  Show(AdmittedJob(1));
  Show(Learner(0, Life::kRunning));
  const Batch search = BatchOf({LookForPod{.pod = Name(0)}});
  table.Begin(Shared(search), At(1));
  table.Settle(search, {.found = {Learner(0, Life::kRunning)}}, At(2));
  EXPECT_EQ(View(3).overdue_at, std::nullopt);
}

TEST_F(JobTableTest, AnOpenedGateStaysOpenUntilTheWatchShowsIt) {
  Show(AdmittedJob(1));
  Show(Learner(0, Life::kGated));
  const Batch batch = BatchOf({OpenGate{.pod = Name(0), .uid = "uid-0", .resource_version = "7"}});
  table.Begin(Shared(batch), At(1));
  EXPECT_FALSE(IsGated(View(1).learners[0]));
  // Whatever the watch shows while the write is in flight.
  api::Pod touched = Learner(0, Life::kGated);
  touched.meta.resource_version = "8";
  Show(touched);
  EXPECT_FALSE(IsGated(View(2).learners[0]));
  // The write was conditional on version 7: it has failed.
  table.Settle(batch, {.error = Error{ErrorCode::kConflict, ""}}, At(3));
  EXPECT_TRUE(IsGated(View(3).learners[0]));
}

TEST_F(JobTableTest, ADeletionCountsUntilTheWatchShowsIt) {
  Show(AdmittedJob(1));
  Show(Learner(0, Life::kRunning));
  const Batch batch = BatchOf({DeletePod{.pod = Name(0), .uid = "uid-0"}});
  table.Begin(Shared(batch), At(1));
  EXPECT_TRUE(View(1).learners[0].deleting());
  table.Settle(batch, {.deleted = {Name(0)}}, At(2));
  EXPECT_TRUE(View(3).learners[0].deleting());
  pods.Erase({"team-a", Name(0)});
  EXPECT_TRUE(View(4).learners.empty());
}

TEST_F(JobTableTest, AWrittenStatusIsReadBackAtOnce) {
  Show(AdmittedJob(1));
  Batch batch = BatchOf({});
  batch.write_status = true;
  batch.job.status.objects.next_learner = 5;
  table.Begin(Shared(batch), At(1));
  EXPECT_EQ(View(1).job->status.objects.next_learner, 5);
  api::ElasticTrainingJob written = batch.job;
  written.meta.resource_version = "101";
  table.Settle(batch, {.job = written}, At(2));
  EXPECT_EQ(View(2).job->meta.resource_version, "101");
  written.meta.resource_version = "102";
  written.status.objects.next_learner = 6;
  Show(written);
  EXPECT_EQ(View(3).job->status.objects.next_learner, 6);
}

TEST_F(JobTableTest, LooksAgainOnlyAtJobsThatMayHaveChanged) {
  using Keys = std::set<kube::NamespacedName>;
  const kube::NamespacedName key{"team-a", "digits"};
  const auto refreshed = [&](double at) {
    table.Refresh(At(at));
    return table.refreshed();
  };
  Show(AdmittedJob(1));
  api::ElasticTrainingJob other = NewJob();
  other.meta.name = "other";
  other.meta.uid = "other";
  Show(other);
  EXPECT_EQ(refreshed(0), (Keys{key, {"team-a", "other"}}));
  EXPECT_EQ(refreshed(1), Keys{});

  Show(Learner(0, Life::kRunning));
  EXPECT_EQ(refreshed(2), Keys{key});
  table.SoftState(kUid).refusals.message = "quota";
  EXPECT_EQ(refreshed(3), Keys{key});
  EXPECT_EQ(View(3).soft_state.refusals.message, "quota");
  table.LookAt(kUid);
  EXPECT_EQ(refreshed(4), Keys{key});

  // The job is refreshed until the store has caught up, or never will.
  const Batch batch = BatchOf({CreateLearner{.number = 4, .place = {"gpu-1"}}});
  table.Begin(Shared(batch), At(5));
  EXPECT_EQ(refreshed(5), Keys{key});
  table.Settle(batch, {.created = {Learner(4, Life::kGated)}}, At(6));
  EXPECT_EQ(refreshed(7), Keys{key});
  EXPECT_EQ(refreshed(70), Keys{key});
  EXPECT_EQ(View(70).learners.size(), 2u);
  const LookForPod look{.pod = Name(4)};
  const Batch search = BatchOf({look});
  table.Begin(Shared(search), At(70));
  table.Settle(search, {.gone = {look}}, At(70));
  EXPECT_EQ(View(70).learners.size(), 1u);
  EXPECT_EQ(refreshed(71), Keys{});

  jobs.Erase(key);
  EXPECT_EQ(refreshed(72), Keys{key});
  EXPECT_FALSE(table.views().contains(key));
}

TEST_F(JobTableTest, AJobMadeAgainUnderItsNameIsAnotherOne) {
  Show(AdmittedJob(1));
  View();
  table.SoftState(kUid).refusals.message = "quota";
  jobs.Erase({"team-a", "digits"});
  api::ElasticTrainingJob again = NewJob();
  again.meta.uid = "again";
  Show(again);
  EXPECT_EQ(View(1).job->meta.uid, "again");
  EXPECT_EQ(View(1).soft_state, JobSoftState{});
}

TEST_F(JobTableTest, AWriteUnderWayIsNotTakenForTheNextJobOfThatName) {
  Show(AdmittedJob(1));
  Batch batch = BatchOf({});
  batch.write_status = true;
  batch.job.status.objects.next_learner = 5;
  table.Begin(Shared(batch), At(1));
  jobs.Erase({"team-a", "digits"});
  api::ElasticTrainingJob again = NewJob();
  again.meta.uid = "again";
  Show(again);
  EXPECT_EQ(*View(2).job, again);
  table.LookAt(kUid);
  EXPECT_EQ(*View(3).job, again) << "nothing of the old job is kept";
  batch.job.meta.resource_version = "101";
  table.Settle(batch, {.job = batch.job}, At(4));
  EXPECT_EQ(*View(4).job, again);
}

// The table keeps a written job and Service only as long as they exist. It takes new objects with
// the same names from the store as they are.
TEST_F(JobTableTest, ForgetsDeletedObjects) {
  const api::ElasticTrainingJob job = AdmittedJob(1);
  Show(job);
  Batch batch = BatchOf({});
  batch.write_status = true;
  table.Begin(Shared(batch), At(1));
  BatchResult result{.job = job, .service = ServiceFor(1), .created = {Learner(4, Life::kGated)}};
  result.job->meta.resource_version = "101";
  batch.actions = {CreateLearner{.number = 4, .place = {"gpu-1"}}};
  table.Settle(batch, result, At(2));
  EXPECT_EQ(View(2).job->meta.resource_version, "101");
  EXPECT_TRUE(View(2).service);
  EXPECT_EQ(View(2).learners.size(), 1u);
  const auto expect_as_stored = [&](double at) {
    const JobView view = View(at);
    EXPECT_EQ(view.job->meta.resource_version, "100");
    EXPECT_FALSE(view.service);
    EXPECT_TRUE(view.learners.empty());
  };
  jobs.Erase({"team-a", "digits"});
  Show(job);
  expect_as_stored(3);

  // The job is deleted while a batch is in flight.
  table.Begin(Shared(batch), At(4));
  jobs.Erase({"team-a", "digits"});
  table.Settle(batch, result, At(5));
  Show(job);
  expect_as_stored(6);

  table.Settle(batch, {.service = ServiceFor(1)}, At(7));
  EXPECT_TRUE(View(7).service);
  Show(ServiceFor(1));
  services.Erase({"team-a", ServiceFor(1).meta.name});
  EXPECT_FALSE(View(9).service);
}

TEST_F(JobTableTest, APodThatChangesItsOwnerIsNewsForBoth) {
  Show(AdmittedJob(1));
  api::Pod pod = Learner(0, Life::kRunning);
  Show(pod);
  Show(ServiceFor(1));
  EXPECT_EQ(View(1).learners.size(), 1u);
  pod.meta.owner_uid.clear();
  pod.meta.resource_version = "70";
  Show(pod);
  EXPECT_TRUE(View(2).learners.empty());
  api::Service service = ServiceFor(1);
  service.meta.owner_uid = "another";
  service.meta.resource_version = "71";
  Show(service);
  EXPECT_FALSE(View(3).service);
}

}  // namespace
}  // namespace pliant::controller
