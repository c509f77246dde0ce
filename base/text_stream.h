#pragma once

#include <memory>
#include <string>

namespace pliant {

// An answer that never ends: texts that follow one another, for one reader. On the server's loop.
class TextStream {
 public:
  virtual ~TextStream() = default;

  // Sends a text, which several readers may share. A reader that is too far behind is dropped: the
  // stream is closed. Does nothing on a closed stream.
  virtual void Send(std::shared_ptr<const std::string> text) = 0;
  // The reader may come back, and then begins again.
  virtual void Close() = 0;
  // False once the reader is gone, or was dropped.
  virtual bool open() const = 0;
};

}  // namespace pliant
