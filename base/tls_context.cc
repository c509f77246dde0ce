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
  Result<TlsPem> pem = Read();
  if (!pem) {
    if (!current_) return std::unexpected(std::move(pem).error());
    return current_;
  }
  if (tried_ == *pem) return current_;
  tried_ = *pem;
  auto made = Make(*pem);
  if (made) {
    if (current_) log::Info("TLS files changed", {{"files", Name()}});
    current_ = *std::move(made);
    return current_;
  }
  Error error = InContext(Name(), std::move(made).error());
  if (!current_) {
    tried_.reset();
    return std::unexpected(std::move(error));
  }
  log::Warning("changed TLS files cannot be used, keeping the old ones",
               {{"error", error.message}});
  return current_;
}

Result<TlsPem> ServerTlsContext::Read() const {
  if (const auto* const pem = std::get_if<TlsPem>(&source_)) return *pem;
  const auto& files = std::get<TlsFiles>(source_);
  ASSIGN_OR_RETURN(std::string certificate, ReadFile(files.certificate));
  ASSIGN_OR_RETURN(std::string key, ReadFile(files.key));
  return TlsPem{.certificate = std::move(certificate), .key = std::move(key)};
}

std::string ServerTlsContext::Name() const {
  const auto* const files = std::get_if<TlsFiles>(&source_);
  if (files == nullptr) return "TLS certificate";
  return "TLS files " + files->certificate.string() + ", " + files->key.string();
}

Result<std::shared_ptr<ssl::context>> ServerTlsContext::Make(const TlsPem& pem) {
  auto context = NewContext(ssl::context::tls_server);
  boost::system::error_code error;
  context->use_certificate_chain(boost::asio::buffer(pem.certificate), error);
  if (error) return Invalid("the certificate is not a PEM certificate: " + error.message());
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
    return Invalid(ca_file.string() + " is not a PEM certificate: " + error.message());
  }
  context->set_verify_mode(ssl::verify_peer, error);
  if (error) return Fail(ErrorCode::kInternal, "TLS: " + error.message());
  return context;
}

}  // namespace pliant
