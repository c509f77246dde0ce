#include "operator/controller/action_runner.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/kube/config.h"
#include "operator/kube/fake_http_transport.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using kube::HttpMethod;
using kube::HttpResponse;
using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kPodsPath = "/api/v1/namespaces/team-a/pods";

// An HTTP library may send a write twice (http_transport.h): the second is told that the name is
// taken, by what the first one made.
class SentTwiceTest : public testing::Test {
 protected:
  struct SentCase {
    Action action;
    std::string pod;
  };

  // The server has the pod, which belongs to `owner_uid`.
  BatchResult Run(const SentCase& sent, const std::string& owner_uid) {
    server_.Answer(HttpMethod::kPost, kPodsPath,
                   HttpResponse{.status = 409,
                                .headers = {},
                                .body = R"({"kind": "Status", "status": "Failure", "code": 409,
                                            "reason": "AlreadyExists", "message": "taken"})"});
    json owner = {{"apiVersion", kJobApiVersion},
                  {"kind", kJobKind},
                  {"name", "digits"},
                  {"controller", true},
                  {"uid", owner_uid}};
    json metadata = {{"namespace", "team-a"},
                     {"name", sent.pod},
                     {"uid", "uid-of-the-first"},
                     {"resourceVersion", "7"},
                     {"ownerReferences", json::array()}};
    metadata["ownerReferences"].push_back(owner);
    json pod;
    pod["metadata"] = metadata;
    server_.Answer(HttpMethod::kGet, std::string(kPodsPath) + "/" + sent.pod,
                   HttpResponse{.status = 200, .headers = {}, .body = pod.dump()});
    Batch batch{.job = job_};
    batch.actions.push_back(sent.action);
    return runner_.Run(batch);
  }

  const api::ElasticTrainingJob job_ = AdmittedJob(1);
  const std::vector<SentCase> cases_ = {
      {CreateLearner{.number = 0, .node = "gpu-1", .coordinator_ip = "10.0.0.1"},
       LearnerPodName(job_.meta, 0)},
      {CreateCoordinator{.term = 1}, CoordinatorPodName(job_.meta, 1)}};
  kube::FakeHttpTransport server_;
  kube::KubeClient client_{server_, kube::Config{.server = "https://a"}};
  const ActionRunner runner_{client_, PodDefaults{}, MasterKeys{}};
};

TEST_F(SentTwiceTest, ThePodThatIsThereAlreadyIsTheOneThatWasMade) {
  for (const SentCase& sent : cases_) {
    const BatchResult result = Run(sent, kUid);
    ASSERT_FALSE(result.error) << result.error->message;
    ASSERT_EQ(result.created.size(), 1u);
    EXPECT_EQ(result.created[0].meta.name, sent.pod);
    EXPECT_EQ(result.created[0].meta.uid, "uid-of-the-first");
    EXPECT_TRUE(server_.done());
  }
}

TEST_F(SentTwiceTest, AnotherOnesPodIsNot) {
  for (const SentCase& sent : cases_) {
    const BatchResult result = Run(sent, "another");
    ASSERT_TRUE(result.error);
    EXPECT_EQ(result.error->code, ErrorCode::kInvalid);
    EXPECT_THAT(result.error->message, HasSubstr("does not belong to the job"));
    EXPECT_TRUE(result.created.empty());
  }
}

}  // namespace
}  // namespace pliant::controller
