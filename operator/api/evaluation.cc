#include "operator/api/evaluation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/format.h"
#include "operator/api/finite_number.h"

namespace pliant::api {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxSumName = 63;
// More than any coordinator reports.
constexpr std::size_t kMaxRead = 1024;

// A program chooses the names.
bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxSumName &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < '\x7f'; });
}

void ReadSums(Fields& evaluation, std::map<std::string, double>& sums) {
  evaluation.Object("sums", [&](Fields& fields) {
    for (const std::string& name : fields.Names()) {
      if (!IsName(name) || sums.size() >= kMaxNamedSums) {
        return evaluation.Wrong("sums", Format("has more than {} names, or one with other than 1 "
                                               "to {} visible ASCII characters",
                                               kMaxNamedSums, kMaxSumName));
      }
      if (const auto sum = FiniteNumber(fields, name.c_str())) sums[name] = *sum;
    }
  });
}

void KeepLast(std::vector<Evaluation>& evaluations) {
  if (evaluations.size() <= kMaxEvaluations) return;
  evaluations.erase(evaluations.begin(),
                    evaluations.end() - static_cast<std::ptrdiff_t>(kMaxEvaluations));
}

json Encoded(const Evaluation& evaluation) {
  json encoded = {{"step", evaluation.step}};
  if (evaluation.epoch) encoded["epoch"] = *evaluation.epoch;
  if (evaluation.loss) encoded["loss"] = *evaluation.loss;
  if (evaluation.accuracy) encoded["accuracy"] = *evaluation.accuracy;
  if (!evaluation.sums.empty()) encoded["sums"] = evaluation.sums;
  return encoded;
}

}  // namespace

std::vector<Evaluation> ReadEvaluations(Fields& fields) {
  std::vector<Evaluation> read;
  fields.Objects("evaluations", kMaxRead, [&](Fields& each) {
    Evaluation evaluation{.step = each.Long("step", 0, 0, kMaxCount),
                          .epoch = each.OptionalInt("epoch", 0, kMaxCount),
                          .loss = FiniteNumber(each, "loss"),
                          .accuracy = FiniteNumber(each, "accuracy"),
                          .sums = {}};
    ReadSums(each, evaluation.sums);
    read.push_back(std::move(evaluation));
  });
  KeepLast(read);
  return read;
}

json EncodeEvaluations(const std::vector<Evaluation>& evaluations) {
  if (evaluations.empty()) return json();
  json list = json::array();
  for (const Evaluation& evaluation : evaluations) list.push_back(Encoded(evaluation));
  return list;
}

std::vector<Evaluation> Merged(const std::vector<Evaluation>& older,
                               const std::vector<Evaluation>& newer,
                               const std::optional<std::int64_t>& step) {
  std::map<std::int64_t, const Evaluation*> by_step;
  for (const std::vector<Evaluation>* list : {&older, &newer}) {
    for (const Evaluation& evaluation : *list) {
      if (evaluation.step <= step.value_or(evaluation.step)) by_step[evaluation.step] = &evaluation;
    }
  }
  std::vector<Evaluation> merged;
  for (const auto& [at, evaluation] : by_step) merged.push_back(*evaluation);
  KeepLast(merged);
  return merged;
}

}  // namespace pliant::api
