#pragma once

#include <vector>

#include "base/http_server.h"
#include "operator/web/timeline_feed.h"

namespace pliant::web {

// GET /: the page, with its scripts and its style. GET /timeline and GET /timeline/stream: what it
// shows. GET /saved.html: the page with the same as a file of its own, by default with everything
// that is recorded. `feed` outlives the routes, and belongs to the server's thread.
std::vector<HttpRoute> TimelineRoutes(TimelineFeed& feed);

}  // namespace pliant::web
