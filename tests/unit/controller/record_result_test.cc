#include "operator/controller/actions/record_result.h"

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

kube::KubeError RefusedByQuota() {
  kube::KubeError error(ErrorCode::kDenied, "quota");
  error.http_status = 403;
  return error;
}

kube::KubeError Unwell() { return {ErrorCode::kUnavailable, "unwell"}; }

TEST(RecordResult, ReportsRefusalsToTheOwnerButNoPassingErrors) {
  const struct {
    const char* name;
    BatchResult result;
    std::string message;
    bool unanswered;
  } kCases[] = {
      {"done", {}, "", false},
      {"refused", {.error = RefusedByQuota(), .failed = 0}, "quota", false},
      {"a conflict",
       {.error = kube::KubeError(ErrorCode::kConflict, "changed"), .failed = 0},
       "before",
       false},
      {"unwell", {.error = Unwell(), .failed = 0}, "before", false},
      {"no answer", {.error = Unwell(), .failed = 0, .unanswered = "webhook"}, "webhook", true},
      {"no answer, then a refusal",
       {.error = RefusedByQuota(), .failed = 0, .unanswered = "webhook"},
       "quota",
       false},
  };
  for (const auto& c : kCases) {
    JobSoftState state;
    state.refusals.message = "before";
    RecordResult({.job = AdmittedJob(1), .actions = {CreateLearner{.number = 0}}}, {}, false,
                 c.result, At(5), state);
    EXPECT_EQ(state.refusals.message, c.message) << c.name;
    EXPECT_EQ(state.refusals.unanswered, c.unanswered) << c.name;
  }
}

TEST(RecordResult, OnlyWhatWasNotDoneIsRefused) {
  const Batch batch{.job = AdmittedJob(2),
                    .actions = {OpenGate{.pod = "a"}, OpenGate{.pod = "b"}, OpenGate{.pod = "c"}}};
  JobSoftState state;
  RecordResult(batch, {}, false, {.error = RefusedByQuota(), .failed = 1}, At(5), state);
  EXPECT_EQ(state.refusals.grants->gates, (std::set<std::string>{"b", "c"}));
  state = {};
  RecordResult(batch, {}, false, {.error = RefusedByQuota()}, At(5), state);
  EXPECT_EQ(state.refusals.grants->gates.size(), 3u)
      << "the status write was refused, so none was tried";
}

TEST(RecordResult, AFailedWriteOfStatusReportsNothing) {
  const LastReported before{.at = At(1)};
  for (const bool write_status : {false, true}) {
    JobSoftState state{.reporting = {.last = {.at = At(9)}}};
    RecordResult({.job = AdmittedJob(1), .write_status = write_status}, before, false,
                 {.error = Unwell()}, At(9), state);
    EXPECT_EQ(state.reporting.last.at, write_status ? At(1) : At(9));
  }
}

TEST(RecordResult, KeepsTheAnswersToQuestions) {
  JobSoftState state;
  RecordResult({.job = AdmittedJob(1)}, {}, false,
               {.gone = {{.pod = "a", .uid = "uid-a"}, {.pod = "b", .uid = ""}},
                .template_refusal = "no such class",
                .mount_causes = {{"a", "no such volume"}}},
               At(5), state);
  EXPECT_EQ(state.contacts.gone, std::set<std::string>{"uid-a"});
  EXPECT_EQ(state.mount_causes.at("a"), (MountCause{.text = "no such volume", .asked = At(5)}));
  EXPECT_EQ(state.checked_template.check->message, "no such class");
}

}  // namespace
}  // namespace pliant::controller
