# The big headers, parsed once for all files instead of once for each. Off, like CMAKE_UNITY_BUILD, in preset dev, which
# finds files that lack an #include.
option(PLIANT_PRECOMPILE "Precompile the big headers (for ccache set CCACHE_SLOPPINESS=pch_defines,time_macros)" OFF)

# pliant_precompile(TARGET library|program|test): adds the precompiled headers for this kind of target.
function(pliant_precompile target kind)
  if(PLIANT_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM pliant_${kind}_headers)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # required by ccache
  endif()
endfunction()

if(PLIANT_PRECOMPILE)
  set(standard_headers
    <nlohmann/json.hpp>
    <algorithm> <array> <chrono> <cstdint> <deque> <expected> <filesystem> <format> <fstream> <functional> <map> <memory>
    <optional> <random> <set> <span> <string> <string_view> <thread> <utility> <variant> <vector>)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cc CONTENT "int main() {}\n")
  # Each kind has its own options, so its own precompiled headers: programs have -fPIE, libraries -fPIC, and tests are
  # not optimised.
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
