#include "operator/planner/reason_texts.h"

#include <chrono>
#include <optional>

#include "base/format.h"

namespace pliant::planner {

void Append(std::string& text, const MinimumNeeds& minimum) {
  Append(text, Counted(minimum.job.minimum * minimum.job.needs().gpus, "GPU"));
  text += " (minLearners ";
  Append(text, minimum.job.minimum);
  text += ')';
}

std::string UtcTime(WallTime time) {
  return Format("{:%FT%TZ}", std::chrono::ceil<std::chrono::seconds>(time));
}

std::string_view NameOfQueue(const ReasonFacts& facts) {
  return facts.model.QueueOf(facts.job).view->name;
}

std::string Gpus(const ReasonFacts& facts) {
  return Sentence(facts.given.learners * facts.model.jobs[facts.job].needs().gpus, " of ",
                  facts.model.capacity_gpus, " GPUs: ");
}

std::string Budget(const ReasonFacts& facts) {
  const Job& job = facts.model.jobs[facts.job];
  return Sentence("the ResourceQuotas of namespace ", job.view->key.name_space, " leave its jobs ",
                  Counted(facts.model.budgets[*job.budget].gpus, "GPU"));
}

std::string OneKind(const ReasonFacts& facts) {
  const std::optional<GpuKind>& gpus = facts.assignment.FitOf(facts.job).gpus;
  if (!gpus) return "";
  const std::string driver =
      gpus->driver.empty() ? std::string() : Sentence(" and driver ", gpus->driver);
  if (gpus->product.empty()) {
    return Sentence(", all without the label ", kGpuProductLabel, driver,
                    ", because it is bitwise");
  }
  return Sentence(", all with GPUs of product ", gpus->product, driver, ", because it is bitwise");
}

std::string LimitOfQueue(const ReasonFacts& facts) {
  return Sentence("queue ", NameOfQueue(facts), " may hold ",
                  Counted(*facts.model.QueueOf(facts.job).view->limit_gpus, "GPU"),
                  " (spec.limit)");
}

std::string CauseOf(const DemandCap& cap) {
  return cap.cause.empty() ? std::string() : Sentence(" (", cap.cause, ")");
}

}  // namespace pliant::planner
