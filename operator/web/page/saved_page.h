#pragma once

#include <string>
#include <vector>

namespace pliant::web {

// A timeline document (docs/timeline.md) of a saved page.
struct SavedRun {
  std::string name;      // for people
  std::string document;  // JSON
};

// These are markup and CSS: texts of others in them are escaped already.
struct PageParts {
  std::string title;
  std::string style;   // besides the page's own
  std::string before;  // in front of the charts
};

// The page with its scripts, its style and these runs as one HTML file, which loads nothing from
// elsewhere. Readers choose among several runs. Without runs there are no charts.
std::string SavedPage(const PageParts& parts, const std::vector<SavedRun>& runs);

}  // namespace pliant::web
