#pragma once

#include <array>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/query.hpp>
#include <cstddef>
#include <new>
#include <utility>

namespace pliant {

// Room for one operation of Boost.Asio that is begun again and again, but not twice at a time: so
// it takes no memory. A second one does, and one that is larger. Outlives the operation: its
// handler owns who has this.
class HandlerMemory {
 public:
  HandlerMemory() = default;
  HandlerMemory(const HandlerMemory&) = delete;
  HandlerMemory& operator=(const HandlerMemory&) = delete;

  void* Take(std::size_t bytes) {
    if (taken_ || bytes > room_.size()) return ::operator new(bytes);
    taken_ = true;
    return room_.data();
  }
  void GiveBack(void* memory) {
    if (memory != room_.data()) return ::operator delete(memory);
    taken_ = false;
  }

 private:
  alignas(std::max_align_t) std::array<std::byte, 256> room_;
  bool taken_ = false;
};

template <typename T>
class HandlerAllocator {
 public:
  using value_type = T;
  explicit HandlerAllocator(HandlerMemory& memory) : memory_(&memory) {}
  template <typename U>
  HandlerAllocator(const HandlerAllocator<U>& other) : memory_(&other.memory()) {}

  T* allocate(std::size_t count) { return static_cast<T*>(memory_->Take(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t) { memory_->GiveBack(memory); }
  HandlerMemory& memory() const { return *memory_; }
  bool operator==(const HandlerAllocator&) const = default;

 private:
  HandlerMemory* memory_;
};

// `handler`, whose operation lies in `memory`.
template <typename Handler>
auto InMemory(HandlerMemory& memory, Handler handler) {
  return boost::asio::bind_allocator(HandlerAllocator<void>(memory), std::move(handler));
}

// What is posted to the type-erased executor of a socket does not lie where its handler wants it.
template <typename Socket>
boost::asio::io_context& ContextOf(Socket& socket) {
  return static_cast<boost::asio::io_context&>(
      boost::asio::query(socket.get_executor(), boost::asio::execution::context));
}

}  // namespace pliant
