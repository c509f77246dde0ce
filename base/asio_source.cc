// Compiles the code that BOOST_ASIO_SEPARATE_COMPILATION leaves out of the headers.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
