#include "operator/controller/objects/credentials.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

struct Deleter {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};
using Bio = std::unique_ptr<BIO, Deleter>;
using Key = std::unique_ptr<EVP_PKEY, Deleter>;
using Certificate = std::unique_ptr<X509, Deleter>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter>;

constexpr std::chrono::hours kValidity{24 * 365 * 20};
// Clocks of nodes differ, and a certificate must be valid already on all of them.
constexpr std::chrono::hours kBackdated{24};

std::string Hex(const unsigned char* bytes, std::size_t count) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

Error OpensslError(std::string_view doing) {
  char text[256] = "unknown";
  if (const unsigned long code = ERR_get_error(); code != 0) {
    ERR_error_string_n(code, text, sizeof text);
  }
  ERR_clear_error();
  return {ErrorCode::kInternal, std::string(doing) + ": " + text};
}

std::string TextOf(const Bio& bio) {
  char* bytes = nullptr;
  const long count = BIO_get_mem_data(bio.get(), &bytes);
  return std::string(bytes, static_cast<std::size_t>(count));
}

Result<std::string> ToPem(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_X509(bio.get(), certificate) != 1) {
    return std::unexpected(OpensslError("write a certificate"));
  }
  return TextOf(bio);
}

Result<std::string> ToPem(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!bio ||
      PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return std::unexpected(OpensslError("write a key"));
  }
  return TextOf(bio);
}

Bio Reader(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Result<Certificate> ReadCertificate(std::string_view pem) {
  Certificate certificate(PEM_read_bio_X509(Reader(pem).get(), nullptr, nullptr, nullptr));
  if (!certificate) return std::unexpected(OpensslError("read a certificate"));
  return certificate;
}

Result<Key> ReadKey(std::string_view pem) {
  Key key(PEM_read_bio_PrivateKey(Reader(pem).get(), nullptr, nullptr, nullptr));
  if (!key) return std::unexpected(OpensslError("read a key"));
  return key;
}

Result<Key> MakeKey() {
  Key key(EVP_EC_gen("P-256"));
  if (!key) return std::unexpected(OpensslError("make a key"));
  return key;
}

bool SetName(X509_NAME* name, const std::string& common_name) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(common_name.data());
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, bytes,
                                    static_cast<int>(common_name.size()), -1, 0) == 1;
}

bool SetSerial(X509* certificate) {
  std::uint64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1) return false;
  serial = (serial >> 1) | 1;  // positive, and never zero
  return ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial) == 1;
}

bool SetTimes(X509* certificate, api::WallTime from, api::WallTime until) {
  const auto unix_seconds = [](api::WallTime time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  };
  return ASN1_TIME_set(X509_getm_notBefore(certificate), unix_seconds(from)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), unix_seconds(until)) != nullptr;
}

bool AddExtension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// An unsigned certificate with the fields of both kinds; null if OpenSSL failed.
Certificate NewCertificate(const std::string& common_name, EVP_PKEY* key, api::WallTime now) {
  Certificate made(X509_new());
  const bool good = made && X509_set_version(made.get(), X509_VERSION_3) == 1 &&
                    SetSerial(made.get()) &&
                    SetTimes(made.get(), now - kBackdated, now + kValidity) &&
                    SetName(X509_get_subject_name(made.get()), common_name) &&
                    X509_set_pubkey(made.get(), key) == 1;
  if (!good) made.reset();
  return made;
}

Result<Certificate> MakeAuthority(EVP_PKEY* key, api::WallTime now) {
  Certificate made = NewCertificate("pliant", key, now);
  const bool good =
      made && X509_set_issuer_name(made.get(), X509_get_subject_name(made.get())) == 1 &&
      AddExtension(made.get(), made.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      AddExtension(made.get(), made.get(), NID_key_usage, "critical,keyCertSign") &&
      AddExtension(made.get(), made.get(), NID_subject_key_identifier, "hash") &&
      X509_sign(made.get(), key, EVP_sha256()) > 0;
  if (!good) return std::unexpected(OpensslError("make the certificate authority"));
  return made;
}

// `names` as OpenSSL's configuration has them: "DNS:a,DNS:b". The common name is no host name,
// since some clients would take it for one.
Result<Certificate> MakeLeaf(EVP_PKEY* key, X509* authority, EVP_PKEY* authority_key,
                             const std::string& names, api::WallTime now) {
  Certificate made = NewCertificate("pliant coordinator", key, now);
  const bool good =
      made && X509_set_issuer_name(made.get(), X509_get_subject_name(authority)) == 1 &&
      X509_set1_notAfter(made.get(), X509_get0_notAfter(authority)) == 1 &&
      AddExtension(made.get(), authority, NID_basic_constraints, "critical,CA:FALSE") &&
      AddExtension(made.get(), authority, NID_key_usage, "critical,digitalSignature") &&
      AddExtension(made.get(), authority, NID_ext_key_usage, "serverAuth") &&
      AddExtension(made.get(), authority, NID_subject_alt_name, names) &&
      AddExtension(made.get(), authority, NID_authority_key_identifier, "keyid") &&
      X509_sign(made.get(), authority_key, EVP_sha256()) > 0;
  if (!good) return std::unexpected(OpensslError("sign a coordinator's certificate"));
  return made;
}

bool IsHostLabel(std::string_view text) {
  constexpr std::size_t kMaxHostLabel = 63;
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= kMaxHostLabel && std::ranges::all_of(text, allowed);
}

std::string_view LabelOf(KeyUse use) {
  switch (use) {
    case KeyUse::kOperator:
      return "/operator";
    case KeyUse::kLearner:
      return "/learner";
    case KeyUse::kPeers:
      return "/peers";
  }
  return "";
}

}  // namespace

Result<MasterKeys> MakeMasterKeys(api::WallTime now) {
  ASSIGN_OR_RETURN(const Key key, MakeKey());
  ASSIGN_OR_RETURN(const Certificate authority, MakeAuthority(key.get(), now));
  MasterKeys keys;
  ASSIGN_OR_RETURN(keys.ca_certificate, ToPem(authority.get()));
  ASSIGN_OR_RETURN(keys.ca_key, ToPem(key.get()));
  std::array<unsigned char, 32> random;
  if (RAND_bytes(random.data(), random.size()) != 1) {
    return std::unexpected(OpensslError("make the master key"));
  }
  keys.master_key = Hex(random.data(), random.size());
  return keys;
}

Status CheckMasterKeys(const MasterKeys& keys) {
  ASSIGN_OR_RETURN(const Certificate authority, ReadCertificate(keys.ca_certificate));
  ASSIGN_OR_RETURN(const Key key, ReadKey(keys.ca_key));
  if (X509_check_private_key(authority.get(), key.get()) != 1) {
    ERR_clear_error();
    return Invalid("ca.key is not the key of ca.crt");
  }
  const bool hex = keys.master_key.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (keys.master_key.size() != 64 || !hex) {
    return Invalid("master.key is not 64 lower-case hex digits");
  }
  return {};
}

std::string DeriveJobKey(std::string_view master_key, std::string_view job_uid, KeyUse use) {
  const std::string text = std::string(job_uid) + std::string(LabelOf(use));
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac;
  unsigned int size = 0;
  HMAC(EVP_sha256(), master_key.data(), static_cast<int>(master_key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &size);
  return Hex(mac.data(), size);
}

Result<JobCredentials> MakeJobCredentials(const MasterKeys& keys, std::string_view job_uid,
                                          api::WallTime now) {
  if (!IsHostLabel(job_uid)) {
    return Invalid("the job's uid '" + std::string(job_uid) + "' cannot be part of a host name");
  }
  const std::string name = "DNS:" + CoordinatorHost(job_uid);
  ASSIGN_OR_RETURN(const Certificate authority, ReadCertificate(keys.ca_certificate));
  ASSIGN_OR_RETURN(const Key authority_key, ReadKey(keys.ca_key));
  ASSIGN_OR_RETURN(const Key key, MakeKey());
  ASSIGN_OR_RETURN(const Certificate leaf,
                   MakeLeaf(key.get(), authority.get(), authority_key.get(), name, now));
  JobCredentials credentials{
      .ca_certificate = keys.ca_certificate,
      .operator_token = DeriveJobKey(keys.master_key, job_uid, KeyUse::kOperator),
      .learner_token = DeriveJobKey(keys.master_key, job_uid, KeyUse::kLearner),
      .peer_key = DeriveJobKey(keys.master_key, job_uid, KeyUse::kPeers)};
  ASSIGN_OR_RETURN(credentials.certificate, ToPem(leaf.get()));
  ASSIGN_OR_RETURN(credentials.key, ToPem(key.get()));
  return credentials;
}

}  // namespace pliant::controller
