// Following objects of a real API server through all interruptions of a watch.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/real_event_loop.h"
#include "operator/kube/informer.h"
#include "tests/integration/api_server.h"
#include "tests/integration/widgets.h"
#include "tests/kube/kinds.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

using nlohmann::json;
using testing::Contains;

class KubeWatchTest : public ApiServerTest {
 protected:
  std::string Version() {
    const auto list = client().List(kConfigMaps, ns());
    return list ? list->resource_version : "";
  }
};

TEST_F(KubeWatchTest, TellsOfEveryChangeInOrder) {
  const std::string start = Version();
  ASSERT_TRUE(client().Create(kConfigMaps, ConfigMap("a")));
  ASSERT_TRUE(client().Patch(kConfigMaps, Key("a"), {{"data", {{"value", "y"}}}}));
  ASSERT_TRUE(client().Delete(kConfigMaps, Key("a")));
  std::vector<WatchEventType> seen;
  const auto watched = client().Watch(
      kConfigMaps, ns(), {.field_selector = "metadata.name=a", .resource_version = start},
      [&](WatchEventType type, json&) {
        seen.push_back(type);
        return type != WatchEventType::kDeleted;
      });
  EXPECT_TRUE(watched) << watched.error();
  EXPECT_THAT(seen, testing::ElementsAre(WatchEventType::kAdded, WatchEventType::kModified,
                                         WatchEventType::kDeleted));
}

TEST_F(KubeWatchTest, ABookmarkComesBeforeTheServerEndsTheWatch) {
  const std::string start = Version();
  std::vector<WatchEventType> seen;
  const auto watched = client().Watch(
      kConfigMaps, ns(),
      {.field_selector = "metadata.name=none", .resource_version = start, .timeout = 8s},
      [&](WatchEventType type, json& object) {
        seen.push_back(type);
        EXPECT_FALSE(MetaOf(object).resource_version.empty());
        return true;
      });
  EXPECT_TRUE(watched) << "the watch must end orderly: " << watched.error();
  EXPECT_THAT(seen, Contains(WatchEventType::kBookmark));
}

TEST_F(KubeWatchTest, InitialEventsEndWithABookmark) {
  for (const char* name : {"a", "b"}) ASSERT_TRUE(client().Create(kConfigMaps, ConfigMap(name)));
  std::vector<std::string> told;
  const auto watched =
      client().Watch(kConfigMaps, ns(),
                     {.field_selector = "metadata.name!=kube-root-ca.crt", .initial_events = true},
                     [&](WatchEventType type, json& object) {
                       if (type == WatchEventType::kAdded) told.push_back(MetaOf(object).key.name);
                       if (type != WatchEventType::kBookmark) return true;
                       told.push_back(object.at("metadata")
                                          .at("annotations")
                                          .at("k8s.io/initial-events-end")
                                          .get<std::string>());
                       EXPECT_FALSE(MetaOf(object).resource_version.empty());
                       return false;
                     });
  EXPECT_TRUE(watched) << watched.error();
  std::ranges::sort(told);
  EXPECT_THAT(told, testing::ElementsAre("a", "b", "true"));
}

TEST_F(KubeWatchTest, APositionFromLongAgoIsGone) {
  Install(WidgetDefinition());
  const auto watched = client().Watch(kWidgets, ns(), {.resource_version = "1"},
                                      [](WatchEventType, json&) { return true; });
  ASSERT_FALSE(watched);
  EXPECT_EQ(watched.error().code, ErrorCode::kGone) << watched.error();
}

TEST_F(KubeWatchTest, AStopEndsAQuietWatchAtOnce) {
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(200ms);
    stop.request_stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  const auto watched = client().Watch(
      kConfigMaps, ns(), {.field_selector = "metadata.name=none", .resource_version = Version()},
      [](WatchEventType, json&) { return true; }, stop.get_token());
  EXPECT_EQ(watched.error().code, ErrorCode::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

// Ends watches on request, and can start the next one from a position that the server no longer
// has.
class CuttingTransport final : public HttpTransport {
 public:
  explicit CuttingTransport(HttpTransport& under) : under_(under) {}

  // Ends the running watches; new ones fail until MendFromLongAgo.
  void Cut() {
    const std::lock_guard lock(mutex_);
    cut_ = true;
    stop_.request_stop();
  }
  // The next watch asks for changes since version 1, which the server no longer has.
  void MendFromLongAgo() {
    const std::lock_guard lock(mutex_);
    cut_ = false;
    from_long_ago_ = true;
    stop_ = {};
  }
  // Watches that are not lists.
  int watches() const { return watches_; }
  int pages() const { return pages_; }
  int streamed_lists() const { return streamed_lists_; }

  Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) override {
    if (request.method == HttpMethod::kGet) ++pages_;
    return under_.Send(request, stop);
  }
  Result<HttpResponse> Stream(const HttpRequest& request, const LineSink& sink, Duration idle,
                              std::stop_token stop) override {
    HttpRequest sent = request;
    std::stop_token cut;
    {
      const std::lock_guard lock(mutex_);
      if (cut_) return Fail(ErrorCode::kUnavailable, "cut off");
      cut = stop_.get_token();
      const bool list = sent.target.find("sendInitialEvents=") != std::string::npos;
      ++(list ? streamed_lists_ : watches_);
      if (!list && std::exchange(from_long_ago_, false)) {
        const std::size_t begin = sent.target.find("resourceVersion=") + 16;
        sent.target.replace(begin, sent.target.find('&', begin) - begin, "1");
      }
    }
    std::stop_source either;
    const std::stop_callback on_stop(stop, [&] { either.request_stop(); });
    const std::stop_callback on_cut(cut, [&] { either.request_stop(); });
    auto ended = under_.Stream(sent, sink, idle, either.get_token());
    if (cut.stop_requested()) return Fail(ErrorCode::kUnavailable, "cut off");
    return ended;
  }

 private:
  HttpTransport& under_;
  std::mutex mutex_;
  bool cut_ = false;            // guarded by mutex_
  bool from_long_ago_ = false;  // guarded by mutex_
  std::stop_source stop_;       // guarded by mutex_
  std::atomic<int> watches_ = 0;
  std::atomic<int> pages_ = 0;
  std::atomic<int> streamed_lists_ = 0;
};

struct Widget {
  int size = 0;
};

Result<Widget> DecodeWidget(const json& object) {
  return Widget{.size = object.at("spec").value("size", 0)};
}

class KubeInformerTest : public KubeWatchTest, public testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(Lists, KubeInformerTest, testing::Bool(), [](const auto& streamed) {
  return streamed.param ? "Streamed" : "InPages";
});

TEST_P(KubeInformerTest, MissesNothingThroughCutsAndExpiry) {
  Install(WidgetDefinition());
  const auto widget = [&](const std::string& name, int size) -> json {
    return {{"metadata", Meta(name)}, {"spec", {{"size", size}}}};
  };
  for (const char* name : {"kept", "changed", "deleted", "replaced"}) {
    ASSERT_TRUE(client().Create(kWidgets, widget(name, 1)));
  }

  CuttingTransport cutting(transport());
  KubeClient watcher(cutting, config(), {.requests_per_second = 0});
  RealEventLoop loop;
  std::vector<std::string> told;
  std::vector<std::string> restarts;
  std::mutex restarts_mutex;
  Informer<Widget> widgets(loop, DecodeWidget);
  widgets.store().OnChange([&](const Store<Widget>::Change& change) {
    const auto show = [](const auto& w) {
      return w ? std::to_string(w->size) : std::string("none");
    };
    told.push_back(change.key.name + ": " + show(change.before) + " > " + show(change.after));
  });
  widgets.Start(watcher, kWidgets,
                {.ns = ns(),
                 .stream_lists = GetParam(),
                 .timing = {.backoff = {.first = 20ms, .most = 20ms}}},
                [&](std::string_view reason) {
                  const std::lock_guard lock(restarts_mutex);
                  restarts.emplace_back(reason);
                });
  // Runs the control loop on this thread until `condition` holds.
  const auto run_until = [&](const std::function<bool()>& condition) {
    bool held = false;
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    loop.context().restart();
    std::function<void()> poll = [&] {
      held = condition();
      if (held || std::chrono::steady_clock::now() > deadline) return loop.Stop();
      loop.PostAfter(5ms, poll);
    };
    loop.Post(poll);
    loop.Run();
    return held;
  };
  ASSERT_TRUE(run_until([&] { return widgets.store().synced() && cutting.watches() == 1; }));
  EXPECT_EQ(widgets.store().size(), 4u);

  ASSERT_TRUE(client().Create(kWidgets, widget("added", 1)));
  ASSERT_TRUE(run_until([&] { return widgets.store().size() == 5; }));

  cutting.Cut();
  told.clear();
  ASSERT_TRUE(client().Delete(kWidgets, Key("deleted")));
  ASSERT_TRUE(client().Delete(kWidgets, Key("replaced")));
  ASSERT_TRUE(client().Create(kWidgets, widget("replaced", 2)));
  ASSERT_TRUE(client().Patch(kWidgets, Key("changed"), {{"spec", {{"size", 3}}}}));
  cutting.MendFromLongAgo();
  ASSERT_TRUE(run_until([&] { return widgets.store().Find(Key("deleted")) == nullptr; }));
  EXPECT_THAT(told, testing::UnorderedElementsAre("deleted: 1 > none", "changed: 1 > 3",
                                                  "replaced: 1 > none", "replaced: none > 2"));
  {
    const std::lock_guard lock(restarts_mutex);
    EXPECT_THAT(restarts, Contains("Unavailable"));
    EXPECT_THAT(restarts, Contains("Gone")) << "the server's own answer to the old position";
  }

  EXPECT_EQ(cutting.pages(), GetParam() ? 0 : 2) << "the server streams lists";
  EXPECT_EQ(cutting.streamed_lists(), GetParam() ? 2 : 0);

  // The watch delivers new changes again.
  ASSERT_TRUE(client().Delete(kWidgets, Key("kept")));
  EXPECT_TRUE(run_until([&] { return widgets.store().Find(Key("kept")) == nullptr; }));
}

}  // namespace
}  // namespace pliant::kube
