#include "operator/kube/reflector.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>

#include "base/log.h"
#include "operator/kube/json_fields.h"

namespace pliant::kube {
namespace {

void Sleep(Duration duration, const std::stop_token& stop) {
  if (duration <= Duration::zero()) return;
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any never;
  never.wait_for(lock, stop, duration, [] { return false; });
}

bool EndsInitialEvents(const nlohmann::json& bookmark) {
  const auto annotations = bookmark.value("metadata", nlohmann::json::object())
                               .value("annotations", nlohmann::json::object());
  return annotations.is_object() && StringAt(annotations, "k8s.io/initial-events-end") == "true";
}

}  // namespace

ReflectorSteps::ReflectorSteps(KubeClient& client, const ResourceType& type,
                               ReflectorOptions options, ReflectorSink sink,
                               std::function<TimePoint()> clock)
    : client_(client),
      type_(type),
      options_(std::move(options)),
      sink_(std::move(sink)),
      clock_(std::move(clock)),
      policy_(options_.timing, options_.stream_lists),
      step_(policy_.Start()) {}

Duration ReflectorSteps::Next(double random, const std::stop_token& stop) {
  if (step_.action == ReflectorPolicy::Action::kList) {
    const KubeResult<std::string> resource_version = List(stop);
    if (stop.stop_requested()) return {};
    if (!resource_version) Failed("list", resource_version.error());
    step_ = resource_version ? policy_.AfterList(*resource_version, random)
                             : policy_.AfterListError(resource_version.error(), clock_(), random);
  } else if (step_.action == ReflectorPolicy::Action::kStreamList) {
    const KubeResult<std::optional<std::string>> resource_version = StreamList(stop);
    if (stop.stop_requested()) return {};
    if (resource_version && *resource_version) {
      step_ = policy_.AfterList(**resource_version, random);
    } else {
      std::optional<KubeError> error;
      if (!resource_version) error = resource_version.error();
      step_ = policy_.AfterStreamedListError(error, clock_(), random);
      if (policy_.streams_lists()) {
        Failed("list", *error);
      } else {
        log::Info("the server does not support streamed lists; listing in pages",
                  {{"kind", type_.kind}});
      }
    }
  } else {
    const TimePoint began = clock_();
    const KubeStatus watched = WatchFrom(step_, stop);
    if (stop.stop_requested()) return {};
    std::optional<KubeError> error;
    if (!watched) {
      error = watched.error();
      // An expired resource version is normal: it is not logged.
      error->code == ErrorCode::kGone ? Interrupted() : Failed("watch", *error);
    }
    step_ = policy_.AfterWatch(error, began, clock_(), random);
  }
  if (!step_.restart_reason.empty() && sink_.on_restart) sink_.on_restart(step_.restart_reason);
  return step_.wait;
}

namespace {

// Objects of tenants may have a megabyte each, and an object takes several times as much memory as
// its text: pages are to have about this many bytes.
constexpr std::size_t kPageBytes = std::size_t{4} << 20;
constexpr std::size_t kFirstPage = 100;  // objects
constexpr std::size_t kMaxPage = 500;

int NextLimit(const ListPage& page) {
  const std::size_t fit = page.items.size() * kPageBytes / std::max<std::size_t>(page.bytes, 1);
  return static_cast<int>(std::clamp<std::size_t>(fit, 1, kMaxPage));
}

}  // namespace

KubeResult<std::string> ReflectorSteps::List(const std::stop_token& stop) {
  ListOptions options{.label_selector = options_.label_selector,
                      .field_selector = options_.field_selector,
                      .limit = kFirstPage,
                      .stop = stop};
  sink_.on_list_begin();
  while (true) {
    KubeResult<ListPage> page = client_.List(type_, options_.ns, options);
    if (!page && page.error().code == ErrorCode::kGone && !options.continue_token.empty()) {
      // The continue token expired between two pages: fetch the whole list in one page.
      options.limit = 0;
      options.continue_token.clear();
      sink_.on_list_begin();
      continue;
    }
    if (!page) return std::unexpected(std::move(page).error());
    options.limit = NextLimit(*page);
    for (const nlohmann::json& object : page->items) sink_.on_listed(object);
    if (page->continue_token.empty()) {
      EndList();
      return std::move(page->resource_version);
    }
    options.continue_token = std::move(page->continue_token);
  }
}

KubeResult<std::optional<std::string>> ReflectorSteps::StreamList(const std::stop_token& stop) {
  const WatchOptions options{.label_selector = options_.label_selector,
                             .field_selector = options_.field_selector,
                             .initial_events = true,
                             .timeout = options_.timing.min_watch,
                             .idle = options_.timing.list_idle};
  std::optional<std::string> resource_version;
  bool knows_no_lists = false;
  std::map<NamespacedName, nlohmann::json> deleted_meanwhile;
  sink_.on_list_begin();
  const auto on_event = [&](WatchEventType event, nlohmann::json& object) {
    switch (event) {
      case WatchEventType::kAdded:
      case WatchEventType::kModified:
        deleted_meanwhile.erase(MetaOf(object).key);
        sink_.on_listed(object);
        return true;
      case WatchEventType::kDeleted:
        deleted_meanwhile.insert_or_assign(MetaOf(object).key, std::move(object));
        return true;
      case WatchEventType::kBookmark:
        // The first bookmark ends the list. If it has no such annotation, the server does not
        // support streamed lists.
        if (EndsInitialEvents(object)) resource_version = MetaOf(object).resource_version;
        knows_no_lists = !resource_version;
        return false;
    }
    return true;
  };
  const KubeStatus watched = client_.Watch(type_, options_.ns, options, on_event, stop);
  if (resource_version) {
    EndList();
    for (const auto& [key, object] : deleted_meanwhile) sink_.on_deleted(object);
    return resource_version;
  }
  if (!watched) return std::unexpected(watched.error());
  if (knows_no_lists) return std::nullopt;
  // The list timed out, or the server is stopping: the next list may be streamed again.
  return std::unexpected(KubeError(ErrorCode::kUnavailable, "the streamed list has no end"));
}

void ReflectorSteps::EndList() {
  has_listed_ = true;
  missing_since_.reset();
  sink_.on_list_end();
  Resumed();
  Recovered();
}

KubeStatus ReflectorSteps::WatchFrom(const ReflectorPolicy::Step& step,
                                     const std::stop_token& stop) {
  const WatchOptions options{.label_selector = options_.label_selector,
                             .field_selector = options_.field_selector,
                             .resource_version = step.resource_version,
                             .timeout = step.watch_timeout,
                             .idle = options_.timing.watch_idle,
                             .on_open = [this] {
                               Resumed();
                               Allowed();  // a list alone does not keep the store up to date
                             }};
  const auto on_event = [this](WatchEventType event, const nlohmann::json& object) {
    switch (event) {
      case WatchEventType::kAdded:
      case WatchEventType::kModified:
        sink_.on_changed(object);
        break;
      case WatchEventType::kDeleted:
        sink_.on_deleted(object);
        break;
      case WatchEventType::kBookmark:
        break;
    }
    policy_.OnEvent(MetaOf(object).resource_version);
    Recovered();
    return true;
  };
  return client_.Watch(type_, options_.ns, options, on_event, stop);
}

void ReflectorSteps::Interrupted() {
  if (!std::exchange(interrupted_, true) && sink_.on_interrupted) sink_.on_interrupted();
}

void ReflectorSteps::Resumed() {
  if (std::exchange(interrupted_, false) && sink_.on_resumed) sink_.on_resumed();
}

void ReflectorSteps::Refused() {
  const TimePoint now = clock_();
  if (!refusals_began_) refusals_began_ = now;
  if (refused_ || now - *refusals_began_ < options_.timing.min_refused) return;
  refused_ = true;
  if (sink_.on_refused) sink_.on_refused(true);
}

// A server that starts, or whose definitions are applied again, may lack the kind for a moment.
void ReflectorSteps::Missing() {
  const TimePoint now = clock_();
  if (!missing_since_) missing_since_ = now;
  if (has_listed_ && now - *missing_since_ < options_.timing.min_missing) return;
  sink_.on_list_begin();
  sink_.on_list_end();
  Resumed();
}

void ReflectorSteps::Allowed() {
  refusals_began_.reset();
  if (std::exchange(refused_, false) && sink_.on_refused) sink_.on_refused(false);
}

void ReflectorSteps::Failed(std::string_view doing, const KubeError& error) {
  Interrupted();
  // 401 is different: the server does not accept our credentials for any request.
  if (error.http_status == 403) {
    Refused();
  } else {
    refusals_began_.reset();
  }
  // Then the role has no right to read the kind.
  const bool never_allowed = refused_ && !has_listed_;
  if (options_.kind_is_optional && (error.http_status == 404 || never_allowed)) Missing();
  if (failure_ == error.message) return;
  failure_ = error.message;
  log::Warning("cannot list or watch objects; retrying", {{"kind", type_.kind},
                                                          {"namespace", options_.ns},
                                                          {"doing", doing},
                                                          {"error", error.message}});
}

void ReflectorSteps::Recovered() {
  if (failure_.empty()) return;
  failure_.clear();
  log::Info("listing and watching objects again",
            {{"kind", type_.kind}, {"namespace", options_.ns}});
}

Reflector::Reflector(KubeClient& client, const ResourceType& type, ReflectorOptions options,
                     ReflectorSink sink)
    : steps_(client, type, std::move(options), std::move(sink)),
      thread_([this](const std::stop_token& stop) {
        std::mt19937_64 random{std::random_device()()};
        while (!stop.stop_requested()) {
          Sleep(steps_.Next(std::uniform_real_distribution()(random), stop), stop);
        }
      }) {}

}  // namespace pliant::kube
