#include "operator/kube/client.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "operator/kube/json_fields.h"
#include "operator/kube/object_json.h"
#include "operator/kube/token_bucket.h"
#include "operator/kube/token_source.h"

namespace pliant::kube {
namespace {

using nlohmann::json;

constexpr std::string_view kJson = "application/json";

// Text from users may not be UTF-8. The server should reject it; the encoder must not abort.
std::string Encode(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

KubeResult<json> Decode(const std::string& body) {
  json value = ParseWithoutHistory(body);
  if (!value.is_object()) {
    return std::unexpected(KubeError(ErrorCode::kInternal, "the server's answer is no object"));
  }
  return value;
}

class Query {
 public:
  Query& Add(std::string_view name, std::string_view value) {
    if (value.empty()) return *this;
    text_ += text_.empty() ? '?' : '&';
    text_ += name;
    text_ += '=';
    text_ += QueryEscape(value);
    return *this;
  }
  Query& AddSeconds(std::string_view name, Duration duration) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
    return Add(name, std::to_string(seconds));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

json WithType(const json& object, const ResourceType& type) {
  json typed = object;
  if (!typed.contains("apiVersion")) typed["apiVersion"] = ApiVersion(type);
  if (!typed.contains("kind")) typed["kind"] = type.kind;
  return typed;
}

struct WatchLine {
  std::string type;
  json object;
};

KubeResult<WatchLine> DecodeWatchLine(std::string_view line) {
  json event = ParseWithoutHistory(line);
  const auto wrong = [] {
    return std::unexpected(KubeError(ErrorCode::kInternal, "a line of the watch is no event"));
  };
  if (!event.is_object()) return wrong();
  std::string type = StringAt(event, "type");
  const auto object = event.find("object");
  if (type.empty() || object == event.end() || !object->is_object()) return wrong();
  return WatchLine{std::move(type), std::move(*object)};
}

// nullopt for a type that a later server version may add.
std::optional<WatchEventType> ParseWatchEventType(std::string_view type) {
  if (type == "ADDED") return WatchEventType::kAdded;
  if (type == "MODIFIED") return WatchEventType::kModified;
  if (type == "DELETED") return WatchEventType::kDeleted;
  if (type == "BOOKMARK") return WatchEventType::kBookmark;
  return std::nullopt;
}

}  // namespace

class KubeClient::Impl {
 public:
  Impl(HttpTransport& transport, const Config& config, ClientOptions options)
      : transport_(transport),
        options_(std::move(options)),
        token_(config.token, config.token_file),
        bucket_(options_.requests_per_second, options_.burst) {}

  // The body of a successful answer.
  KubeResult<std::string> Call(HttpRequest request, const std::stop_token& stop,
                               const std::optional<Duration>& deadline = std::nullopt) {
    request.deadline =
        deadline.value_or(IsWrite(request) ? options_.write_deadline : options_.read_deadline);
    request.max_body_bytes = options_.max_answer_bytes;
    RETURN_IF_ERROR(WaitForTurn(stop));
    return Exchange(std::move(request),
                    [&](const HttpRequest& ready) { return transport_.Send(ready, stop); });
  }

  KubeResult<std::string> Stream(HttpRequest request, const LineSink& sink, Duration idle,
                                 const std::stop_token& stop) {
    request.deadline = options_.read_deadline;
    const auto send = [&](const HttpRequest& ready) {
      return transport_.Stream(ready, sink, idle, stop);
    };
    return Exchange(std::move(request), send);
  }

  Query WriteQuery(bool dry_run, bool strict = false) const {
    Query query;
    query.Add("fieldManager", options_.field_manager);
    if (dry_run) query.Add("dryRun", "All");
    if (strict) query.Add("fieldValidation", "Strict");
    return query;
  }

 private:
  static bool IsWrite(const HttpRequest& request) { return request.method != HttpMethod::kGet; }

  KubeStatus WaitForTurn(const std::stop_token& stop) {
    std::unique_lock lock(turn_mutex_);
    const Duration wait = bucket_.Reserve(MonotonicNow());
    if (wait > Duration::zero()) {
      std::condition_variable_any never;
      never.wait_for(lock, stop, wait, [] { return false; });
    }
    if (stop.stop_requested()) return std::unexpected(KubeError(ErrorCode::kCancelled, "stopped"));
    return {};
  }

  // Sends, and retries once if the token was rejected and there is a new one. The request's
  // deadline covers both attempts: a lease holder has no more time.
  template <typename SendOnce>
  KubeResult<std::string> Exchange(HttpRequest request, const SendOnce& send_once) {
    request.headers.emplace("Accept", kJson);
    request.headers.emplace("User-Agent", options_.user_agent);
    const TimePoint deadline = MonotonicNow() + request.deadline;
    bool renewed = false;
    while (true) {
      ASSIGN_OR_RETURN(const std::string token, token_.Get(TokenSource::Clock::now()));
      if (!token.empty()) request.headers.insert_or_assign("Authorization", "Bearer " + token);
      if (IsWrite(request) && options_.may_write && !options_.may_write()) {
        return std::unexpected(KubeError(
            ErrorCode::kCancelled,
            "not sent: this process may not write, because it does not lead (or no longer leads)"));
      }
      const TimePoint began = MonotonicNow();
      request.deadline = std::max(deadline - began, Duration::zero());
      Result<HttpResponse> response = send_once(request);
      Report(request, response, MonotonicNow() - began);
      if (!response) return std::unexpected(KubeError(std::move(response).error()));
      if (response->status / 100 == 2) return std::move(response->body);
      if (response->status == 401 && !std::exchange(renewed, true) &&
          token_.RenewAfterRefusal(token, TokenSource::Clock::now())) {
        continue;
      }
      return std::unexpected(ErrorFromResponse(*response));
    }
  }

  void Report(const HttpRequest& request, const Result<HttpResponse>& response,
              Duration took) const {
    if (!options_.on_request) return;
    const std::string code = response ? std::to_string(response->status) : "<error>";
    std::string_view date;
    if (response && !request.target.contains("?watch=")) {
      if (const auto header = response->headers.find("Date"); header != response->headers.end()) {
        date = header->second;
      }
    }
    options_.on_request({.method = request.method, .code = code, .took = took, .date = date});
  }

  HttpTransport& transport_;
  const ClientOptions options_;
  TokenSource token_;  // synchronises itself
  std::mutex turn_mutex_;
  TokenBucket bucket_;  // guarded by turn_mutex_
};

KubeClient::KubeClient(HttpTransport& transport, const Config& config, ClientOptions options)
    : impl_(std::make_unique<Impl>(transport, config, std::move(options))) {}
KubeClient::~KubeClient() = default;

KubeResult<json> KubeClient::Get(const ResourceType& type, const NamespacedName& key,
                                 std::string_view subresource, std::stop_token stop) {
  ASSIGN_OR_RETURN(const std::string body,
                   impl_->Call({.target = ObjectPath(type, key, subresource)}, stop));
  return Decode(body);
}

KubeResult<ListPage> KubeClient::List(const ResourceType& type, const std::string& ns,
                                      const ListOptions& options) {
  Query query;
  query.Add("labelSelector", options.label_selector).Add("fieldSelector", options.field_selector);
  if (options.limit > 0) query.Add("limit", std::to_string(options.limit));
  query.Add("continue", options.continue_token);
  ASSIGN_OR_RETURN(const std::string body,
                   impl_->Call({.target = CollectionPath(type, ns) + query.text()}, options.stop));
  ASSIGN_OR_RETURN(json list, Decode(body));
  ListPage page{.bytes = body.size()};
  if (json& items = list["items"]; items.is_array()) {
    page.items = std::move(items.get_ref<json::array_t&>());
  }
  const json metadata = list.value("metadata", json());
  page.resource_version = StringAt(metadata, "resourceVersion");
  page.continue_token = StringAt(metadata, "continue");
  if (page.resource_version.empty()) {
    return std::unexpected(KubeError(ErrorCode::kInternal, "the server's answer is no list"));
  }
  return page;
}

KubeResult<json> KubeClient::Create(const ResourceType& type, const json& object,
                                    const WriteOptions& options) {
  const NamespacedName key = MetaOf(object).key;
  const std::string path = options.subresource.empty()
                               ? CollectionPath(type, type.namespaced ? key.ns : "")
                               : ObjectPath(type, key, options.subresource);
  ASSIGN_OR_RETURN(
      const std::string body,
      impl_->Call({.method = HttpMethod::kPost,
                   .target = path + impl_->WriteQuery(options.dry_run, options.strict).text(),
                   .headers = {{"Content-Type", std::string(kJson)}},
                   .body = Encode(WithType(object, type))},
                  options.stop, options.deadline));
  return Decode(body);
}

KubeResult<json> KubeClient::Update(const ResourceType& type, const json& object,
                                    const WriteOptions& options) {
  const std::string path = ObjectPath(type, MetaOf(object).key, options.subresource);
  ASSIGN_OR_RETURN(const std::string body,
                   impl_->Call({.method = HttpMethod::kPut,
                                .target = path + impl_->WriteQuery(options.dry_run).text(),
                                .headers = {{"Content-Type", std::string(kJson)}},
                                .body = Encode(WithType(object, type))},
                               options.stop, options.deadline));
  return Decode(body);
}

KubeResult<json> KubeClient::Patch(const ResourceType& type, const NamespacedName& key,
                                   const json& patch, const WriteOptions& options) {
  const Query query = impl_->WriteQuery(options.dry_run);
  ASSIGN_OR_RETURN(const std::string body,
                   impl_->Call({.method = HttpMethod::kPatch,
                                .target = ObjectPath(type, key, options.subresource) + query.text(),
                                .headers = {{"Content-Type", "application/merge-patch+json"}},
                                .body = Encode(patch)},
                               options.stop, options.deadline));
  return Decode(body);
}

KubeStatus KubeClient::Delete(const ResourceType& type, const NamespacedName& key,
                              const DeleteOptions& options) {
  json body = {{"apiVersion", "v1"},
               {"kind", "DeleteOptions"},
               {"propagationPolicy", options.foreground ? "Foreground" : "Background"}};
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) {
    body["preconditions"]["resourceVersion"] = options.resource_version;
  }
  if (options.grace_period) {
    body["gracePeriodSeconds"] =
        std::chrono::ceil<std::chrono::seconds>(*options.grace_period).count();
  }
  if (options.dry_run) body["dryRun"] = {"All"};
  RETURN_IF_ERROR(impl_->Call({.method = HttpMethod::kDelete,
                               .target = ObjectPath(type, key),
                               .headers = {{"Content-Type", std::string(kJson)}},
                               .body = Encode(body)},
                              options.stop));
  return {};
}

KubeStatus KubeClient::Watch(const ResourceType& type, const std::string& ns,
                             const WatchOptions& options, const WatchSink& sink,
                             std::stop_token stop) {
  Query query;
  query.Add("watch", "1")
      .Add("allowWatchBookmarks", "true")
      .AddSeconds("timeoutSeconds", options.timeout)
      .Add("resourceVersion", options.resource_version)
      .Add("sendInitialEvents", options.initial_events ? "true" : "")
      .Add("resourceVersionMatch", options.initial_events ? "NotOlderThan" : "")
      .Add("labelSelector", options.label_selector)
      .Add("fieldSelector", options.field_selector);
  std::optional<KubeError> failure;
  const auto on_line = [&](std::string_view line) {
    if (line.empty()) return true;
    KubeResult<WatchLine> event = DecodeWatchLine(line);
    if (!event) {
      failure = event.error();
      return false;
    }
    if (event->type == "ERROR") {
      failure = ErrorFromStatus(Encode(event->object));
      return false;
    }
    const auto known = ParseWatchEventType(event->type);
    return !known || sink(*known, event->object);
  };
  RETURN_IF_ERROR(
      impl_->Stream({.target = CollectionPath(type, ns) + query.text(), .on_open = options.on_open},
                    on_line, options.idle, stop));
  if (failure) return std::unexpected(*failure);
  return {};
}

}  // namespace pliant::kube
