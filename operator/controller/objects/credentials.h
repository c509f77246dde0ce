#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "operator/api/time.h"

// Who may talk to a job's coordinator (DESIGN "Fences"): one certificate authority and one master
// key, which the operator keeps in a Secret of its own; all else is derived from them.
namespace pliant::controller {

struct MasterKeys {
  std::string ca_certificate;  // PEM
  std::string ca_key;          // PEM
  std::string master_key;      // 64 hex digits

  bool operator==(const MasterKeys&) const = default;
};

// What the two Secrets of a job hold.
struct JobCredentials {
  std::string ca_certificate;
  std::string certificate;  // the coordinator's
  std::string key;
  std::string operator_token;
  std::string learner_token;
  std::string peer_key;  // of its learners among themselves; the coordinator does not have it
};

enum class KeyUse { kOperator, kLearner, kPeers };

// New ones, from the system's source of randomness. Valid for twenty years from `now` on: nobody
// renews them.
Result<MasterKeys> MakeMasterKeys(api::WallTime now);
// kInvalid, with what is wrong, unless they can be used.
Status CheckMasterKeys(const MasterKeys& keys);

// Lower-case hex HMAC-SHA256 of "<uid>/operator", "<uid>/learner" or "<uid>/peers": none of them
// tells anything of another.
std::string DeriveJobKey(std::string_view master_key, std::string_view job_uid, KeyUse use);

// With a new key and a certificate for CoordinatorHost, which ends with its authority. Of a job of
// `version` 1 (kCredentialsVersion) it is also for the name of all coordinators: that is what the
// learners of such a job ask for. kInvalid if `job_uid` cannot be part of a host name.
Result<JobCredentials> MakeJobCredentials(const MasterKeys& keys, std::string_view job_uid,
                                          int version, api::WallTime now);

}  // namespace pliant::controller
