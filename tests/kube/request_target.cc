#include "tests/kube/request_target.h"

#include <charconv>
#include <ranges>
#include <vector>

namespace pliant::kube {
namespace {

std::string Unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ec == std::errc()) {
      plain += static_cast<char>(byte);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::map<std::string, std::string> ParseQuery(std::string_view query) {
  std::map<std::string, std::string> values;
  for (const auto part : std::views::split(query, '&')) {
    const std::string_view pair(part.begin(), part.end());
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    values[std::string(pair.substr(0, equals))] = Unescape(pair.substr(equals + 1));
  }
  return values;
}

}  // namespace

std::string RequestTarget::Collection() const {
  return group_version + (ns.empty() ? "" : "/namespaces/" + ns) + "/" + plural;
}

std::string RequestTarget::Query(const std::string& key) const {
  const auto found = query.find(key);
  return found == query.end() ? "" : found->second;
}

std::optional<RequestTarget> ParseTarget(std::string_view text) {
  RequestTarget target;
  const std::size_t question = text.find('?');
  if (question != std::string_view::npos) target.query = ParseQuery(text.substr(question + 1));
  std::vector<std::string> words;
  for (const auto part : std::views::split(text.substr(0, question), '/')) {
    words.push_back(Unescape(std::string_view(part.begin(), part.end())));
  }
  // "", "api", "v1" or "", "apis", GROUP, VERSION
  const std::size_t first = words.size() > 1 && words[1] == "api" ? 3 : 4;
  if (words.size() <= first || (words[1] != "api" && words[1] != "apis")) return std::nullopt;
  for (std::size_t i = 1; i < first; ++i) target.group_version += "/" + words[i];
  std::size_t at = first;
  // A namespace itself is an object, too.
  if (words[at] == "namespaces" && words.size() > at + 2) {
    target.ns = words[at + 1];
    at += 2;
  }
  target.plural = words[at++];
  if (at < words.size()) target.name = words[at++];
  if (at < words.size()) target.subresource = words[at++];
  return target;
}

bool IsIn(std::string_view collection, std::string_view path) {
  const std::size_t name = path.rfind('/');
  const std::string_view own = path.substr(0, name);
  if (own == collection) return true;
  // For all namespaces: "/api/v1/pods" stands for "/api/v1/namespaces/a/pods".
  const std::size_t plural = collection.rfind('/');
  return own.starts_with(collection.substr(0, plural)) &&
         own.substr(plural).starts_with("/namespaces/") && own.ends_with(collection.substr(plural));
}

}  // namespace pliant::kube
