#include "operator/web/timeline_routes.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "operator/web/page/page_files.h"
#include "operator/web/page/saved_page.h"

namespace pliant::web {
namespace {

// Names and reasons come from tenants. The page inserts them as text only; and even a script that
// got into it could not run, nor send anything elsewhere.
ServerResponse Guarded(ServerResponse answer) {
  answer.headers = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
       "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"}};
  return answer;
}

// A file, which the browser does not show in the place of the page.
ServerResponse SavedAnswer(const TimelineFeed& feed, ServerRequest request) {
  if (request.query.empty()) request.query = "from=0";
  ServerResponse answer = feed.Answer(request);
  if (answer.status != 200) return Guarded(std::move(answer));
  std::vector<SavedRun> run(1);
  run[0].document = std::move(answer.body);
  answer = Guarded({.body = SavedPage({.title = "Pliant timeline"}, run),
                    .content_type = "text/html; charset=utf-8"});
  answer.headers.emplace_back("Content-Disposition",
                              "attachment; filename=\"pliant-timeline.html\"");
  return answer;
}

}  // namespace

std::vector<HttpRoute> TimelineRoutes(TimelineFeed& feed) {
  std::vector<HttpRoute> routes;
  for (const PageFile& file : PageFiles()) {
    routes.push_back(
        {.method = "GET", .path = std::string(file.path), .handle = [file](const ServerRequest&) {
           return Guarded(
               {.body = std::string(file.text), .content_type = std::string(file.content_type)});
         }});
  }
  routes.push_back(
      {.method = "GET",
       .path = "/timeline",
       .handle = [&feed](const ServerRequest& request) { return Guarded(feed.Answer(request)); },
       .large = true});
  routes.push_back(
      {.method = "GET",
       .path = "/saved.html",
       .handle = [&feed](const ServerRequest& request) { return SavedAnswer(feed, request); },
       .large = true});
  routes.push_back(
      {.method = "GET",
       .path = "/timeline/stream",
       .stream = [&feed](const ServerRequest& request,
                         std::shared_ptr<TextStream> reader) -> std::optional<ServerResponse> {
         auto refusal = feed.Join(request, std::move(reader));
         if (refusal) return Guarded(*std::move(refusal));
         return std::nullopt;
       }});
  return routes;
}

}  // namespace pliant::web
