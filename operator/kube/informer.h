#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/log.h"
#include "operator/kube/reflector.h"
#include "operator/kube/store.h"

namespace pliant::kube {

// Keeps a store on the control thread in step with the API server. Objects are decoded on the
// reflector's thread, so that only the fields that T has are ever held and handed over.
//   Informer<Pod> pods(loop, DecodePod);
//   pods.store().OnChange(...);
//   pods.Start(client, kPods, {.label_selector = "..."});
template <typename T>
class Informer {
 public:
  using Decode = std::function<Result<T>(const nlohmann::json& object)>;

  // `control` outlives the informer, which belongs to the control thread.
  Informer(EventLoop& control, Decode decode)
      : control_(control), decode_(std::move(decode)), store_(std::make_shared<Store<T>>()) {}

  // Call once, after the store's handlers and indexes were added. `client` outlives the informer.
  // With `namespaces` only objects there are followed, each namespace by its own reflector: this
  // works without the right to list all namespaces.
  void Start(KubeClient& client, const ResourceType& type, ReflectorOptions options = {},
             std::function<void(std::string_view reason)> on_restart = {},
             const std::vector<std::string>& namespaces = {});

  // The sink that Start gives to the reflector of `ns` (empty: all namespaces), for callers that
  // run the reflector's steps themselves.
  ReflectorSink Sink(std::function<void(std::string_view reason)> on_restart = {},
                     const std::string& ns = "");

  Store<T>& store() { return *store_; }
  const Store<T>& store() const { return *store_; }

 private:
  using Item = typename Store<T>::Item;

  Item DecodeItem(const nlohmann::json& object) const;
  // Runs `change` on the control thread, unless the informer is destroyed by then.
  void Update(std::function<void(Store<T>&)> change) const {
    control_.Post([known = std::weak_ptr<Store<T>>(store_), change = std::move(change)] {
      if (const auto store = known.lock()) change(*store);
    });
  }

  EventLoop& control_;
  const Decode decode_;
  const std::shared_ptr<Store<T>> store_;  // its contents: control thread only
  std::list<Reflector> reflectors_;        // last: their threads use the rest
};

template <typename T>
void Informer<T>::Start(KubeClient& client, const ResourceType& type, ReflectorOptions options,
                        std::function<void(std::string_view reason)> on_restart,
                        const std::vector<std::string>& namespaces) {
  if (namespaces.empty()) {
    reflectors_.emplace_back(client, type, std::move(options), Sink(std::move(on_restart)));
    return;
  }
  store_->ExpectLists(namespaces.size());
  for (const std::string& ns : namespaces) {
    options.ns = ns;
    reflectors_.emplace_back(client, type, options, Sink(on_restart, ns));
  }
}

template <typename T>
ReflectorSink Informer<T>::Sink(std::function<void(std::string_view reason)> on_restart,
                                const std::string& ns) {
  const auto listed = std::make_shared<std::vector<Item>>();  // the reflector's thread only
  return {
      .on_list_begin = [listed] { listed->clear(); },
      .on_listed = [this, listed](const nlohmann::json& o) { listed->push_back(DecodeItem(o)); },
      .on_list_end =
          [this, listed, ns] {
            Update([items = std::exchange(*listed, {}), ns](Store<T>& store) mutable {
              store.ReplaceAll(std::move(items), ns);
            });
          },
      .on_changed =
          [this](const nlohmann::json& object) {
            Update([item = DecodeItem(object)](Store<T>& store) mutable {
              store.Put(std::move(item));
            });
          },
      .on_deleted =
          [this](const nlohmann::json& object) {
            Update([key = MetaOf(object).key](Store<T>& store) { store.Erase(key); });
          },
      .on_interrupted = [this,
                         ns] { Update([ns](Store<T>& store) { store.SetBehind(true, ns); }); },
      .on_resumed = [this, ns] { Update([ns](Store<T>& store) { store.SetBehind(false, ns); }); },
      .on_refused =
          [this, ns](bool refused) {
            // An informer of all namespaces has nothing else to follow: it keeps waiting for
            // permission.
            if (ns.empty()) return;
            Update([ns, refused](Store<T>& store) { store.SetRefused(refused, ns); });
          },
      .on_restart = std::move(on_restart)};
}

template <typename T>
auto Informer<T>::DecodeItem(const nlohmann::json& object) const -> Item {
  Item item{.meta = MetaOf(object), .value = nullptr};
  if (Result<T> decoded = decode_(object)) {
    item.value = std::make_shared<const T>(*std::move(decoded));
  } else {
    log::Warning("cannot decode object; its last known state stays in use",
                 {{"object", ToString(item.meta.key)}, {"error", decoded.error().message}});
  }
  return item;
}

}  // namespace pliant::kube
