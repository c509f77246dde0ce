#include "operator/kube/client_tls.h"

#include <utility>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include "operator/kube/free.h"

namespace pliant::kube {
namespace {

using Bio = std::unique_ptr<BIO, Free<BIO_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Store = std::unique_ptr<X509_STORE, Free<X509_STORE_free>>;

Bio OpenBio(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Certificate NextCertificate(const Bio& bio) {
  return Certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

// OpenSSL keeps errors in a queue per thread.
std::unexpected<Error> Wrong(const std::string& what) {
  char reason[256] = "";
  if (const unsigned long code = ERR_get_error(); code != 0) {
    ERR_error_string_n(code, reason, sizeof(reason));
  }
  ERR_clear_error();
  return Invalid(what + (reason[0] == '\0' ? "" : ": " + std::string(reason)));
}

Status TrustOnly(SSL_CTX* context, const PemSource& source) {
  ASSIGN_OR_RETURN(const std::string pem, source.Read());
  const Bio bio = OpenBio(pem);
  Store store(X509_STORE_new());
  int trusted = 0;
  while (const Certificate certificate = NextCertificate(bio)) {
    X509_STORE_add_cert(store.get(), certificate.get());
    ++trusted;
  }
  ERR_clear_error();  // OpenSSL reports the end of the text as an error
  if (trusted == 0) return Invalid("no certificate in the certificate authority");
  SSL_CTX_set_cert_store(context, store.release());
  return {};
}

Status Identify(SSL_CTX* context, const PemSource& chain, const PemSource& key_source) {
  ASSIGN_OR_RETURN(const std::string chain_pem, chain.Read());
  ASSIGN_OR_RETURN(const std::string key_pem, key_source.Read());
  const Bio chain_bio = OpenBio(chain_pem);
  const Certificate leaf = NextCertificate(chain_bio);
  if (!leaf || SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    return Wrong("the client certificate is no PEM certificate");
  }
  SSL_CTX_clear_chain_certs(context);
  while (const Certificate issuer = NextCertificate(chain_bio)) {
    SSL_CTX_add1_chain_cert(context, issuer.get());
  }
  ERR_clear_error();
  const Bio key_bio = OpenBio(key_pem);
  // An empty pass phrase: an encrypted key is an error, not a prompt on the terminal.
  const Key key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, const_cast<char*>("")));
  if (!key) return Wrong("the client key is no PEM key (it may not be encrypted)");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return Wrong("the client key does not belong to the client certificate");
  }
  return {};
}

// Verifies as OpenSSL does, including the host name check that the library installed, and stores
// the reason.
int Verify(X509_STORE_CTX* chain, void* refusal) {
  const int verified = X509_verify_cert(chain);
  std::string reason;
  if (verified <= 0) {
    const int code = X509_STORE_CTX_get_error(chain);
    // The library's host name check fails without an error code.
    const bool name =
        code == X509_V_OK || code == X509_V_ERR_UNSPECIFIED || code == X509_V_ERR_HOSTNAME_MISMATCH;
    reason = name ? "it is not for this host name" : X509_verify_cert_error_string(code);
  }
  static_cast<TlsRefusal*>(refusal)->Set(std::move(reason));
  return verified;
}

}  // namespace

void TlsRefusal::Set(std::string reason) {
  const std::lock_guard lock(mutex_);
  reason_ = std::move(reason);
}

std::string TlsRefusal::Get() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

Status ClientTls::Apply(SSL_CTX* context, const std::string& server_name,
                        TlsRefusal& refusal) const {
  SSL_CTX_set_min_proto_version(context, config_.tls_1_3_only ? TLS1_3_VERSION : TLS1_2_VERSION);
  // No renegotiation on a connection that carries requests: `refusal` may be destroyed by then.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  RETURN_IF_ERROR(TrustOnly(context, config_.certificate_authority));
  if (!server_name.empty() &&
      X509_VERIFY_PARAM_set1_host(SSL_CTX_get0_param(context), server_name.c_str(), 0) != 1) {
    return Wrong("the name that the server's certificate has to be for is no host name");
  }
  if (!config_.client_certificate.empty()) {
    RETURN_IF_ERROR(Identify(context, config_.client_certificate, config_.client_key));
  }
  SSL_CTX_set_cert_verify_callback(context, &Verify, &refusal);
  return {};
}

}  // namespace pliant::kube
