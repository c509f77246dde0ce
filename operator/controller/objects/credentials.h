#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "operator/api/time.h"

// The credentials of a job's coordinator and its clients. The operator keeps one certificate
// authority and one master key in a Secret of its own; all others are derived from them.
namespace pliant::controller {

struct MasterKeys {
  std::string ca_certificate;  // PEM
  std::string ca_key;          // PEM
  std::string master_key;      // 64 hex digits

  bool operator==(const MasterKeys&) const = default;
};

// The content of the two Secrets of a job.
struct JobCredentials {
  std::string ca_certificate;
  std::string certificate;  // the coordinator's
  std::string key;
  std::string operator_token;
  std::string learner_token;
  std::string peer_key;  // between its learners; the coordinator does not have it
};

enum class KeyUse { kOperator, kLearner, kPeers };

// Makes new keys, from the system's source of randomness. They are valid for twenty years from
// `now` on: nobody renews them.
Result<MasterKeys> MakeMasterKeys(api::WallTime now);
// kInvalid, with the reason, if they cannot be used.
Status CheckMasterKeys(const MasterKeys& keys);

// Lower-case hex HMAC-SHA256 of "<uid>/operator", "<uid>/learner" or "<uid>/peers": none of them
// reveals another.
std::string DeriveJobKey(std::string_view master_key, std::string_view job_uid, KeyUse use);

// Makes a new key, and a certificate for CoordinatorHost that expires with its authority. kInvalid
// if `job_uid` cannot be part of a host name.
Result<JobCredentials> MakeJobCredentials(const MasterKeys& keys, std::string_view job_uid,
                                          api::WallTime now);

}  // namespace pliant::controller
