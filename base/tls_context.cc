#include "base/tls_context.h"

#include <utility>

#include <openssl/ssl.h>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"

namespace pliant {
namespace {

namespace ssl = boost::asio::ssl;

std::shared_ptr<ssl::context> NewContext(ssl::context::method method) {
  auto context = std::make_shared<ssl::context>(method);
  CHECK(SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_3_VERSION) == 1,
        "OpenSSL speaks TLS 1.3");
  return context;
}

}  // namespace

Result<std::shared_ptr<ssl::context>> ServerTlsContext::Current() {
  Result<Pem> pem = Read();
  if (!pem) {
    if (!current_) return std::unexpected(std::move(pem).error());
    return current_;
  }
  if (tried_ == *pem) return current_;
  tried_ = *pem;
  auto made = Make(*pem);
  if (made) {
    if (current_) log::Info("TLS files changed", {{"certificate", files_.certificate.string()}});
    current_ = *std::move(made);
    return current_;
  }
  Error error = InContext("TLS files " + files_.certificate.string() + ", " + files_.key.string(),
                          std::move(made).error());
  if (!current_) {
    tried_.reset();
    return std::unexpected(std::move(error));
  }
  log::Warning("changed TLS files cannot be used, keeping the old ones",
               {{"error", error.message}});
  return current_;
}

Result<ServerTlsContext::Pem> ServerTlsContext::Read() const {
  ASSIGN_OR_RETURN(std::string certificate, ReadFile(files_.certificate));
  ASSIGN_OR_RETURN(std::string key, ReadFile(files_.key));
  return Pem{.certificate = std::move(certificate), .key = std::move(key)};
}

Result<std::shared_ptr<ssl::context>> ServerTlsContext::Make(const Pem& pem) {
  auto context = NewContext(ssl::context::tls_server);
  boost::system::error_code error;
  context->use_certificate_chain(boost::asio::buffer(pem.certificate), error);
  if (error) return Invalid("the certificate is no PEM certificate: " + error.message());
  context->use_private_key(boost::asio::buffer(pem.key), ssl::context::pem, error);
  if (error) return Invalid("the key does not fit the certificate: " + error.message());
  return context;
}

Result<std::shared_ptr<ssl::context>> MakeClientTlsContext(const std::filesystem::path& ca_file) {
  ASSIGN_OR_RETURN(const std::string ca, ReadFile(ca_file));
  auto context = NewContext(ssl::context::tls_client);
  boost::system::error_code error;
  context->add_certificate_authority(boost::asio::buffer(ca), error);
  if (error) {
    return Invalid(ca_file.string() + " is no PEM certificate: " + error.message());
  }
  context->set_verify_mode(ssl::verify_peer, error);
  if (error) return Fail(ErrorCode::kInternal, "TLS: " + error.message());
  return context;
}

}  // namespace pliant
