#include "operator/controller/rounds/crash_notes.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/format.h"

namespace pliant::controller {
namespace {

constexpr std::uint64_t kNotesFormat = 0x31'65'74'6f'6e'6c'70;  // "plnote1"
constexpr std::size_t kKeyBytes = 120;
constexpr std::size_t kDeaths = 128;  // jobs that are remembered
constexpr std::string_view kPlanNote = "plan";

// Ends with a zero byte.
struct NoteText {
  char text[kKeyBytes];

  void Set(std::string_view key) {
    const std::size_t size = std::min(key.size(), kKeyBytes - 1);
    std::memset(text, 0, kKeyBytes);
    std::memcpy(text, key.data(), size);
  }
  std::string Get() const { return {text, strnlen(text, kKeyBytes)}; }
};

struct NotedDeath {
  NoteText key;
  std::uint32_t count = 0;
  std::uint32_t order = 0;  // the greatest is the newest
};

// A uid has 36 characters.
std::string KeyOfJob(const api::ObjectMeta& job) {
  return Format("{}@{}", job.uid.substr(0, kKeyBytes - 32), job.generation);
}

Error FileError(const std::string& what, const std::string& file) {
  return {ErrorCode::kUnavailable, Format("{} {}: {}", what, file, std::strerror(errno))};
}

}  // namespace

struct CrashNotes::Page {
  std::uint64_t format = 0;
  std::uint32_t last_order = 0;
  NoteText busy_with;
  NotedDeath deaths[kDeaths];
};

Result<std::unique_ptr<CrashNotes>> CrashNotes::Open(const std::string& file) {
  const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return std::unexpected(FileError("open", file));
  void* mapped = MAP_FAILED;
  if (ftruncate(descriptor, sizeof(Page)) == 0) {
    mapped = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  Error error = FileError("map", file);
  close(descriptor);
  if (mapped == MAP_FAILED) return std::unexpected(std::move(error));

  std::unique_ptr<CrashNotes> notes(new CrashNotes);
  notes->page_ = static_cast<Page*>(mapped);
  Page& page = *notes->page_;
  if (page.format != kNotesFormat) {
    std::memset(mapped, 0, sizeof(Page));
    page.format = kNotesFormat;
  }
  if (const std::string key = page.busy_with.Get(); !key.empty()) notes->CountDeath(key);
  page.busy_with.Set("");
  for (const NotedDeath& death : page.deaths) {
    if (death.count > 0) notes->deaths_[death.key.Get()] = static_cast<int>(death.count);
  }
  return notes;
}

CrashNotes::~CrashNotes() { munmap(page_, sizeof(Page)); }

void CrashNotes::CountDeath(const std::string& key) {
  const std::span deaths(page_->deaths);
  auto at = std::ranges::find_if(
      deaths, [&](const NotedDeath& death) { return death.count > 0 && death.key.Get() == key; });
  if (at == deaths.end()) {
    at = std::ranges::min_element(deaths, {}, &NotedDeath::order);
    at->key.Set(key);
    at->count = 0;
  }
  at->count = std::min(at->count + 1, std::uint32_t{1000});
  at->order = ++page_->last_order;
}

void CrashNotes::Note(std::string_view key) { page_->busy_with.Set(key); }

CrashNotes::Mark CrashNotes::BusyWith(CrashNotes* notes, const api::ObjectMeta& job) {
  if (notes != nullptr) notes->Note(KeyOfJob(job));
  return Mark(notes);
}

CrashNotes::Mark CrashNotes::BusyWithPlan(CrashNotes* notes) {
  if (notes != nullptr) notes->Note(kPlanNote);
  return Mark(notes);
}

int CrashNotes::DeathsAt(const api::ObjectMeta& job) const {
  if (deaths_.empty()) return 0;
  const auto found = deaths_.find(KeyOfJob(job));
  return found == deaths_.end() ? 0 : found->second;
}

int CrashNotes::DeathsAtPlan() const {
  const auto found = deaths_.find(kPlanNote);
  return found == deaths_.end() ? 0 : found->second;
}

Quarantine QuarantineOf(const CrashNotes* notes, const api::ObjectMeta& job) {
  constexpr int kMaxDeaths = 2;
  const int deaths = notes == nullptr ? 0 : notes->DeathsAt(job);
  if (deaths < kMaxDeaths) return Quarantine::kNone;
  return deaths == kMaxDeaths ? Quarantine::kToBeReported : Quarantine::kSilent;
}

}  // namespace pliant::controller
