#include "tests/integration/test_certificates.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/check.h"

namespace pliant::kube {
namespace {

std::string TextOf(BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  std::string copy(text, static_cast<std::size_t>(size));
  BIO_free(bio);
  return copy;
}

std::string PemOf(X509* certificate) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  return TextOf(bio);
}

std::string PemOf(EVP_PKEY* key) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  return TextOf(bio);
}

void AddExtension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  CHECK(extension != nullptr, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

bool IsAddress(const std::string& name) {
  return name.find_first_not_of("0123456789.:") == std::string::npos;
}

}  // namespace

TestAuthority::TestAuthority()
    : key_(EVP_EC_gen("P-256")),
      certificate_(Make("test authority", key_.get(), nullptr, key_.get(), "")),
      pem_(PemOf(certificate_.get())) {}

TestCertificate TestAuthority::Issue(const std::string& common_name,
                                     const std::vector<std::string>& names) const {
  std::string alternative_names;
  for (const std::string& name : names) {
    if (!alternative_names.empty()) alternative_names += ",";
    alternative_names += (IsAddress(name) ? "IP:" : "DNS:") + name;
  }
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate =
      Make(common_name, key.get(), certificate_.get(), key_.get(), alternative_names);
  return {PemOf(certificate.get()), PemOf(key.get())};
}

// Without an issuer: a self-signed certificate that may issue others.
TestAuthority::Certificate TestAuthority::Make(const std::string& common_name, EVP_PKEY* key,
                                               X509* issuer, EVP_PKEY* issuer_key,
                                               const std::string& alternative_names) {
  Certificate certificate(X509_new());
  const bool is_authority = issuer == nullptr;
  if (is_authority) issuer = certificate.get();
  std::uint64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer));
  if (is_authority) {
    AddExtension(certificate.get(), issuer, NID_basic_constraints, "critical,CA:TRUE");
    AddExtension(certificate.get(), issuer, NID_key_usage, "critical,keyCertSign");
    AddExtension(certificate.get(), issuer, NID_subject_key_identifier, "hash");
  } else {
    // Needed for an authority that may be replaced by one of the same name.
    AddExtension(certificate.get(), issuer, NID_authority_key_identifier, "keyid:always");
  }
  if (!alternative_names.empty()) {
    AddExtension(certificate.get(), issuer, NID_subject_alt_name, alternative_names);
  }
  X509_sign(certificate.get(), issuer_key, EVP_sha256());
  return certificate;
}

}  // namespace pliant::kube
