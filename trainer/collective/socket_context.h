#pragma once

#include <boost/asio/execution/context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/query.hpp>

namespace pliant {

// The event loop of a socket. A task that is posted to it directly is queued. A task that is posted
// through the socket's executor, whose type is erased, wakes the loop's poll instead, which made an
// all-reduce of 4 KiB take 100 µs instead of 75 µs.
template <typename Socket>
boost::asio::io_context& ContextOf(Socket& socket) {
  return static_cast<boost::asio::io_context&>(
      boost::asio::query(socket.get_executor(), boost::asio::execution::context));
}

}  // namespace pliant
