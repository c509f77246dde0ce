// Compiles the code that BOOST_BEAST_SEPARATE_COMPILATION leaves out of the headers.
#include <boost/beast/src.hpp>
