#include "operator/kube/informer.h"

#include <memory>
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/real_event_loop.h"
#include "base/sim_event_loop.h"
#include "tests/kube/scripted_transport.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

using nlohmann::json;
using testing::ElementsAre;
using StreamEnd = ScriptedTransport::StreamEnd;

struct Pod {
  std::string phase;
};

Result<Pod> DecodePod(const json& object) {
  const auto phase = object.find("phase");
  if (phase == object.end()) return Invalid("phase is missing");
  return Pod{phase->get<std::string>()};
}

json PodObject(const std::string& name, const std::string& version, const std::string& phase) {
  return {{"metadata", {{"name", name}, {"uid", "uid-" + name}, {"resourceVersion", version}}},
          {"phase", phase}};
}

Result<HttpResponse> List(const std::string& version, std::vector<json> items,
                          const std::string& next = "") {
  const json list = {{"items", std::move(items)},
                     {"metadata", {{"resourceVersion", version}, {"continue", next}}}};
  return HttpResponse{.status = 200, .headers = {}, .body = list.dump()};
}

std::string Event(const std::string& type, const json& object) {
  return json{{"type", type}, {"object", object}}.dump();
}

// A reflector, its store and the control loop, against a scripted server. Delays are one
// millisecond.
class InformerTest : public testing::Test {
 protected:
  InformerTest() {
    informer_.store().OnChange([this](const Store<Pod>::Change& change) {
      const auto show = [](const auto& pod) { return pod ? pod->phase : std::string("none"); };
      told_.push_back(change.key.name + ": " + show(change.before) + " > " + show(change.after));
    });
    options_.timing.backoff = {.first = 1ms, .most = 1ms};
  }

  // Runs until all scripted answers were used and their changes have arrived.
  void Run() {
    informer_.Start(client_, kPods, options_,
                    [this](std::string_view reason) { restarts_.emplace_back(reason); });
    ASSERT_TRUE(transport_.WaitUntilDone(5s));
    // The last stream's lines arrive after it was requested: wait for the marker object "end".
    std::function<void()> poll = [&] {
      if (informer_.store().Find({"", "end"})) return loop_.Stop();
      loop_.PostAfter(1ms, poll);
    };
    loop_.PostAfter(5s, [this] { FAIL() << "the end did not arrive", loop_.Stop(); });
    loop_.Post(poll);
    loop_.Run();
    std::erase(told_, "end: none > ");
  }

  // The last stream of a script, with the marker object.
  void HoldAfter(const std::string& target, std::vector<std::string> lines = {}) {
    lines.push_back(Event("ADDED", PodObject("end", "999", "")));
    transport_.AnswerStream(target, std::move(lines), StreamEnd::kHold);
  }
  static std::string WatchFrom(const std::string& version) {
    return "/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=" +
           version;
  }

  RealEventLoop loop_;
  ScriptedTransport transport_;
  KubeClient client_{transport_, Config{.server = "https://a"}, {.requests_per_second = 0}};
  ReflectorOptions options_{.stream_lists = false,
                            .timing = {.min_watch = 300s, .max_watch = 300s}};
  std::vector<std::string> told_;
  std::vector<std::string> restarts_;
  Informer<Pod> informer_{loop_, DecodePod};
};

TEST_F(InformerTest, FollowsAListByAWatch) {
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods?limit=100",
                    List("10", {PodObject("a", "3", "Pending"), PodObject("b", "4", "Running")}));
  HoldAfter(WatchFrom("10"), {Event("MODIFIED", PodObject("a", "11", "Running")),
                              Event("DELETED", PodObject("b", "12", "Running")),
                              Event("ADDED", PodObject("c", "13", "Pending"))});
  Run();
  EXPECT_THAT(told_, ElementsAre("a: none > Pending", "b: none > Running", "a: Pending > Running",
                                 "b: Running > none", "c: none > Pending"));
  EXPECT_TRUE(informer_.store().synced());
  EXPECT_THAT(restarts_, ElementsAre());
}

TEST_F(InformerTest, ContinuesFromTheLastBookmarkWhenTheConnectionBreaks) {
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods", List("10", {}));
  transport_.AnswerStream(WatchFrom("10"),
                          {Event("BOOKMARK", {{"metadata", {{"resourceVersion", "50"}}}})},
                          StreamEnd::kBroken);
  transport_.AnswerStream(WatchFrom("50"), {}, StreamEnd::kIdle);
  HoldAfter(WatchFrom("50"));
  Run();
  EXPECT_THAT(restarts_, ElementsAre("Unavailable", "Timeout"));
}

TEST_F(InformerTest, ListsAgainAfterAnExpiredPositionAndReportsMissedDeletions) {
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods?limit",
                    List("10", {PodObject("a", "3", "Running"), PodObject("b", "4", "Running")}));
  transport_.AnswerStream(
      WatchFrom("10"), {Event("ERROR", {{"kind", "Status"}, {"code", 410}, {"reason", "Expired"}})},
      StreamEnd::kOrderly);
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods?limit",
                    List("90", {PodObject("b", "80", "Failed"), PodObject("c", "81", "Pending")}));
  HoldAfter(WatchFrom("90"));
  Run();
  EXPECT_THAT(told_, ElementsAre("a: none > Running", "b: none > Running", "a: Running > none",
                                 "b: Running > Failed", "c: none > Pending"));
  EXPECT_THAT(restarts_, ElementsAre("Gone"));
}

TEST_F(InformerTest, AListThatBreaksOffHalfWayDeletesNothing) {
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods?limit=100",
                    List("10", {PodObject("a", "3", "Running"), PodObject("b", "4", "Running")}));
  transport_.AnswerStream(WatchFrom("10"), {Event("ERROR", {{"code", 410}})}, StreamEnd::kOrderly);
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods?limit=100",
                    List("20", {PodObject("a", "3", "Running")}, "next"));
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods?limit=500&continue=next",
                    Fail(ErrorCode::kUnavailable, "reset"));
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods?limit=100",
                    List("21", {PodObject("a", "3", "Running")}, "next"));
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods?limit=500&continue=next",
                    HttpResponse{.status = 410});
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods",
                    List("22", {PodObject("a", "3", "Running"), PodObject("b", "4", "Running")}));
  HoldAfter(WatchFrom("22"));
  Run();
  EXPECT_THAT(told_, ElementsAre("a: none > Running", "b: none > Running"));
  EXPECT_THAT(restarts_, ElementsAre("Gone", "Unavailable"));
}

constexpr const char* kStream =
    "/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=300&sendInitialEvents=true&"
    "resourceVersionMatch=NotOlderThan";

std::string EndOfList(const std::string& version) {
  return Event(
      "BOOKMARK",
      {{"metadata",
        {{"resourceVersion", version}, {"annotations", {{"k8s.io/initial-events-end", "true"}}}}}});
}

TEST_F(InformerTest, AStreamedListEndsWithItsBookmark) {
  options_.stream_lists = true;
  transport_.AnswerStream(kStream,
                          {Event("ADDED", PodObject("a", "3", "Pending")),
                           Event("ADDED", PodObject("b", "4", "Running")), EndOfList("10")},
                          StreamEnd::kHold);
  HoldAfter(WatchFrom("10"), {Event("DELETED", PodObject("b", "12", "Running"))});
  Run();
  EXPECT_THAT(told_, ElementsAre("a: none > Pending", "b: none > Running", "b: Running > none"));
  EXPECT_THAT(restarts_, ElementsAre());
}

TEST_F(InformerTest, ChangesWithinAStreamedListCount) {
  options_.stream_lists = true;
  transport_.AnswerStream(kStream,
                          {Event("ADDED", PodObject("a", "3", "Pending")),
                           Event("ADDED", PodObject("b", "4", "Running")),
                           Event("ADDED", PodObject("c", "5", "Running")),
                           Event("MODIFIED", PodObject("a", "6", "Running")),
                           Event("DELETED", PodObject("b", "7", "Running")),
                           Event("DELETED", PodObject("c", "8", "Running")),
                           Event("ADDED", PodObject("c", "9", "Pending")), EndOfList("10")},
                          StreamEnd::kHold);
  HoldAfter(WatchFrom("10"));
  Run();
  const Store<Pod>& store = informer_.store();
  EXPECT_EQ(store.Find({"", "a"})->phase, "Running");
  EXPECT_EQ(store.Find({"", "b"}), nullptr);
  EXPECT_EQ(store.Find({"", "c"})->phase, "Pending");
}

TEST_F(InformerTest, AServerThatStreamsNoListsIsAskedForPages) {
  options_.stream_lists = true;
  const std::vector<std::string> a = {Event("ADDED", PodObject("a", "3", "Pending"))};
  std::vector<std::string> with_bookmark = a;
  with_bookmark.push_back(Event("BOOKMARK", {{"metadata", {{"resourceVersion", "10"}}}}));
  transport_.AnswerStream(kStream, with_bookmark, StreamEnd::kHold);
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods?limit=100",
                    List("10", {PodObject("a", "3", "Pending")}));
  transport_.AnswerStream(WatchFrom("10"), {Event("ERROR", {{"code", 410}})}, StreamEnd::kOrderly);
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods?limit=100",
                    List("20", {PodObject("b", "14", "Running")}));
  HoldAfter(WatchFrom("20"));
  Run();
  EXPECT_THAT(told_, ElementsAre("a: none > Pending", "a: Pending > none", "b: none > Running"));
  EXPECT_THAT(restarts_, ElementsAre("Gone")) << "the fallback to pages is no error";
}

TEST_F(InformerTest, AStreamedListThatIsRefusedOrBreaksOffDeletesNothing) {
  options_.stream_lists = true;
  transport_.AnswerStream(kStream, {Event("ADDED", PodObject("a", "3", "Running")), EndOfList("9")},
                          StreamEnd::kHold);
  transport_.AnswerStream(WatchFrom("9"), {Event("ERROR", {{"code", 410}})}, StreamEnd::kOrderly);
  transport_.AnswerStream(kStream, {}, StreamEnd::kBroken);
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods?limit=100",
                    List("10", {PodObject("a", "3", "Running")}));
  transport_.AnswerStream(WatchFrom("10"), {Event("ERROR", {{"code", 410}})}, StreamEnd::kOrderly);
  transport_.AnswerStream(kStream, {Event("ADDED", PodObject("b", "4", "Running"))},
                          StreamEnd::kOrderly);  // longer than the watch timeout
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods?limit=100",
                    List("15", {PodObject("a", "3", "Running")}));
  transport_.AnswerStream(WatchFrom("15"), {Event("ERROR", {{"code", 410}})}, StreamEnd::kOrderly);
  transport_.RefuseStream(kStream, HttpResponse{.status = 422});
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods?limit=100",
                    List("20", {PodObject("a", "3", "Running")}));
  HoldAfter(WatchFrom("20"));
  Run();
  EXPECT_THAT(told_, ElementsAre("a: none > Running"));
  EXPECT_THAT(restarts_, ElementsAre("Gone", "Unavailable", "Gone", "Unavailable", "Gone"));
}

TEST_F(InformerTest, AnObjectThatCannotBeDecodedKeepsItsLastState) {
  json unknown = PodObject("a", "11", "");
  unknown.erase("phase");
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods", List("10", {PodObject("a", "3", "Running")}));
  HoldAfter(WatchFrom("10"), {Event("MODIFIED", unknown)});
  Run();
  EXPECT_EQ(informer_.store().Find({"", "a"})->phase, "Running");
}

TEST_F(InformerTest, NamespacesAreFollowedEachByItself) {
  const auto object = [](const std::string& ns, const std::string& name) {
    json pod = PodObject(name, "3", "Running");
    pod["metadata"]["namespace"] = ns;
    return pod;
  };
  Informer<Pod> informer(loop_, DecodePod);
  ReflectorSink red = informer.Sink({}, "red");
  ReflectorSink blue = informer.Sink({}, "blue");
  informer.store().ExpectLists(2);
  const auto list = [&](ReflectorSink& sink, const std::vector<json>& objects) {
    sink.on_list_begin();
    for (const json& each : objects) sink.on_listed(each);
    sink.on_list_end();
  };
  const auto then = [&](bool synced, bool current, std::size_t size) {
    loop_.Post([&, synced, current, size] {
      EXPECT_EQ(informer.store().synced(), synced);
      EXPECT_EQ(informer.store().current(), current);
      EXPECT_EQ(informer.store().size(), size);
    });
  };
  list(red, {object("red", "a"), object("red", "b")});
  then(/*synced=*/false, /*current=*/false, 2);
  list(blue, {object("blue", "a")});
  then(/*synced=*/true, /*current=*/true, 3);
  blue.on_interrupted();
  red.on_interrupted();
  red.on_resumed();
  // Objects of other namespaces stay.
  list(red, {object("red", "b")});
  then(/*synced=*/true, /*current=*/false, 2);
  blue.on_resumed();
  list(blue, {});
  then(/*synced=*/true, /*current=*/true, 1);
  loop_.Post([this] { loop_.Stop(); });
  loop_.Run();
}

// The server refuses access to one of two namespaces, and then to the other.
TEST_F(InformerTest, ANamespaceThatIsRefusedKeepsNobodyWaiting) {
  SimEventLoop control;
  TimePoint now;
  Informer<Pod> informer(control, DecodePod);
  Store<Pod>& store = informer.store();
  store.ExpectLists(2);
  const auto steps_in = [&](const std::string& ns) {
    ReflectorOptions options = options_;
    options.ns = ns;
    return std::make_unique<ReflectorSteps>(client_, kPods, options, informer.Sink({}, ns),
                                            [&now] { return now; });
  };
  const auto red = steps_in("red");
  const auto blue = steps_in("blue");
  const auto list = [&](const std::string& ns, Result<HttpResponse> answer) {
    transport_.Answer(HttpMethod::kGet, "/api/v1/namespaces/" + ns + "/pods?limit", answer);
  };
  const auto pod = [](const std::string& ns, const std::string& name) {
    json object = PodObject(name, "3", "Running");
    object["metadata"]["namespace"] = ns;
    return object;
  };
  const auto step = [&](ReflectorSteps& steps) {
    steps.Next(0.5);
    control.RunFor(1ms);
  };
  const HttpResponse forbidden{.status = 403};

  list("red", List("10", {pod("red", "a")}));
  step(*red);
  EXPECT_FALSE(store.synced());
  list("blue", HttpResponse{.status = 500});
  step(*blue);
  EXPECT_FALSE(store.synced()) << "the failure may be temporary";
  list("blue", HttpResponse{.status = 401});
  step(*blue);
  EXPECT_FALSE(store.synced()) << "401 is no refusal of one namespace";
  list("blue", forbidden);
  step(*blue);
  now += 9s;
  list("blue", HttpResponse{.status = 500});
  step(*blue);
  now += 9s;
  list("blue", forbidden);
  step(*blue);
  EXPECT_FALSE(store.current())
      << "a server that has just started may not have loaded the RBAC rules";
  EXPECT_THAT(store.refused(), ElementsAre());
  now += 10s;
  list("blue", forbidden);
  step(*blue);
  EXPECT_TRUE(store.current());
  EXPECT_THAT(store.refused(), ElementsAre("blue"));

  list("blue", List("20", {pod("blue", "b")}));
  step(*blue);
  EXPECT_THAT(store.refused(), ElementsAre("blue"))
      << "a list alone does not show that watches are allowed";
  transport_.AnswerStream("/api/v1/namespaces/blue/pods?watch", {}, StreamEnd::kOrderly);
  step(*blue);
  EXPECT_TRUE(store.current());
  EXPECT_THAT(store.refused(), ElementsAre());

  transport_.RefuseStream("/api/v1/namespaces/red/pods?watch", forbidden);
  step(*red);
  EXPECT_FALSE(store.current());
  now += 10s;
  list("red", forbidden);
  step(*red);
  EXPECT_TRUE(store.current());
  EXPECT_THAT(store.refused(), ElementsAre("red"));
  EXPECT_NE(store.Find({"red", "a"}), nullptr) << "no event said that it has ended";
  list("red", Fail(ErrorCode::kUnavailable, "reset"));
  step(*red);
  EXPECT_TRUE(store.current()) << "as far as is known it is still refused";
  transport_.AnswerStream("/api/v1/namespaces/blue/pods?watch", {}, StreamEnd::kBroken);
  step(*blue);
  EXPECT_FALSE(store.current()) << "the other namespace may have changes";
}

TEST_F(InformerTest, WaitsIfItMayFollowNothing) {
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods", HttpResponse{.status = 403});
  ReflectorSteps steps(client_, kPods, options_, informer_.Sink());
  steps.Next(0.5);
  loop_.Post([this] { loop_.Stop(); });
  loop_.Run();
  EXPECT_FALSE(informer_.store().synced());
}

TEST_F(InformerTest, AnInformerThatIsGoneGetsNoMoreNews) {
  auto informer = std::make_unique<Informer<Pod>>(loop_, DecodePod);
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods", List("10", {PodObject("a", "3", "x")}));
  transport_.AnswerStream(WatchFrom("10"), {}, StreamEnd::kHold);
  informer->Start(client_, kPods, options_);
  ASSERT_TRUE(transport_.WaitUntilDone(5s));
  informer.reset();
  loop_.Post([this] { loop_.Stop(); });
  loop_.Run();
}

}  // namespace
}  // namespace pliant::kube
