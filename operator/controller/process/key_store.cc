#include "operator/controller/process/key_store.h"

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "operator/api/fields.h"
#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

using nlohmann::json;

constexpr const char* kCaCertificate = "ca.crt";
constexpr const char* kCaKey = "ca.key";
constexpr const char* kMasterKey = "master.key";

Result<MasterKeys> DecodeKeys(const json& secret) {
  MasterKeys keys;
  api::Fields root(secret, std::string(kKeysSecret));
  root.Object("data", [&](api::Fields& data) {
    const auto read = [&](const char* name, std::string& value) {
      const auto bytes = FromBase64(data.String(name));
      if (bytes) value = *bytes;
      if (!bytes || value.empty()) data.Wrong(name, "missing, or not base64");
    };
    read(kCaCertificate, keys.ca_certificate);
    read(kCaKey, keys.ca_key);
    read(kMasterKey, keys.master_key);
  });
  if (root.error()) return std::unexpected(*root.error());
  if (const Status good = CheckMasterKeys(keys); !good) {
    return std::unexpected(InContext(kKeysSecret, good.error()));
  }
  return keys;
}

json EncodeKeys(const MasterKeys& keys, const std::string& ns) {
  return {{"metadata",
           {{"name", kKeysSecret}, {"namespace", ns}, {"labels", {{kLabelManagedBy, kManagedBy}}}}},
          {"type", "Opaque"},
          {"stringData",
           {{kCaCertificate, keys.ca_certificate},
            {kCaKey, keys.ca_key},
            {kMasterKey, keys.master_key}}}};
}

}  // namespace

Result<MasterKeys> LoadOrMakeKeys(kube::KubeClient& client, const std::string& ns,
                                  api::WallTime now) {
  const kube::NamespacedName key{ns, std::string(kKeysSecret)};
  auto found = client.Get(kube::kSecrets, key);
  if (!found && found.error().code == ErrorCode::kNotFound) {
    ASSIGN_OR_RETURN(const MasterKeys made, MakeMasterKeys(now));
    const auto created = client.Create(kube::kSecrets, EncodeKeys(made, ns));
    if (created) return made;
    // Another replica may have been quicker: its keys count.
    if (created.error().code != ErrorCode::kAlreadyExists) {
      return std::unexpected(InContext("create the operator's keys", created.error()));
    }
    found = client.Get(kube::kSecrets, key);
  }
  if (!found) return std::unexpected(InContext("read the operator's keys", found.error()));
  return DecodeKeys(*found);
}

}  // namespace pliant::controller
