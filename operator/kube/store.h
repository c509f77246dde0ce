#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/kube/object.h"

namespace pliant::kube {

// The informer cache of one kind: the latest state seen of each object. Objects are immutable;
// readers may keep them. One thread (the control thread).
template <typename T>
class Store {
 public:
  struct Item {
    ObjectMeta meta;
    // Null: the object exists but could not be decoded. The store then keeps its previous state: an
    // object that is not understood must not look deleted.
    std::shared_ptr<const T> value;
  };
  // At least one of `before` and `after` is set. An object that was deleted and created again under
  // the same name is reported as two changes.
  struct Change {
    NamespacedName key;
    std::shared_ptr<const T> before;
    std::shared_ptr<const T> after;
  };
  using Handler = std::function<void(const Change&)>;
  using KeysOf = std::function<std::vector<std::string>(const T&)>;
  enum class IndexId : std::size_t {};

  // Add handlers and indexes before the first object. Handlers run within Put, Erase and
  // ReplaceAll, after the change.
  void OnChange(Handler handler) { handlers_.push_back(std::move(handler)); }
  IndexId AddIndex(KeysOf keys_of) {
    indexes_.push_back({std::move(keys_of), {}});
    return IndexId(indexes_.size() - 1);
  }

  void Put(Item item);
  void Erase(const NamespacedName& key);
  // Sets the state of all objects, or of all in the namespace `ns`, from a list: objects that it
  // does not name are removed.
  void ReplaceAll(std::vector<Item> items, const std::string& ns = "");
  // Sets whether updates may be missing; in `ns` only, if that namespace has its own reflector.
  void SetBehind(bool behind, const std::string& ns = "") {
    behind ? static_cast<void>(behind_.insert(ns)) : static_cast<void>(behind_.erase(ns));
  }
  // Sets whether the server refuses us access to `ns`, which has its own reflector. Objects already
  // seen stay, and synced() does not wait for this namespace.
  void SetRefused(bool refused, const std::string& ns);
  // Sets the namespaces whose objects are hidden. Handlers see hidden objects as removed, and as
  // added when they are shown again. Their state is kept up to date meanwhile.
  void Hide(std::set<std::string> namespaces);
  void OnRefusal(std::function<void()> handler) { on_refusal_ = std::move(handler); }
  // Sets the number of lists to expect, one per namespace. Call before the first list.
  void ExpectLists(std::size_t count) { lists_expected_ = count; }

  // Whether everything that the server does not refuse has been listed. Before that, an object that
  // is absent here may exist.
  bool synced() const {
    const auto never_listed =
        std::ranges::count_if(refused_, [this](auto& ns) { return !listed_.contains(ns); });
    return listed_.size() + static_cast<std::size_t>(never_listed) >= lists_expected_;
  }
  // Whether the store is synced and also up to date, apart from updates in flight.
  bool current() const { return synced() && std::ranges::includes(refused_, behind_); }
  const std::set<std::string>& refused() const { return refused_; }
  std::size_t size() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(items_, [this](auto& item) { return IsShown(item.first); }));
  }

  std::shared_ptr<const T> Find(const NamespacedName& key) const {
    const auto found = items_.find(key);
    return found == items_.end() || !IsShown(key) ? nullptr : found->second.value;
  }
  // Sorted by key.
  std::vector<std::shared_ptr<const T>> All() const;
  std::vector<std::shared_ptr<const T>> Lookup(IndexId index, const std::string& index_key) const;

 private:
  // The value type of items_. It has no key of its own, because there are tens of thousands of
  // objects.
  struct Known {
    std::string uid;
    std::string resource_version;
    std::shared_ptr<const T> value;  // never null
  };
  struct Index {
    KeysOf keys_of;
    std::map<std::string, std::set<NamespacedName>, std::less<>> entries;
  };

  bool IsShown(const NamespacedName& key) const { return !hidden_.contains(key.ns); }
  void Reindex(const Change& change);
  void Notify(const Change& change);
  void Announce(const Change& change);

  std::vector<Handler> handlers_;
  std::vector<Index> indexes_;
  std::map<NamespacedName, Known> items_;
  std::size_t lists_expected_ = 1;
  std::set<std::string> listed_;  // namespaces; "": all
  std::set<std::string> behind_;
  std::set<std::string> refused_;
  std::set<std::string> hidden_;
  std::function<void()> on_refusal_;
};

template <typename T>
void Store<T>::Put(Item item) {
  ObjectMeta& meta = item.meta;
  const auto found = items_.find(meta.key);
  if (found == items_.end()) {
    if (item.value == nullptr) return;
    const Change change{meta.key, nullptr, item.value};
    items_.emplace(std::move(meta.key), Known{std::move(meta.uid), std::move(meta.resource_version),
                                              std::move(item.value)});
    Notify(change);
    return;
  }
  Known& known = found->second;
  if (known.uid != meta.uid) {
    Erase(meta.key);
    Put(std::move(item));
    return;
  }
  // A relist returns every object again: an unchanged one is not a change.
  if (item.value == nullptr || known.resource_version == meta.resource_version) return;
  const Change change{std::move(meta.key), known.value, item.value};
  known.resource_version = std::move(meta.resource_version);
  known.value = std::move(item.value);
  Notify(change);
}

template <typename T>
void Store<T>::Erase(const NamespacedName& key) {
  auto gone = items_.extract(key);
  if (gone) Notify({gone.key(), gone.mapped().value, nullptr});
}

template <typename T>
void Store<T>::ReplaceAll(std::vector<Item> items, const std::string& ns) {
  const auto key_of = [](const Item* item) -> const NamespacedName& { return item->meta.key; };
  std::vector<const Item*> listed;
  listed.reserve(items.size());
  for (const Item& item : items) listed.push_back(&item);
  std::ranges::sort(listed, {}, key_of);
  std::vector<NamespacedName> gone;
  for (const auto& [key, known] : items_) {
    const bool is_meant = ns.empty() || key.ns == ns;
    if (is_meant && !std::ranges::binary_search(listed, key, {}, key_of)) gone.push_back(key);
  }
  for (const NamespacedName& key : gone) Erase(key);
  for (Item& item : items) Put(std::move(item));
  listed_.insert(ns);
}

template <typename T>
void Store<T>::SetRefused(bool refused, const std::string& ns) {
  const bool changes = refused ? refused_.insert(ns).second : refused_.erase(ns) > 0;
  if (changes && on_refusal_) on_refusal_();
}

template <typename T>
void Store<T>::Hide(std::set<std::string> namespaces) {
  const std::set<std::string> before = std::exchange(hidden_, std::move(namespaces));
  for (const auto& [key, item] : items_) {
    const bool was_shown = !before.contains(key.ns);
    if (was_shown && !IsShown(key)) Announce({key, item.value, nullptr});
    if (!was_shown && IsShown(key)) Announce({key, nullptr, item.value});
  }
}

template <typename T>
std::vector<std::shared_ptr<const T>> Store<T>::All() const {
  std::vector<std::shared_ptr<const T>> all;
  all.reserve(items_.size());
  for (const auto& [key, item] : items_) {
    if (IsShown(key)) all.push_back(item.value);
  }
  return all;
}

template <typename T>
std::vector<std::shared_ptr<const T>> Store<T>::Lookup(IndexId index,
                                                       const std::string& index_key) const {
  const auto& entries = indexes_[std::to_underlying(index)].entries;
  std::vector<std::shared_ptr<const T>> found;
  if (const auto entry = entries.find(index_key); entry != entries.end()) {
    for (const NamespacedName& key : entry->second) found.push_back(items_.at(key).value);
  }
  return found;
}

template <typename T>
void Store<T>::Reindex(const Change& change) {
  for (Index& index : indexes_) {
    if (change.before != nullptr) {
      for (const std::string& index_key : index.keys_of(*change.before)) {
        const auto entry = index.entries.find(index_key);
        if (entry == index.entries.end()) continue;  // named twice by keys_of
        entry->second.erase(change.key);
        if (entry->second.empty()) index.entries.erase(entry);
      }
    }
    if (change.after != nullptr) {
      for (std::string& index_key : index.keys_of(*change.after)) {
        index.entries[std::move(index_key)].insert(change.key);
      }
    }
  }
}

template <typename T>
void Store<T>::Notify(const Change& change) {
  if (IsShown(change.key)) Announce(change);
}

template <typename T>
void Store<T>::Announce(const Change& change) {
  Reindex(change);
  for (const Handler& handler : handlers_) handler(change);
}

}  // namespace pliant::kube
