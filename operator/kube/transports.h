#pragma once

#include <functional>
#include <memory>

#include "operator/kube/config.h"
#include "operator/kube/http_transport.h"

namespace pliant::kube {

// The supported HTTP libraries; they pass the same conformance tests.
enum class TransportKind { kCpprest, kLibcurl };

// A transport to the server that `config` names. kInvalid when the certificates or the key cannot
// be read or do not belong together, or the library does not support what `config` needs.
Result<std::unique_ptr<HttpTransport>> MakeTransport(TransportKind kind, const Config& config);

// The same for many servers that each get few requests, such as the coordinators of jobs: threads
// are shared, so that their number does not grow with the servers. Any thread.
using TransportMaker = std::function<Result<std::unique_ptr<HttpTransport>>(const Config& config)>;
TransportMaker TransportsToMany(TransportKind kind);

}  // namespace pliant::kube
