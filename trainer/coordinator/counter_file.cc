#include "trainer/coordinator/counter_file.h"

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace pliant {
namespace {

// "term counter\n"
struct Content {
  std::uint64_t term = 0;
  std::uint64_t counter = 0;
};

bool TakeNumber(std::string_view& text, char end, std::uint64_t& number) {
  const char* const last = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || rest == last || *rest != end) return false;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()) + 1);
  return true;
}

bool Parse(std::string_view text, Content& content) {
  return TakeNumber(text, ' ', content.term) && TakeNumber(text, '\n', content.counter) &&
         text.empty();
}

}  // namespace

CounterFile::CounterFile(std::filesystem::path folder, std::uint64_t term)
    : path_(std::move(folder) / "membership-counter"), term_(term) {}

Result<std::uint64_t> CounterFile::Read() const {
  auto text = ReadFile(path_);
  if (!text && text.error().code == ErrorCode::kNotFound) return 0;
  if (!text) return std::unexpected(std::move(text).error());
  Content content;
  if (!Parse(*text, content)) {
    return Fail(ErrorCode::kCorrupt,
                path_.string() + " is not a membership counter: remove it and raise the term");
  }
  if (content.term > term_) {
    return Fail(ErrorCode::kConflict,
                path_.string() + " is of term " + std::to_string(content.term) +
                    ": this coordinator of term " + std::to_string(term_) + " is obsolete");
  }
  return content.term == term_ ? content.counter : 0;
}

Status CounterFile::Write(std::uint64_t counter) const {
  std::error_code error;
  std::filesystem::create_directories(path_.parent_path(), error);
  if (error) {
    return Fail(ErrorCode::kUnavailable,
                "create " + path_.parent_path().string() + ": " + error.message());
  }
  return WriteFileAtomically(path_, std::to_string(term_) + " " + std::to_string(counter) + "\n");
}

}  // namespace pliant
