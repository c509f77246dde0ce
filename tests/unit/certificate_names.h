#pragma once

#include <memory>
#include <set>
#include <string>

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace pliant {

// Returns the DNS names in a certificate (PEM).
inline std::set<std::string> NamesOf(const std::string& certificate_pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(
      BIO_new_mem_buf(certificate_pem.data(), static_cast<int>(certificate_pem.size())),
      &BIO_free_all);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), &X509_free);
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

}  // namespace pliant
