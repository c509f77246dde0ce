#include "base/self_signed.h"

#include <algorithm>
#include <memory>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace pliant {
namespace {

constexpr std::chrono::days kBefore{1};  // tolerates differing clocks
constexpr std::chrono::days kAfter{3650};

template <auto Free>
struct FreeBy {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using SelfSignedKey = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;
using SelfSignedCertificate = std::unique_ptr<X509, FreeBy<X509_free>>;
using MemoryBio = std::unique_ptr<BIO, FreeBy<BIO_free_all>>;

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

bool AddSubjectName(X509* certificate, const std::string& host) {
  const std::unique_ptr<X509_EXTENSION, FreeBy<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, ("DNS:" + host).c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool Sign(X509* made, EVP_PKEY* key, const std::string& host, std::chrono::sys_seconds now) {
  unsigned char serial[8];
  if (RAND_bytes(serial, sizeof serial) != 1) return false;
  serial[0] = static_cast<unsigned char>((serial[0] & 0x3f) | 0x40);  // positive, of this length
  const std::unique_ptr<BIGNUM, FreeBy<BN_free>> number(BN_bin2bn(serial, sizeof serial, nullptr));
  X509_NAME* const name = X509_get_subject_name(made);
  const auto* const text = reinterpret_cast<const unsigned char*>(host.c_str());
  const auto at = [](std::chrono::sys_seconds time) { return time.time_since_epoch().count(); };
  // The common name holds 64 bytes; clients check the alternative name.
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(made)) != nullptr &&
         X509_set_version(made, X509_VERSION_3) == 1 &&
         ASN1_TIME_set(X509_getm_notBefore(made), at(now - kBefore)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(made), at(now + kAfter)) != nullptr &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text,
                                    static_cast<int>(std::min<std::size_t>(host.size(), 64)), -1,
                                    0) == 1 &&
         X509_set_issuer_name(made, name) == 1 && X509_set_pubkey(made, key) == 1 &&
         AddSubjectName(made, host) && X509_sign(made, key, EVP_sha256()) > 0;
}

}  // namespace

Result<TlsPem> MakeSelfSigned(const std::string& host, std::chrono::sys_seconds now) {
  const SelfSignedKey key(EVP_EC_gen("P-256"));
  const SelfSignedCertificate made(X509_new());
  const MemoryBio certificate_text(BIO_new(BIO_s_mem()));
  const MemoryBio key_text(BIO_new(BIO_s_mem()));
  const bool good =
      key && made && certificate_text && key_text && Sign(made.get(), key.get(), host, now) &&
      PEM_write_bio_X509(certificate_text.get(), made.get()) == 1 &&
      PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) ==
          1;
  if (!good) {
    ERR_clear_error();
    return Fail(ErrorCode::kInternal, "a certificate for " + host + " could not be created");
  }
  return TlsPem{.certificate = TextOf(certificate_text.get()), .key = TextOf(key_text.get())};
}

}  // namespace pliant
