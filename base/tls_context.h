#pragma once

#include <boost/asio/ssl/context.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/http_server.h"
#include "base/result.h"

namespace pliant {

// TLS between Pliant's processes: version 1.3 only, since both ends support it. For the .cc files
// of servers and clients only: pulls asio in.

// A server's certificate and key, always the current content of the files.
class ServerTlsContext {
 public:
  explicit ServerTlsContext(std::variant<TlsFiles, TlsPem> source) : source_(std::move(source)) {}

  // Files that cannot be used, for example half-written ones, leave the context unchanged; only the
  // first call can fail.
  Result<std::shared_ptr<boost::asio::ssl::context>> Current();

 private:
  Result<TlsPem> Read() const;
  std::string Name() const;  // for messages
  static Result<std::shared_ptr<boost::asio::ssl::context>> Make(const TlsPem& pem);

  const std::variant<TlsFiles, TlsPem> source_;
  std::optional<TlsPem> tried_;  // the last files tried, so that bad ones are reported once
  std::shared_ptr<boost::asio::ssl::context> current_;
};

// A context that trusts only `ca_file`.
Result<std::shared_ptr<boost::asio::ssl::context>> MakeClientTlsContext(
    const std::filesystem::path& ca_file);

}  // namespace pliant
