#include "operator/controller/objects/credentials.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "operator/controller/objects/coordinator_objects.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

Certificate Read(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free_all);
  return {PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), &X509_free};
}

// Returns the DNS names in a certificate (PEM).
std::set<std::string> NamesOf(const std::string& certificate_pem) {
  const Certificate certificate = Read(certificate_pem);
  if (certificate == nullptr) return {"no certificate"};
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)),
      &GENERAL_NAMES_free);
  std::set<std::string> found;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_DNS) continue;
    const ASN1_IA5STRING* text = name->d.dNSName;
    found.emplace(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                  static_cast<std::size_t>(ASN1_STRING_length(text)));
  }
  return found;
}

// Verifies like a TLS client that trusts only this authority.
bool Verifies(const std::string& ca, const std::string& leaf, const char* host) {
  const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(X509_STORE_new(),
                                                                      &X509_STORE_free);
  const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> context(
      X509_STORE_CTX_new(), &X509_STORE_CTX_free);
  const Certificate authority = Read(ca);
  const Certificate certificate = Read(leaf);
  X509_STORE_add_cert(store.get(), authority.get());
  X509_STORE_CTX_init(context.get(), store.get(), certificate.get(), nullptr);
  X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set1_host(parameters, host, 0);
  X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER);
  return X509_verify_cert(context.get()) == 1;
}

constexpr const char* kHost = "1a2b3c4d-0000.coordinator.pliant.internal";

TEST(Credentials, ACoordinatorIsKnownByTheNameOfItsJob) {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto keys = MakeMasterKeys(now);
  ASSERT_TRUE(keys) << keys.error();
  EXPECT_TRUE(CheckMasterKeys(*keys));
  const auto job = MakeJobCredentials(*keys, kUid, now);
  ASSERT_TRUE(job) << job.error();
  EXPECT_TRUE(Verifies(job->ca_certificate, job->certificate, kHost));
  EXPECT_THAT(NamesOf(job->certificate), ElementsAre(kHost));
  for (const char* other : {"5e6f7a8b-0000.coordinator.pliant.internal",
                            "coordinator.pliant.internal", "pliant coordinator", "10.0.0.7"}) {
    EXPECT_FALSE(Verifies(job->ca_certificate, job->certificate, other)) << other;
  }
  const auto others = MakeMasterKeys(now);
  ASSERT_TRUE(others);
  EXPECT_FALSE(Verifies(others->ca_certificate, job->certificate, kHost));
}

TEST(Credentials, AUidThatIsNoPartOfAHostNameIsRefused) {
  const auto keys = MakeMasterKeys(At(0));
  ASSERT_TRUE(keys);
  for (const std::string& uid : {std::string(), std::string("a,DNS:b"), std::string("a.b"),
                                 std::string("*"), std::string(64, 'a'), std::string("a\0b", 3)}) {
    const auto made = MakeJobCredentials(*keys, uid, At(0));
    ASSERT_FALSE(made) << uid;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalid);
  }
  EXPECT_TRUE(MakeJobCredentials(*keys, std::string(63, 'a'), At(0)));
}

TEST(Credentials, KeysFollowFromMasterKeyUidAndUse) {
  // printf 'u1/operator' | openssl dgst -sha256 -hmac 00
  EXPECT_EQ(DeriveJobKey("00", "u1", KeyUse::kOperator),
            "de6c7d23cdc2b6f2b23c98bee63c09672b5b3465edf338680586d13ac9721f52");
  std::set<std::string> keys;
  for (const char* master : {"00", "01"}) {
    for (const char* uid : {"u1", "u2"}) {
      for (const KeyUse use : {KeyUse::kOperator, KeyUse::kLearner, KeyUse::kPeers}) {
        keys.insert(DeriveJobKey(master, uid, use));
      }
    }
  }
  EXPECT_EQ(keys.size(), 12U);
}

// Tests the values, so that one disclosed Secret does not disclose the others.
TEST(Credentials, EachEndHoldsNoMoreThanItNeeds) {
  const auto keys = MakeMasterKeys(At(0));
  ASSERT_TRUE(keys);
  const auto credentials = MakeJobCredentials(*keys, kUid, At(0));
  ASSERT_TRUE(credentials) << credentials.error();
  const std::string coordinators = CoordinatorSecret(NewJob().meta, 1, "s", *credentials).dump();
  const std::string learners = LearnerSecret(NewJob().meta, 1, "s", *credentials).dump();
  const auto derived = [&](KeyUse use) { return DeriveJobKey(keys->master_key, kUid, use); };
  EXPECT_THAT(coordinators, HasSubstr(derived(KeyUse::kOperator)));
  EXPECT_THAT(coordinators, HasSubstr(derived(KeyUse::kLearner)));
  EXPECT_THAT(coordinators, Not(HasSubstr(derived(KeyUse::kPeers))));
  EXPECT_THAT(learners, Not(HasSubstr(derived(KeyUse::kOperator))));
  EXPECT_THAT(learners, HasSubstr(derived(KeyUse::kLearner)));
  EXPECT_THAT(learners, HasSubstr(derived(KeyUse::kPeers)));
}

TEST(Credentials, KeysThatDoNotBelongTogetherAreRefused) {
  const auto keys = MakeMasterKeys(At(0));
  const auto others = MakeMasterKeys(At(0));
  ASSERT_TRUE(keys && others);
  MasterKeys mixed = *keys;
  mixed.ca_key = others->ca_key;
  ASSERT_FALSE(CheckMasterKeys(mixed));
  EXPECT_EQ(CheckMasterKeys(mixed).error().message, "ca.key is not the key of ca.crt");
  MasterKeys shortened = *keys;
  shortened.master_key.pop_back();
  EXPECT_FALSE(CheckMasterKeys(shortened));
  MasterKeys garbled = *keys;
  garbled.ca_certificate = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n";
  EXPECT_FALSE(CheckMasterKeys(garbled));
}

TEST(CoordinatorObjects, HoldWhatTheContractSays) {
  const api::ElasticTrainingJob job = NewJob();
  const JobCredentials credentials{.ca_certificate = "CA",
                                   .certificate = "CERT",
                                   .key = "KEY",
                                   .operator_token = "OP",
                                   .learner_token = "LEARN",
                                   .peer_key = "PEERS"};
  const auto secret = CoordinatorSecret(job.meta, 3, "service", credentials);
  EXPECT_EQ(secret.at("stringData"), nlohmann::json({{"ca.crt", "CA"},
                                                     {"tls.crt", "CERT"},
                                                     {"tls.key", "KEY"},
                                                     {"operator-token", "OP"},
                                                     {"learner-token", "LEARN"}}));
  EXPECT_EQ(secret.at("/metadata/name"_json_pointer), "digits-1a2b3-coordinator-3");
  EXPECT_EQ(secret.at("immutable"), true);
  EXPECT_EQ(secret.at("/metadata/ownerReferences"_json_pointer),
            nlohmann::json::parse(R"([{"apiVersion": "v1", "kind": "Service",
                                       "name": "digits-1a2b3-coordinator", "uid": "service"}])"));
  const auto learners = LearnerSecret(job.meta, 3, "service", credentials);
  EXPECT_EQ(learners.at("/metadata/name"_json_pointer), "digits-1a2b3-learner-3");
  EXPECT_EQ(learners.at("stringData"),
            nlohmann::json({{"ca.crt", "CA"}, {"token", "LEARN"}, {"peer-key", "PEERS"}}));

  const auto service = CoordinatorService(job.meta, 3);
  EXPECT_EQ(service.at("/spec/selector/pliant.dev~1term"_json_pointer), "3");
  ASSERT_TRUE(service.at("/spec/ports"_json_pointer).is_array());
  EXPECT_EQ(service.at("/spec/ports/0/port"_json_pointer), 8443);

  EXPECT_EQ(CoordinatorPod(job, 3, "pliant:1", {})["metadata"]["annotations"],
            nlohmann::json({{"cluster-autoscaler.kubernetes.io/safe-to-evict", "true"}}));
  const auto pod = CoordinatorPod(job, 3, "pliant:1",
                                  {.priority_class = "low",
                                   .coordinator_pull_secrets = {"key", "other"},
                                   .scrape_annotations = true});
  EXPECT_EQ(pod["metadata"]["annotations"]["prometheus.io/port"], "9090");
  EXPECT_EQ(pod.at("/metadata/name"_json_pointer), "digits-1a2b3-coordinator-3");
  EXPECT_EQ(pod.at("/metadata/labels/pliant.dev~1term"_json_pointer), "3");
  EXPECT_EQ(pod.at("/spec/priorityClassName"_json_pointer), "low");
  const auto& container = pod.at("/spec/containers/0"_json_pointer);
  EXPECT_EQ(container.at("image"), "pliant:1");
  EXPECT_TRUE(container.at("command").is_array());
  EXPECT_EQ(container.at("env").size(), 6u);
  EXPECT_EQ(container.at("ports"), nlohmann::json::parse(R"([
      {"name": "coordinator", "containerPort": 8443}, {"name": "progress", "containerPort": 9090},
      {"name": "probes", "containerPort": 8081}])"));
  EXPECT_EQ(container.at("/livenessProbe/httpGet"_json_pointer),
            nlohmann::json::parse(R"({"path": "/healthz", "port": 8081})"));
  EXPECT_TRUE(container.at("/securityContext/capabilities/drop"_json_pointer).is_array());
  EXPECT_EQ(pod.at("/spec/volumes/0/secret/secretName"_json_pointer), "digits-1a2b3-coordinator-3");
  EXPECT_EQ(pod.at("/spec/imagePullSecrets"_json_pointer),
            nlohmann::json::parse(R"([{"name": "key"}, {"name": "other"}])"));
  EXPECT_FALSE(CoordinatorPod(job, 3, "pliant:1", {}).at("spec").contains("imagePullSecrets"));
}

}  // namespace
}  // namespace pliant::controller
