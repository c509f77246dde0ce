#include "operator/controller/rounds/queue_reporter.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "base/sim_event_loop.h"
#include "tests/kube/scripted_transport.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

class QueueReporterTest : public testing::Test {
 protected:
  QueueReporterTest() {
    queue_.meta = {.name = "q", .uid = "uid-q", .generation = 1};
    Show({});
  }

  // The store shows the queue with this status.
  void Show(api::TrainingQueueStatus status) {
    queue_.status = std::move(status);
    book_.SetQueue("q", std::make_shared<const api::TrainingQueue>(queue_));
  }
  void Answer(int code) {
    server_.Answer(kube::HttpMethod::kPatch, kPath,
                   kube::HttpResponse{.status = code, .headers = {}, .body = "{}"});
  }
  std::optional<api::WallTime> Report(double at) {
    const planner::Plan plan{.queues = {share_}};
    const auto again = reporter_->Report({book_view_, plan}, At(at));
    loop_.RunFor(std::chrono::milliseconds(1));
    return again;
  }
  // Statuses that were written so far.
  std::size_t writes() const { return server_.requests().size(); }
  void ShowWritten() {
    const planner::Plan plan{.queues = {share_}};
    Show(StatusOf(queue_, {book_view_, plan}, At(0)));
  }

  static constexpr const char* kPath = "/apis/pliant.dev/v1alpha1/trainingqueues/q/status";
  api::TrainingQueue queue_;
  planner::QueueShare share_{.queue = "q", .entitled = 4, .allocated = 4};
  QueueBook book_;
  planner::ClusterSnapshot book_view_{.pools = {{}}};
  SimEventLoop loop_;
  kube::ScriptedTransport server_;
  kube::KubeClient client_{server_, kube::Config{.server = "https://a"}};
  const StatusWriter writer_{client_};
  int rounds_ = 0;
  std::vector<std::string> events_;
  std::unique_ptr<QueueReporter> reporter_ = std::make_unique<QueueReporter>(QueueReporterParts{
      .loop = loop_,
      .book = book_,
      .writer = writer_,
      .api_calls = [this](auto task) { loop_.Post(std::move(task)); },
      .request_round = [this] { ++rounds_; },
      .on_event =
          [this](const kube::ResourceType& type, const api::ObjectMeta& object,
                 const ObjectEvent& event) {
            events_.push_back(Format("{} {}: {}", type.kind, object.name, event.reason));
          }});
};

TEST_F(QueueReporterTest, WritesANewQueueAtOnceAndThenOnlyWhatChanges) {
  Answer(200);
  EXPECT_EQ(Report(0), std::nullopt);
  ASSERT_EQ(writes(), 1u);
  EXPECT_EQ(rounds_, 1) << "what came meanwhile is looked at";
  ShowWritten();
  EXPECT_EQ(Report(100), std::nullopt);
  EXPECT_EQ(writes(), 1u);
}

TEST_F(QueueReporterTest, WritesNumbersRarelyAndNewsSoon) {
  Answer(200);
  Report(0);
  ShowWritten();
  share_.allocated = 3;
  EXPECT_EQ(Report(1), At(30));
  EXPECT_EQ(writes(), 1u);
  share_.entitled = 3;
  EXPECT_EQ(Report(1), At(2));
  Answer(200);
  EXPECT_EQ(Report(2), std::nullopt);
  EXPECT_EQ(writes(), 2u);
}

TEST_F(QueueReporterTest, AFailedWriteIsTriedAgainLater) {
  Answer(500);
  Report(0);
  EXPECT_EQ(writes(), 1u);
  EXPECT_EQ(Report(3), At(30));
  Answer(200);
  EXPECT_EQ(Report(30), std::nullopt);
  EXPECT_EQ(writes(), 2u);
}

// Another leader may have written it: only the one whose write succeeds tells it.
TEST_F(QueueReporterTest, TellsWhatItHasWrittenOnce) {
  queue_.spec.stop = api::QueueStop::kHold;
  Show({});
  Answer(409);
  Report(0);
  EXPECT_TRUE(events_.empty());
  Answer(200);
  Report(30);
  EXPECT_EQ(events_, std::vector<std::string>{"TrainingQueue q: Held"});
  ShowWritten();
  Report(90);
  EXPECT_EQ(events_.size(), 1u);
}

TEST_F(QueueReporterTest, AnAnswerAfterItsEndIsIgnored) {
  Answer(200);
  const planner::Plan plan{.queues = {share_}};
  reporter_->Report({book_view_, plan}, At(0));
  reporter_.reset();
  loop_.RunFor(std::chrono::milliseconds(1));
  EXPECT_EQ(rounds_, 0);
}

}  // namespace
}  // namespace pliant::controller
