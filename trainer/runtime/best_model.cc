#include "trainer/runtime/best_model.h"

#include <utility>

#include "base/log.h"

namespace pliant {
namespace {

constexpr int kMaxTries = 5;
constexpr Duration kTryAgainAfter = std::chrono::seconds(2);

}  // namespace

void BestModel::Export(CheckpointLabel label, std::string note) {
  newest_ = std::make_shared<Model>(
      Model{.label = std::move(label), .note = std::move(note), .state = nullptr});
  parts_.compute.CopyState(
      {}, parts_.tasks.Guard<Result<std::shared_ptr<const StateCopy>>>(
              [this, model = newest_](Result<std::shared_ptr<const StateCopy>> state) {
                if (!state) {
                  model->tries = kMaxTries;  // the next step may have changed it
                  return OnFailed(model, state.error());
                }
                model->state = *std::move(state);
                Write(model);
              }));
}

void BestModel::Write(const std::shared_ptr<Model>& model) {
  ++model->tries;
  FinalLayout layout = parts_.compute.final_layout();
  layout.texts.push_back({.name = std::string(kBestNote), .text = model->note});
  parts_.checkpointer.ExportBest(
      model->label, model->state, std::move(layout),
      parts_.tasks.Guard<Result<Manifest>>([this, model](Result<Manifest> written) {
        if (!written) return OnFailed(model, written.error());
        log::Info("best model", {{"step", model->label.position.step}});
        ended_();
      }));
}

// It keeps the copy of the state, and tries again unless there is a better one.
void BestModel::OnFailed(const std::shared_ptr<Model>& model, const Error& error) {
  log::Warning(
      "the best model cannot be written",
      {{"step", model->label.position.step}, {"tries", model->tries}, {"cause", error.message}});
  if (model->tries >= kMaxTries) return ended_();
  parts_.tasks.After(kTryAgainAfter * model->tries, [this, model] {
    if (model != newest_) return ended_();
    Write(model);
  });
}

}  // namespace pliant
