#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "operator/controller/actions/job_table.h"
#include "tests/unit/controller/cluster_stores.h"
#include "tests/unit/controller/job_fixture.h"

// Jobs, pods and Services are created, changed, deleted and created again under the same names,
// while batches are in flight. The view that the table builds step by step must equal the view of a
// fresh table.
namespace pliant::controller {
namespace {

template <typename T>
void Put(kube::Store<T>& store, const T& object) {
  store.Put({.meta = {.key = {object.meta.name_space, object.meta.name},
                      .uid = object.meta.uid,
                      .resource_version = object.meta.resource_version},
             .value = std::make_shared<const T>(object)});
}

struct Cluster : OwnStores {
  JobTable table{all()};
};

constexpr const char* kTemplates[] = {
    R"({"spec":{"containers":[]}})",
    R"({"spec":{"containers":[{"name":"learner","resources":{"limits":{"memory":"64GB"}}}]}})",
    R"({"spec":{"nodeSelector":{"gpu":true}}})"};

class RandomCluster {
 public:
  explicit RandomCluster(unsigned seed) : random_(seed) {}

  void Step() {
    const int deed = Pick(20);
    if (deed < 2) MakeJob();
    if (deed == 2) EraseOne(cluster_.jobs);
    if (deed == 3) EditJob();
    if (deed >= 4 && deed < 8) ShowPod();
    if (deed == 8) EraseOne(cluster_.pods);
    if (deed == 9) ShowService();
    if (deed == 10) EraseOne(cluster_.services);
    if (deed == 11) ChangeOwner(cluster_.pods);
    if (deed == 12) ChangeOwner(cluster_.services);
    if (deed >= 13 && deed < 16) Begin();
    if (deed >= 16 && !batches_.empty()) Settle(std::next(batches_.begin(), Pick(batches_.size())));
    now_ += Pick(3);
    if (Pick(2) == 0) CheckJobs();
  }

  // Ends all batches, and looks up recent writes that no watch has shown.
  void Rest() {
    while (!batches_.empty()) Settle(batches_.begin());
    now_ += 61;
    LookForOverduePods();
    CheckJobs();
  }

  void CheckAll() {
    const JobTable::Views& views = cluster_.table.views();
    Cluster fresh;
    for (const auto& job : cluster_.jobs.All()) Put(fresh.jobs, *job);
    for (const auto& pod : cluster_.pods.All()) Put(fresh.pods, *pod);
    for (const auto& service : cluster_.services.All()) Put(fresh.services, *service);
    for (const auto& [key, want] : fresh.table.Refresh(At(now_))) {
      const JobView& view = views.at(key);
      EXPECT_EQ(*view.job, *want.job) << key.name;
      // Without an earlier template there are no needs to keep.
      if (want.needs) {
        ASSERT_TRUE(view.needs) << key.name;
        EXPECT_EQ(*view.needs, *want.needs) << key.name;
      }
      EXPECT_EQ(view.learners, want.learners) << key.name;
      EXPECT_EQ(view.coordinators, want.coordinators) << key.name;
      ASSERT_EQ(view.service != nullptr, want.service != nullptr) << key.name;
      if (view.service) {
        EXPECT_EQ(*view.service, *want.service) << key.name;
      }
      seen_ += view.learners.size() + view.coordinators.size() + (view.service ? 1 : 0);
    }
    cluster_.table.Refresh(At(now_));
    EXPECT_TRUE(cluster_.table.refreshed().empty()) << "nothing has changed since";
  }

  std::size_t seen() const { return seen_; }  // pods and Services compared so far

 private:
  int Pick(std::size_t count) { return static_cast<int>(random_() % count); }
  std::string NewVersion() { return std::to_string(++version_); }

  template <typename T>
  std::shared_ptr<const T> One(const kube::Store<T>& store) {
    const auto all = store.All();
    return all.empty() ? nullptr : all[static_cast<std::size_t>(Pick(all.size()))];
  }

  // The server has exactly what the stores show.
  void LookForOverduePods() {
    for (const auto& [key, view] : cluster_.table.Refresh(At(now_))) {
      Batch batch{.job = *view.job};
      BatchResult result;
      for (const std::string& name : view.overdue_pods) {
        const LookForPod look{.pod = name};
        batch.actions.emplace_back(look);
        if (const auto pod = cluster_.pods.Find({key.ns, name})) {
          result.found.push_back(*pod);
        } else {
          result.gone.push_back(look);
        }
      }
      cluster_.table.Begin(Shared(batch), At(now_));
      cluster_.table.Settle(batch, result, At(now_));
    }
  }

  // Checks that every stored job has a view, with the right uid.
  void CheckJobs() {
    const JobTable::Views& views = cluster_.table.Refresh(At(now_));
    std::map<kube::NamespacedName, std::string> seen, stored;
    for (const auto& [key, view] : views) seen[key] = view.job->meta.uid;
    for (const auto& job : cluster_.jobs.All()) {
      stored[{job->meta.name_space, job->meta.name}] = job->meta.uid;
    }
    EXPECT_EQ(seen, stored);
  }

  // Creates a job under one of three names; an existing one is replaced.
  void MakeJob() {
    api::ElasticTrainingJob job = NewJob();
    job.meta.name = Format("job-{}", Pick(3));
    job.meta.uid = Format("{:05}-uid", ++jobs_made_);
    job.meta.resource_version = NewVersion();
    if (Pick(8) == 0) SetTemplate(kTemplates[Pick(3)], job.spec);
    Put(cluster_.jobs, job);
    known_.push_back(job.meta);
  }

  void EditJob() {
    const auto old = One(cluster_.jobs);
    if (old == nullptr) return;
    api::ElasticTrainingJob job = *old;
    ++job.meta.generation;
    job.meta.resource_version = NewVersion();
    if (Pick(4) == 0) SetTemplate(kTemplates[Pick(3)], job.spec);
    Put(cluster_.jobs, job);
  }

  api::Pod PodOf(const api::ObjectMeta& job, int number, bool learner) {
    api::Pod pod = learner ? Learner(number, Life(Pick(5))) : Coordinator(number, Pick(2) == 0);
    pod.meta.name = learner ? LearnerPodName(job, number) : CoordinatorPodName(job, number);
    pod.meta.uid = "uid-" + pod.meta.name;
    pod.meta.owner_uid = job.uid;
    pod.meta.owner_name = job.name;
    pod.meta.labels[std::string(kLabelJobUid)] = job.uid;
    pod.meta.resource_version = NewVersion();
    return pod;
  }

  api::Service ServiceOf(const api::ObjectMeta& job) {
    api::Service service = ServiceFor(1);
    service.meta.name = CoordinatorName(job);
    service.meta.uid = "uid-" + service.meta.name;
    service.meta.owner_uid = job.uid;
    service.meta.owner_name = job.name;
    service.meta.resource_version = NewVersion();
    return service;
  }

  // May be a deleted job: the garbage collector takes its time.
  const api::ObjectMeta* OneKnown() {
    const auto stored = Pick(4) != 0 ? One(cluster_.jobs) : nullptr;
    if (stored != nullptr)
      return &*std::ranges::find(known_, stored->meta.uid, &api::ObjectMeta::uid);
    return known_.empty() ? nullptr : &known_[static_cast<std::size_t>(Pick(known_.size()))];
  }

  void ShowPod() {
    if (const api::ObjectMeta* job = OneKnown()) {
      Put(cluster_.pods, PodOf(*job, Pick(4), Pick(3) != 0));
    }
  }

  void ShowService() {
    if (const api::ObjectMeta* job = OneKnown()) Put(cluster_.services, ServiceOf(*job));
  }

  template <typename T>
  void ChangeOwner(kube::Store<T>& store) {
    const auto old = One(store);
    if (old == nullptr) return;
    T object = *old;
    const api::ObjectMeta owner = Pick(2) == 0 ? api::ObjectMeta{} : *OneKnown();
    object.meta.owner_uid = owner.uid;
    object.meta.owner_name = owner.name;
    object.meta.resource_version = NewVersion();
    Put(store, object);
  }

  template <typename T>
  void EraseOne(kube::Store<T>& store) {
    if (const auto object = One(store)) store.Erase({object->meta.name_space, object->meta.name});
  }

  // Begins a batch, one at a time per name, as in the planning loop.
  void Begin() {
    const JobTable::Views& views = cluster_.table.Refresh(At(now_));
    if (views.empty()) return;
    const auto view = std::next(views.begin(), Pick(views.size()));
    if (batches_.contains(view->first)) return;
    Batch batch{.job = *view->second.job, .write_status = Pick(2) == 0};
    batch.job.status.objects.next_learner = ++written_;
    const int number = 4 + Pick(3);
    batch.actions.emplace_back(CreateLearner{.number = number, .place = {"gpu-1"}});
    if (Pick(2) == 0) batch.actions.emplace_back(CreateCoordinator{.term = number});
    for (const api::Pod& pod : view->second.learners) {
      if (Pick(3) == 0) batch.actions.emplace_back(DeletePod{pod.meta.name, pod.meta.uid, {}, ""});
    }
    cluster_.table.Begin(Shared(batch), At(now_));
    batches_.emplace(view->first, std::move(batch));
  }

  // The watch shows the results before the batch ends, soon after, or never.
  void Settle(std::map<kube::NamespacedName, Batch>::iterator entry) {
    const Batch& batch = entry->second;
    const api::ObjectMeta& job = batch.job.meta;
    BatchResult result;
    const std::size_t done = static_cast<std::size_t>(Pick(batch.actions.size() + 1));
    if (done < batch.actions.size()) {
      result.error = Error{ErrorCode::kInvalid, "as it happens"};
      result.failed = done;
    }
    if (batch.write_status && Pick(4) != 0) {
      const auto stored = cluster_.jobs.Find(entry->first);
      result.job = batch.job;
      result.job->meta.resource_version = NewVersion();
      const bool shown = stored != nullptr && stored->meta.uid == job.uid &&
                         stored->meta.resource_version == job.resource_version;
      if (shown && Pick(2) == 0) Put(cluster_.jobs, *result.job);
    }
    if (Pick(4) == 0) result.service = ServiceOf(job);
    for (std::size_t i = 0; i < done; ++i) {
      if (const auto* create = std::get_if<CreateLearner>(&batch.actions[i])) {
        result.created.push_back(PodOf(job, create->number, true));
      } else if (const auto* term = std::get_if<CreateCoordinator>(&batch.actions[i])) {
        result.created.push_back(PodOf(job, static_cast<int>(term->term), false));
      } else if (const auto* end = std::get_if<DeletePod>(&batch.actions[i])) {
        result.deleted.push_back(end->pod);
      }
    }
    const bool early = Pick(3) == 0;
    if (early) Show(result);
    cluster_.table.Settle(batch, result, At(now_));
    if (!early && Pick(2) == 0) Show(result);
    batches_.erase(entry);
  }

  void Show(const BatchResult& result) {
    for (const api::Pod& pod : result.created) Put(cluster_.pods, pod);
    if (result.service) Put(cluster_.services, *result.service);
    for (const std::string& pod : result.deleted) cluster_.pods.Erase({"team-a", pod});
  }

  std::minstd_rand random_;
  Cluster cluster_;
  double now_ = 0;
  int version_ = 100;
  int jobs_made_ = 0;
  int written_ = 0;
  std::vector<api::ObjectMeta> known_;  // all jobs ever created
  std::map<kube::NamespacedName, Batch> batches_;
  std::size_t seen_ = 0;
};

TEST(JobTableRandom, AnIncrementalTableEqualsAFreshOne) {
  std::size_t seen = 0;
  for (unsigned seed = 1; seed <= 100 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomCluster cluster(seed);
    for (int rest = 0; rest < 5; ++rest) {
      for (int step = 0; step < 40; ++step) cluster.Step();
      cluster.Rest();
      cluster.CheckAll();
    }
    seen += cluster.seen();
  }
  EXPECT_GT(seen, 1000u);
}

}  // namespace
}  // namespace pliant::controller
