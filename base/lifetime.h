#pragma once

#include <memory>
#include <utility>

namespace pliant {

// Guards the callbacks that an object has given away: a guarded callback does nothing once the
// lifetime is over. A member of that object. Callbacks run on the thread that ends the lifetime.
class Lifetime {
 public:
  // Outlives the object and tells whether it still exists, for use after a call that may have
  // destroyed it.
  class Watch {
   public:
    bool over() const { return alive_.expired(); }

   private:
    friend class Lifetime;
    explicit Watch(std::weak_ptr<const bool> alive) : alive_(std::move(alive)) {}
    std::weak_ptr<const bool> alive_;
  };

  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  Watch watch() const { return Watch(alive_); }

  // Wraps `callback`, which must return void.
  template <typename Callback>
  auto Guard(Callback callback) const {
    return [watch = watch(), callback = std::move(callback)]<typename... T>(T&&... values) mutable {
      if (!watch.over()) callback(std::forward<T>(values)...);
    };
  }

  // Disables all callbacks guarded until now; callbacks guarded from here on work.
  void Renew() { alive_ = std::make_shared<const bool>(true); }

 private:
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace pliant
