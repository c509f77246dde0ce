#pragma once

#include <memory>
#include <utility>

namespace pliant {

// The life of an object, as callbacks that it has given away know it: what is guarded by it does
// nothing once it is over. A member of that object. Callbacks run on the thread that ends it.
class Lifetime {
 public:
  // Outlives the object, to ask whether that still lives: after a call that may have destroyed it.
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

  // `callback`, which must return nothing.
  template <typename Callback>
  auto Guard(Callback callback) const {
    return [watch = watch(), callback = std::move(callback)]<typename... T>(T&&... values) mutable {
      if (!watch.over()) callback(std::forward<T>(values)...);
    };
  }

  // Ends all that was guarded until now; what is guarded from here on lives.
  void Renew() { alive_ = std::make_shared<const bool>(true); }

 private:
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace pliant
