#pragma once

#include <memory>
#include <string>
#include <vector>

#include <openssl/evp.h>
#include <openssl/x509.h>

namespace pliant::kube {

struct TestCertificate {
  std::string certificate_pem;
  std::string key_pem;
};

// A certificate authority for one test.
class TestAuthority {
 public:
  TestAuthority();

  const std::string& pem() const { return pem_; }
  // `names` are DNS names and IP addresses; empty for a client certificate.
  TestCertificate Issue(const std::string& common_name,
                        const std::vector<std::string>& names) const;

 private:
  template <auto free>
  struct Free {
    void operator()(auto* object) const { free(object); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
  using Certificate = std::unique_ptr<X509, Free<X509_free>>;

  static Certificate Make(const std::string& common_name, EVP_PKEY* key, X509* issuer,
                          EVP_PKEY* issuer_key, const std::string& alternative_names);

  Key key_;
  Certificate certificate_;
  std::string pem_;
};

}  // namespace pliant::kube
