#include "tests/fidelity/published.h"

#include <array>
#include <cstddef>
#include <string_view>

#include "simulator/model/csv.h"

namespace pliant::simulator {

Result<PublishedTimes> ReadPublished(const std::filesystem::path& path) {
  static constexpr std::array<std::string_view, 5> kColumns = {"workload", "job", "tiresias",
                                                               "optimus", "pollux"};
  ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Read(path, kColumns));
  PublishedTimes times;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    ASSIGN_OR_RETURN(const std::int64_t workload, table.Whole(row, 0, 1, 1000));
    ASSIGN_OR_RETURN(std::string job, table.Name(row, 1));
    Published published;
    ASSIGN_OR_RETURN(published.tiresias, table.Whole(row, 2, 0, INT64_MAX));
    ASSIGN_OR_RETURN(published.optimus, table.Whole(row, 3, 0, INT64_MAX));
    ASSIGN_OR_RETURN(published.pollux, table.Whole(row, 4, 0, INT64_MAX));
    times[{static_cast<int>(workload), std::move(job)}] = published;
  }
  return times;
}

}  // namespace pliant::simulator
