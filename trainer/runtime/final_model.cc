#include "trainer/runtime/final_model.h"

#include <memory>
#include <utility>

#include "base/log.h"

namespace pliant {
namespace {

constexpr Duration kPollEvery = std::chrono::seconds(2);

}  // namespace

void FinalModel::Publish(CheckpointLabel label) {
  if (std::exchange(publishing_, true)) return;
  // An earlier rank 0 may have published it, and died before it reported that.
  parts_.checkpointer.FindFinal(parts_.tasks.Guard<Result<Manifest>>(
      [this, label = std::move(label)](Result<Manifest> model) {
        if (model) return hooks_.found(*model);
        Export(label);
      }));
}

void FinalModel::Export(const CheckpointLabel& label) {
  parts_.compute.CopyState(
      {}, parts_.tasks.Guard<Result<std::shared_ptr<const StateCopy>>>(
              [this, label](Result<std::shared_ptr<const StateCopy>> state) {
                if (!state) return OnFailed(state.error());
                parts_.checkpointer.ExportFinal(
                    label, *std::move(state), parts_.compute.final_layout(),
                    parts_.tasks.Guard<Result<Manifest>>([this](Result<Manifest> model) {
                      if (!model) return OnFailed(model.error());
                      hooks_.found(*model);
                    }));
              }));
}

void FinalModel::OnFailed(const Error& error) {
  publishing_ = false;
  log::Warning("cannot publish the final model", {{"cause", error.message}});
  hooks_.not_published(error);
  parts_.tasks.After(backoff_.Next(0.5), hooks_.try_again);
}

void FinalModel::Poll() {
  if (std::exchange(polling_, true)) return;
  parts_.tasks.After(kPollEvery, [this] {
    parts_.checkpointer.FindFinal(
        parts_.tasks.Guard<Result<Manifest>>([this](Result<Manifest> model) {
          polling_ = false;
          if (model) return hooks_.found(*model);
          if (hooks_.wanted()) Poll();
        }));
  });
}

}  // namespace pliant
