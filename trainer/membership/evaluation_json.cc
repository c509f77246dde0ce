#include "trainer/membership/evaluation_json.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace pliant {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxSumName = 63;

}  // namespace

Json Encoded(const std::vector<Evaluation>& evaluations) {
  Json list = Json::array();
  for (const Evaluation& evaluation : evaluations) {
    Json item = {{"step", evaluation.step}, {"epoch", evaluation.epoch}};
    PutNumber(item, "loss", evaluation.loss);
    PutNumber(item, "accuracy", evaluation.accuracy);
    for (const auto& [name, sum] : evaluation.sums) PutNumber(item["sums"], name, sum);
    list.push_back(std::move(item));
  }
  return list;
}

std::vector<Evaluation> ReadEvaluations(JsonFields& fields) {
  std::vector<Evaluation> evaluations;
  if (!fields.Has("evaluations")) return evaluations;
  fields.Objects("evaluations", kEvaluationsKept, [&](JsonFields& each) {
    Evaluation evaluation{.step = each.Unsigned("step"),
                          .epoch = each.Unsigned("epoch"),
                          .loss = each.OptionalNumber("loss"),
                          .accuracy = each.OptionalNumber("accuracy"),
                          .sums = {}};
    if (each.Has("sums")) {
      each.Numbers("sums", kEvaluationSums, [&](const std::string& name, double sum) {
        if (name.size() > kMaxSumName) each.Wrong("sums", "has too long a name");
        evaluation.sums.emplace(name.substr(0, kMaxSumName), sum);
      });
    }
    evaluations.push_back(std::move(evaluation));
  });
  return evaluations;
}

}  // namespace pliant
