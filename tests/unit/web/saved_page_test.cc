#include "operator/web/page/saved_page.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/web/page/page_files.h"

namespace pliant::web {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// The text between two others; fails the test if it is not there exactly once.
std::string Between(std::string_view from, std::string_view to, const std::string& text) {
  const std::size_t begin = text.find(from);
  EXPECT_NE(begin, std::string::npos) << from;
  if (begin == std::string::npos) return "";
  EXPECT_EQ(text.find(from, begin + 1), std::string::npos) << from;
  const std::size_t end = text.find(to, begin + from.size());
  return text.substr(begin + from.size(), end - begin - from.size());
}

std::string DataOf(const std::string& page) {
  return Between("<script type=\"application/json\" id=\"saved\">", "</script>", page);
}

TEST(SavedPageTest, HoldsTheDocumentsAsTheyAre) {
  const json document = {{"frame", {{"job", {{"</script><b>", {{"gpus", 4}}}}}}}};
  const std::string page =
      SavedPage({.title = "T &amp; U"}, {{"one \xff</script>", document.dump()}, {"two", "{}"}});
  const std::string data = DataOf(page);
  EXPECT_THAT(data, Not(HasSubstr("<")));
  EXPECT_EQ(json::parse(data),
            json::array({{{"name", "one \xef\xbf\xbd</script>"}, {"document", document}},
                         {{"name", "two"}, {"document", json::object()}}}));
  EXPECT_THAT(page, HasSubstr("<title>T &amp; U</title>"));
  EXPECT_THAT(page, HasSubstr("<h1>T &amp; U</h1>"));
  EXPECT_THAT(page, testing::EndsWith("</html>\n"));
}

TEST(SavedPageTest, LoadsNothingFromElsewhereAndRunsItsOwnScriptOnly) {
  const std::string page = SavedPage({.title = "T", .style = "p { top: 0; }"}, {{"", "{}"}});
  for (const std::string_view foreign :
       {" src=", "<link rel=\"stylesheet\"", "@import", "url(/", "https:"}) {
    EXPECT_THAT(page, Not(HasSubstr(foreign)));
  }
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_EQ(Between("<script type=\"module\">", "</script>", page), PageBundle());
  EXPECT_THAT(Between("<style>", "</style>", page), testing::EndsWith("p { top: 0; }"));
}

TEST(SavedPageTest, ThePolicyHasTheHashesOfItsScriptAndStyle) {
  // The digest of these two texts does not change by the page's own files.
  const std::string one = SavedPage({.title = "T", .style = "a"}, {{"", "{}"}});
  const std::string two = SavedPage({.title = "T", .style = "b"}, {{"", "{}"}});
  const auto script = [](const std::string& page) { return Between("script-src '", "'", page); };
  const auto style = [](const std::string& page) { return Between("style-src '", "'", page); };
  EXPECT_EQ(script(one), script(two));
  EXPECT_NE(style(one), style(two));
  EXPECT_EQ(style(one).size(), std::string_view("sha256-").size() + 44);
}

TEST(SavedPageTest, TheBundleHasEveryScriptAndNoModule) {
  const std::string bundle(PageBundle());
  for (const PageFile& file : PageFiles()) {
    if (!file.path.ends_with(".js")) continue;
    EXPECT_THAT(bundle, HasSubstr("// " + std::string(file.path.substr(1)) + "\n"));
    // Its last line is there: nothing was cut at a character that CMake treats in its own way.
    const std::string_view text = file.text.substr(0, file.text.size() - 1);
    EXPECT_THAT(bundle, HasSubstr(text.substr(text.rfind('\n') + 1))) << file.path;
  }
  for (const std::string_view wrong : {"\nimport ", "\nexport ", "</script", "<!--"}) {
    EXPECT_THAT(bundle, Not(HasSubstr(wrong)));
  }
  EXPECT_LT(bundle.find("// state.js\n"), bundle.find("// panels.js\n"));
  EXPECT_LT(bundle.find("// panels.js\n"), bundle.find("// app.js\n"));
}

TEST(SavedPageTest, AReportStandsInFrontOfTheCharts) {
  const std::string page = SavedPage({.title = "Report", .before = "<h1>Report</h1><p>of runs</p>"},
                                     {{"a", "{}"}, {"b", "{}"}});
  EXPECT_THAT(page, HasSubstr("<body>\n<h1>Report</h1><p>of runs</p>"));
  EXPECT_THAT(page, HasSubstr("<h2>GPUs over time</h2>"));
}

TEST(SavedPageTest, WithoutRunsThereIsTheReportOnly) {
  const std::string page = SavedPage({.title = "Report", .before = "<p>of nothing</p>"}, {});
  EXPECT_THAT(page, HasSubstr("<p>of nothing</p></body>"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

}  // namespace
}  // namespace pliant::web
