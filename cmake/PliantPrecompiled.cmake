# The big headers, read once for all files instead of once by each. Off, like CMAKE_UNITY_BUILD, where files that forgot
# an #include are looked for: preset dev.
option(PLIANT_PRECOMPILE "Precompile the big headers (for ccache set CCACHE_SLOPPINESS=pch_defines,time_macros)" OFF)

# pliant_precompile(TARGET library|program|test): what one of these reads.
function(pliant_precompile target kind)
  if(PLIANT_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM pliant_${kind}_headers)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # ccache wants it
  endif()
endfunction()

if(PLIANT_PRECOMPILE)
  set(standard_headers
    <nlohmann/json.hpp>
    <algorithm> <array> <chrono> <cstdint> <deque> <expected> <filesystem> <format> <fstream> <functional> <map> <memory>
    <optional> <random> <set> <span> <string> <string_view> <thread> <utility> <variant> <vector>)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cc CONTENT "int main() {}\n")
  # A program's code is made for another place than a library's (-fPIE, -fPIC), and a test's is not optimised.
  add_library(pliant_library_headers OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
  target_precompile_headers(pliant_library_headers PRIVATE ${standard_headers})
  target_compile_options(pliant_library_headers PRIVATE -fpch-preprocess)
  add_executable(pliant_program_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled.cc)
  target_precompile_headers(pliant_program_headers PRIVATE ${standard_headers})
  target_compile_options(pliant_program_headers PRIVATE -fpch-preprocess)
  if(PLIANT_TESTS)
    add_executable(pliant_test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled.cc)
    target_precompile_headers(pliant_test_headers PRIVATE ${standard_headers} <gmock/gmock.h> <gtest/gtest.h>)
    target_compile_options(pliant_test_headers PRIVATE ${PLIANT_TEST_OPTIONS} -fpch-preprocess)
    target_link_libraries(pliant_test_headers PRIVATE GTest::gmock)
  endif()
endif()
