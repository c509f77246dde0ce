#pragma once

// For the .cc files of servers only: pulls asio in.

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "base/byte_stream.h"
#include "base/text_stream.h"

namespace pliant {

// The server's end of a TextStream. Run keeps it alive, and so does every owner that sends.
class TextStreamSession final : public TextStream,
                                public std::enable_shared_from_this<TextStreamSession> {
 public:
  // At most `max_backlog` bytes wait behind the text that is being sent. Texts that were sent
  // before Run do not count.
  TextStreamSession(ByteStream stream, std::size_t max_backlog);

  // Sends `header`, then the texts, until the reader is gone or dropped. `once`: the header is all.
  boost::asio::awaitable<void> Run(std::string header, bool once);

  void Send(std::shared_ptr<const std::string> text) override;
  void Close() override;
  bool open() const override { return open_; }

 private:
  void StartWriting();
  static boost::asio::awaitable<void> Write(std::shared_ptr<TextStreamSession> self);

  const std::size_t max_backlog_;
  ByteStream stream_;
  struct Waiting {
    std::shared_ptr<const std::string> text;
    std::size_t bytes = 0;  // of the backlog
  };
  std::deque<Waiting> queue_;  // without the text that is being sent
  std::size_t backlog_ = 0;
  bool begun_ = false;  // whether the header comes first in the queue, or was sent
  bool writing_ = false;
  bool open_ = true;
};

}  // namespace pliant
