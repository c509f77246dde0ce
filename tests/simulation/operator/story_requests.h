#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/simulation/operator/faulty_transport.h"

// Kinds of the operator's requests that stories interfere with, and the answers they get.
namespace pliant::operator_sim {

inline bool IsDryRun(const kube::HttpRequest& request) {
  return request.target.find("dryRun=All") != std::string::npos;
}

// Template checks (dry runs) are such requests too.
inline bool PostsPod(const kube::HttpRequest& request) {
  return request.method == kube::HttpMethod::kPost &&
         request.target.find("/pods?") != std::string::npos;
}

inline bool MakesLearner(const kube::HttpRequest& request) {
  return PostsPod(request) && !IsDryRun(request) &&
         request.body.find(R"("pliant.dev/learner":)") != std::string::npos;
}

inline bool OpensGate(const kube::HttpRequest& request) {
  return request.method == kube::HttpMethod::kPatch &&
         request.body.find(R"("schedulingGates")") != std::string::npos;
}

// The answer of a server whose admission webhook is down.
inline kube::HttpResponse Refusal(int status, kube::HttpHeaders headers = {}) {
  return {.status = status,
          .headers = std::move(headers),
          .body = nlohmann::json{{"kind", "Status"},
                                 {"status", "Failure"},
                                 {"reason", "InternalError"},
                                 {"message", "failed calling webhook"},
                                 {"code", status}}
                      .dump()};
}

using Matches = std::function<bool(const kube::HttpRequest& request)>;

// Matching requests are answered with this status and not executed.
inline FaultyTransport::Decide AnswerWith(int status, Matches matches) {
  return [status, matches = std::move(matches)](const kube::HttpRequest& request) {
    return matches(request) ? Disposition(Refusal(status)) : Disposition(Fault::kNone);
  };
}

// Matching requests are executed, and the answer is late.
inline FaultyTransport::Decide AnswerLate(Matches matches) {
  return [matches = std::move(matches)](const kube::HttpRequest& request) {
    return matches(request) ? Fault::kLate : Fault::kNone;
  };
}

}  // namespace pliant::operator_sim
