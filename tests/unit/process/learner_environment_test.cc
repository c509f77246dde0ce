#include "trainer/process/learner_environment.h"

#include <filesystem>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace pliant {
namespace {
using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

class LearnerEnvironmentTest : public testing::Test {
 protected:
  LearnerEnvironmentTest()
      : folder_(testing::TempDir() + "pliant-environment-test-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
    EXPECT_TRUE(WriteFileAtomically(folder_ / "token", "0a1b\n"));
    EXPECT_TRUE(WriteFileAtomically(folder_ / "peer-key", "2c3d\n"));
    EXPECT_TRUE(WriteFileAtomically(folder_ / "empty", "\n"));
    EXPECT_TRUE(WriteFileAtomically(folder_ / "ca.crt", "pem"));
  }
  ~LearnerEnvironmentTest() override { std::filesystem::remove_all(folder_); }

  // The variables as the operator sets them.
  Variables Full() const {
    return {{"PLIANT_COORDINATOR", "10.96.0.7:8443"},
            {"PLIANT_LEARNER", "digits-1a2b3-4"},
            {"PLIANT_POD_UID", "pod-uid"},
            {"PLIANT_POD_IP", "10.244.1.9"},
            {"PLIANT_JOB", "team/digits"},
            {"PLIANT_JOB_UID", "job-uid"},
            {"PLIANT_TERM", "3"},
            {"PLIANT_TOKEN_FILE", folder_ / "token"},
            {"PLIANT_PEER_KEY_FILE", folder_ / "peer-key"},
            {"PLIANT_TLS_DIR", folder_},
            {"PLIANT_CHECKPOINT_DIR", "/checkpoints"},
            {"PLIANT_CHECKPOINT_EVERY_STEPS", "200"},
            {"PLIANT_CHECKPOINT_EVERY_SECONDS", "30"},
            {"PLIANT_CHECKPOINT_KEEP", "5"},
            {"PLIANT_GLOBAL_BATCH_SIZE", "256"},
            {"PLIANT_LOGICAL_SHARDS", "32"},
            {"PLIANT_SEED", "18446744073709551615"},
            {"PLIANT_REPRODUCIBILITY", "Statistical"},
            {"PLIANT_MIN_LEARNERS", "2"},
            {"PLIANT_MAX_LEARNERS", "4"},
            {"PLIANT_GRACE_SECONDS", "7"},
            {"PLIANT_STEP_TIMEOUT_SECONDS", "1800"},
            {"PLIANT_EXCHANGE", "Auto"},
            {"PLIANT_METRICS_PORT", "9090"},
            {"PLIANT_SHARED_MEMORY_DIR", "/shared"},
            {"PLIANT_TERMINATION_LOG", "/tmp/log"}};
  }

  static Result<LearnerEnvironment> Read(const Variables& variables) {
    return ReadLearnerEnvironment([&variables](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  }

  const std::filesystem::path folder_;
};

TEST_F(LearnerEnvironmentTest, TakesWhatTheOperatorSets) {
  const auto environment = Read(Full());
  ASSERT_TRUE(environment) << environment.error();
  ASSERT_TRUE(environment->coordinator);
  EXPECT_EQ(environment->coordinator->host, "10.96.0.7");
  EXPECT_EQ(environment->coordinator->port, "8443");
  EXPECT_EQ(environment->coordinator->token, "0a1b") << "without the newline";
  EXPECT_EQ(environment->coordinator->peer_key, "2c3d");
  EXPECT_EQ(environment->coordinator->ca_file, folder_ / "ca.crt");
  EXPECT_EQ(environment->coordinator->min_term, 3U);
  EXPECT_EQ(environment->learner, "digits-1a2b3-4");
  EXPECT_EQ(environment->pod_uid, "pod-uid");
  EXPECT_EQ(environment->pod_ip, "10.244.1.9");
  EXPECT_EQ(environment->job, "team/digits");
  EXPECT_EQ(environment->job_uid, "job-uid");
  EXPECT_EQ(environment->checkpoint_dir, "/checkpoints");
  EXPECT_EQ(environment->checkpoint_every_steps, 200U);
  EXPECT_EQ(environment->checkpoint_every, Duration(std::chrono::seconds(30)));
  EXPECT_EQ(environment->checkpoints_kept, 5);
  EXPECT_EQ(environment->global_batch_size, 256U);
  EXPECT_EQ(environment->logical_shards, 32);
  EXPECT_EQ(environment->seed, 18446744073709551615U);
  EXPECT_EQ(environment->reproducibility, Reproducibility::kStatistical);
  EXPECT_EQ(environment->min_learners, 2);
  EXPECT_EQ(environment->max_learners, 4);
  EXPECT_EQ(environment->grace, Duration(std::chrono::seconds(7)));
  EXPECT_EQ(environment->step_timeout, Duration(std::chrono::seconds(1800)));
  EXPECT_TRUE(environment->exchange_over_nccl);
  EXPECT_EQ(environment->metrics_port, 9090);
  EXPECT_EQ(environment->shared_memory_dir, "/shared");
  EXPECT_EQ(environment->termination_log, "/tmp/log");
}

TEST_F(LearnerEnvironmentTest, ResumeFromIsOnTheVolumeUnlessItsPathIsAbsolute) {
  for (const auto& [told, want] : {std::pair{"", ""},
                                   {"another-uid", "/checkpoints/another-uid"},
                                   {"old/uid/step-000000000200-t000000000210-m1.1",
                                    "/checkpoints/old/uid/step-000000000200-t000000000210-m1.1"},
                                   {"/archive/uid", "/archive/uid"}}) {
    Variables variables = Full();
    variables["PLIANT_RESUME_FROM"] = told;
    const auto environment = Read(variables);
    ASSERT_TRUE(environment) << environment.error();
    EXPECT_EQ(environment->resume_from, want);
  }
}

TEST_F(LearnerEnvironmentTest, AloneNeedsNothing) {
  for (const Variables& variables : {Variables{}, Variables{{"PLIANT_COORDINATOR", ""}}}) {
    const auto environment = Read(variables);
    ASSERT_TRUE(environment) << environment.error();
    EXPECT_FALSE(environment->coordinator);
    EXPECT_EQ(environment->job_uid, "local");
    EXPECT_EQ(environment->step_timeout, Duration::zero()) << "a person at the terminal can judge";
    EXPECT_FALSE(environment->exchange_over_nccl);
    EXPECT_EQ(environment->termination_log, "") << "no kubelet would read it";
    EXPECT_FALSE(environment->global_batch_size);
    EXPECT_FALSE(environment->seed);
    EXPECT_EQ(environment->reproducibility, Reproducibility::kBitwise);
  }
}

TEST_F(LearnerEnvironmentTest, StepsOfAJobAreComputedAgainWithoutTheJob) {
  const Variables asked = {{"PLIANT_VERIFY_REPLAY", "20-60"}, {"PLIANT_JOB_UID", "job-uid"}};
  const auto environment = Read(asked);
  ASSERT_TRUE(environment) << environment.error().message;
  EXPECT_EQ(environment->replay, (ReplayRange{.from = 20, .to = 60}));
  EXPECT_EQ(environment->job_uid, "job-uid");
  EXPECT_EQ(ParseReplayRange("20"), (ReplayRange{.from = 20}));
  for (const char* wrong : {"-", "x", "20-", "-20", "20-20", "60-20", "20-60-70", "20 "}) {
    EXPECT_FALSE(ParseReplayRange(wrong)) << wrong;
  }
}

TEST_F(LearnerEnvironmentTest, AnErrorNamesTheVariableAndTheRemedy) {
  struct Case {
    std::string variable;
    std::string value;
    std::string want;
  };
  const Case kCases[] = {
      {"PLIANT_COORDINATOR", "coordinator", "must be host:port"},
      {"PLIANT_COORDINATOR", ":8443", "must be host:port"},
      {"PLIANT_COORDINATOR", "host:0", "must be host:port"},
      {"PLIANT_COORDINATOR", "host:84430", "must be host:port"},
      {"PLIANT_COORDINATOR", "host:8443x", "must be host:port"},
      {"PLIANT_LEARNER", "", "the name of this pod"},
      {"PLIANT_POD_IP", "", "peers reach this pod"},
      {"PLIANT_JOB_UID", "", "the uid of the job"},
      {"PLIANT_TERM", "-1", "whole number"},
      {"PLIANT_TOKEN_FILE", "", "learners' token"},
      {"PLIANT_TOKEN_FILE", folder_ / "missing", "missing"},
      {"PLIANT_TOKEN_FILE", folder_ / "empty", "is empty"},
      {"PLIANT_PEER_KEY_FILE", "", "key of the job's learners"},
      {"PLIANT_PEER_KEY_FILE", folder_ / "missing", "missing"},
      {"PLIANT_PEER_KEY_FILE", folder_ / "empty", "is empty"},
      {"PLIANT_TLS_DIR", "", "ca.crt"},
      {"PLIANT_TLS_DIR", "/nowhere", "/nowhere/ca.crt"},
      {"PLIANT_CHECKPOINT_DIR", "", "spec.checkpoint"},
      {"PLIANT_CHECKPOINT_EVERY_STEPS", "often", "whole number"},
      {"PLIANT_CHECKPOINT_EVERY_SECONDS", "1.5", "whole number"},
      {"PLIANT_CHECKPOINT_KEEP", "0", "from 1"},
      {"PLIANT_GLOBAL_BATCH_SIZE", "0", "from 1"},
      {"PLIANT_GLOBAL_BATCH_SIZE", "256 ", "whole number"},
      {"PLIANT_LOGICAL_SHARDS", "12", "power of two"},
      {"PLIANT_LOGICAL_SHARDS", "131072", "to 65536"},
      {"PLIANT_SEED", "18446744073709551616", "whole number"},
      {"PLIANT_REPRODUCIBILITY", "bitwise", "Bitwise or Statistical"},
      {"PLIANT_BATCH_MODE", "fromState", "Constant or FromState"},
      {"PLIANT_BATCH_MODE", "FromState", "PLIANT_MAX_BATCH_SIZE must be set"},
      {"PLIANT_MAX_BATCH_SIZE", "512", "PLIANT_BATCH_MODE is Constant"},
      {"PLIANT_MAX_BATCH_SIZE", "0", "from 1"},
      {"PLIANT_MIN_LEARNERS", "0", "from 1"},
      {"PLIANT_MAX_LEARNERS", "0", "from 1"},
      {"PLIANT_GRACE_SECONDS", "a minute", "whole number"},
      {"PLIANT_STEP_TIMEOUT_SECONDS", "-1", "whole number"},
      {"PLIANT_EXCHANGE", "NCCL", "it must be Auto or Frames"},
      {"PLIANT_METRICS_PORT", "65536", "whole number"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.variable + "=" + c.value);
    Variables variables = Full();
    variables[c.variable] = c.value;
    const auto environment = Read(variables);
    ASSERT_FALSE(environment);
    EXPECT_EQ(environment.error().code == ErrorCode::kInvalid ||
                  environment.error().code == ErrorCode::kNotFound,
              true);
    EXPECT_THAT(environment.error().message, HasSubstr(c.variable));
    EXPECT_THAT(environment.error().message, HasSubstr(c.want));
  }
}

TEST_F(LearnerEnvironmentTest, KubernetesReadsTheTerminationLogFromItsUsualPlace) {
  Variables variables = Full();
  variables.erase("PLIANT_TERMINATION_LOG");
  EXPECT_EQ(Read(variables)->termination_log, "/dev/termination-log");
}

TEST_F(LearnerEnvironmentTest, OneVariableHasTheSettingsOfTests) {
  const auto set = Read({{"PLIANT_TEST_SETTINGS",
                          "bucketBytes=4096,checkpointSliceBytes=1,checkStateEverySteps=20,"
                          "sampleLedger=/tmp/a=b"}});
  ASSERT_TRUE(set) << set.error();
  EXPECT_EQ(set->test.bucket_bytes, 4096U);
  EXPECT_EQ(set->test.checkpoint_slice_bytes, 1U);
  EXPECT_EQ(set->test.check_state_every_steps, 20U);
  EXPECT_EQ(set->test.ledger_dir, "/tmp/a=b");
  for (const auto& [text, want] :
       {std::pair{"bucketBytes", "has 'bucketBytes': it must be a list of name=value"},
        {"bucketBytes=4096,", "has '': it must be a list"},
        {"buckets=1", "has 'buckets=1'"},
        {"bucketBytes=1", "bucketBytes is '1': it must be a whole number from 4096"},
        {"checkStateEverySteps=0", "checkStateEverySteps is '0'"},
        {"checkpointSliceBytes=x", "checkpointSliceBytes is 'x'"}}) {
    const auto refused = Read({{"PLIANT_TEST_SETTINGS", text}});
    ASSERT_FALSE(refused) << text;
    EXPECT_THAT(refused.error().message, HasSubstr("PLIANT_TEST_SETTINGS"));
    EXPECT_THAT(refused.error().message, HasSubstr(want));
  }
}

TEST_F(LearnerEnvironmentTest, AnAddressMayBeOfIPv6) {
  Variables variables = Full();
  variables["PLIANT_COORDINATOR"] = "[fd00::7]:8443";
  const auto environment = Read(variables);
  ASSERT_TRUE(environment) << environment.error();
  EXPECT_EQ(environment->coordinator->host, "fd00::7");
}

}  // namespace
}  // namespace pliant
