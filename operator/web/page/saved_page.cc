#include "operator/web/page/saved_page.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include <openssl/evp.h>

#include "base/check.h"
#include "base/format.h"
#include "operator/web/page/page_files.h"

namespace pliant::web {
namespace {

std::string_view FileOf(std::string_view path) {
  const auto file = std::ranges::find(PageFiles(), path, &PageFile::path);
  CHECK(file != PageFiles().end(), "the page has this file");
  return file->text;
}

void Replace(std::string_view what, std::string_view with, std::string& text) {
  const std::size_t at = text.find(what);
  CHECK(at != std::string::npos, "the page's index has this part");
  text.replace(at, what.size(), with);
}

// A source of a content security policy: the script or style with exactly this text.
std::string HashSource(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  CHECK(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1,
        "SHA-256 is there");
  std::array<unsigned char, 4 * (EVP_MAX_MD_SIZE / 3 + 1) + 1> base64{};
  const int length = EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(size));
  return "'sha256-" + std::string(base64.begin(), base64.begin() + length) + "'";
}

// A list of {"name", "document"}. Without a '<' it cannot end the element that holds it.
std::string Data(const std::vector<SavedRun>& runs) {
  std::string data;
  for (const SavedRun& run : runs) {
    const std::string name = nlohmann::json(run.name).dump(
        -1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
    const std::string item = Format("{{\"name\":{},\"document\":{}}}", name, run.document);
    data += data.empty() ? '[' : ',';
    for (const char c : item) {
      if (c == '<') {
        data += "\\u003c";
      } else {
        data += c;
      }
    }
  }
  return data + "]";
}

}  // namespace

std::string SavedPage(const PageParts& parts, const std::vector<SavedRun>& runs) {
  constexpr std::string_view kBody = "<body>\n";
  constexpr std::string_view kBodyEnd = "</body>\n";
  const std::string style = std::string(FileOf("/style.css")) + parts.style;
  const std::string script(PageBundle());
  std::string page(FileOf("/"));
  if (runs.empty()) {
    const std::size_t from = page.find(kBody) + kBody.size();
    page.erase(from, page.find(kBodyEnd) - from);
  } else {
    Replace("id=\"saved\">", "id=\"saved\">" + Data(runs), page);
    Replace(kBodyEnd, "<script type=\"module\">" + script + "</script>\n" + std::string(kBodyEnd),
            page);
    Replace("<h1>Pliant timeline</h1>",
            parts.before.empty() ? "<h1>" + parts.title + "</h1>" : "<h2>GPUs over time</h2>",
            page);
  }
  Replace(kBody, std::string(kBody) + parts.before, page);
  Replace("<html lang=\"en\">", "<html lang=\"en\" data-saved>", page);
  Replace("<title>Pliant timeline</title>", "<title>" + parts.title + "</title>", page);
  Replace("<link rel=\"stylesheet\" href=\"/style.css\">", "<style>" + style + "</style>", page);
  Replace("<script type=\"module\" src=\"/app.js\"></script>\n", "", page);
  Replace("<meta charset=\"utf-8\">\n",
          Format("<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" "
                 "content=\"default-src 'none'; script-src {}; style-src {}; img-src data:; "
                 "base-uri 'none'; form-action 'none'\">\n",
                 HashSource(script), HashSource(style)),
          page);
  return page;
}

}  // namespace pliant::web
