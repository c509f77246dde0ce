#include "trainer/runtime/sample_ledger.h"

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/log.h"

namespace pliant {
namespace {

using Json = nlohmann::json;

class SampleLedgerFile final : public SampleLedger {
 public:
  explicit SampleLedgerFile(std::ofstream file) : file_(std::move(file)) {}

  void Computed(MembershipId membership, Tick tick, const std::vector<ShardTask>& tasks) override {
    Json shards = Json::array();
    for (const ShardTask& task : tasks) {
      shards.push_back({{"shard", task.shard}, {"samples", task.samples}});
    }
    const Json epoch = tasks.empty() ? Json() : Json(tasks.front().epoch);
    Write({{"kind", "computed"},
           {"tick", tick},
           {"membership", ToString(membership)},
           {"epoch", epoch},
           {"shards", std::move(shards)}});
  }
  void Committed(MembershipId membership, Tick tick) override {
    Write({{"kind", "committed"}, {"tick", tick}, {"membership", ToString(membership)}});
  }

 private:
  void Write(const Json& line) {
    file_ << line.dump() << '\n' << std::flush;
    if (!file_.good() && !std::exchange(failed_, true)) log::Error("the ledger has gaps");
  }

  std::ofstream file_;
  bool failed_ = false;
};

}  // namespace

Result<std::unique_ptr<SampleLedger>> NewSampleLedgerFile(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::app);
  if (!file.good()) {
    return Fail(ErrorCode::kUnavailable, "cannot write the ledger " + path.string() + ": " +
                                             std::generic_category().message(errno));
  }
  return std::make_unique<SampleLedgerFile>(std::move(file));
}

}  // namespace pliant
