#pragma once

#include <string>
#include <vector>

#include "operator/history/timeline.h"
#include "operator/history/values.h"

// The timeline as JSON, for the page and for programs (docs/timeline.md).
namespace pliant::history {

// {"replica":…,"sequence":…,"from":…,"frame":{"job":{NAME:{…}},"held":{JOB:{NODE:{…}}},…}}, without
// the last brace if `open`.
std::string EncodeMoment(const Moment& moment, bool open = false);
// [{"at":…,"job":NAME,"set":{…}},…]; "set" has null for a value that is absent from now on, and is
// null itself for a subject that is gone.
std::string EncodeChanges(const std::vector<Change>& changes);

}  // namespace pliant::history
