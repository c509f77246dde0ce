#pragma once

#include <boost/asio/execution/context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/query.hpp>

namespace pliant {

// The event loop of a socket. What is posted to it directly is queued; through the socket's
// executor, whose type is erased, it wakes the loop's poll instead: 75 µs became 100 µs for an
// all-reduce of 4 KiB.
template <typename Socket>
boost::asio::io_context& ContextOf(Socket& socket) {
  return static_cast<boost::asio::io_context&>(
      boost::asio::query(socket.get_executor(), boost::asio::execution::context));
}

}  // namespace pliant
