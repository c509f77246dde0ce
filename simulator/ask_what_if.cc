#include "simulator/ask_what_if.h"

#include <string>
#include <vector>

#include "base/format.h"
#include "operator/replay/debug_snapshot.h"
#include "operator/replay/read_input.h"
#include "operator/replay/text_table.h"
#include "simulator/forward.h"
#include "simulator/inputs/edits.h"
#include "simulator/inputs/what_if.h"

namespace pliant::simulator {
namespace {

Result<std::string> Answer(const WhatIfOptions& options, std::istream& in) {
  ASSIGN_OR_RETURN(const std::vector<Edit> edits, ParseEdits(options.edits));
  const auto of_file = [&](Error error) {
    return InContext(replay::ShownInput(options.snapshot_file), std::move(error));
  };
  const auto debug =
      replay::ReadInput(options.snapshot_file, in)
          .and_then([](const std::string& text) { return replay::ReadSnapshot(text); })
          .transform_error(of_file);
  if (!debug) return std::unexpected(debug.error());
  ASSIGN_OR_RETURN(const planner::ClusterSnapshot edited, Apply(debug->snapshot, edits));
  const WhatIfJobs jobs = options.all_jobs ? WhatIfJobs::kAll : WhatIfJobs::kChanged;
  std::string answer = WhatIf(*debug, edited, jobs);
  if (!options.forward) return answer;
  const auto forward = Forward(*debug, edited, jobs).transform_error(of_file);
  if (!forward) return std::unexpected(forward.error());
  return answer + "\n" + *forward;
}

}  // namespace

int AskWhatIf(const WhatIfOptions& options, std::istream& in, std::ostream& out,
              std::ostream& errors) {
  const auto answer = Answer(options, in);
  if (!answer) {
    errors << replay::Printable(answer.error().message) << "\n";
    return kBadInput;
  }
  out << replay::Printable(*answer) << std::flush;
  return 0;
}

}  // namespace pliant::simulator
