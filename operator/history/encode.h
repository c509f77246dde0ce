#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/history/timeline.h"
#include "operator/history/values.h"

// The timeline as JSON, for the page and for programs (docs/timeline.md).
namespace pliant::history {

// The state of the timeline at `from`, and the changes after it:
// {"replica":…,"sequence":…,"from":…,"begin":…,"now":…,
//  "frame":{"job":{NAME:{…}},"held":{JOB:{NODE:{…}}},…},"changes":[…]}
// With `origin`, readers show times as those since it.
std::string EncodeTimeline(const Timeline& timeline, WallTime from, WallTime now,
                           std::optional<WallTime> origin = std::nullopt);
// [{"at":…,"job":NAME,"set":{…}},…]; "set" has null for a value that is absent from now on, and is
// null itself for a subject that is gone.
std::string EncodeChanges(const std::vector<Change>& changes);

}  // namespace pliant::history
