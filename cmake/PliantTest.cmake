# `cmake --build build/dev --target unit_tests` builds the programs of one label.
foreach(label unit scenario property simulation integration python gpu)
  add_custom_target(${label}_tests)
endforeach()

# A test's own code runs for milliseconds and would take long to optimise, so it is not. The code under test is.
set(PLIANT_TEST_OPTIONS -O0 -U_FORTIFY_SOURCE)

# A second thread ends the program. Not with sanitizers: AddressSanitizer has its own pthread_create.
function(pliant_one_thread program)
  if(NOT PLIANT_SANITIZE)
    target_sources(${program} PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/one_thread.cc)
  endif()
endfunction()

# pliant_test(NAME SOURCES a_test.cc ... LINK libs ... [LABEL unit|scenario|property|simulation|integration|python] [TIMEOUT seconds]
#             [ONE_THREAD])
# One GoogleTest program, registered as one ctest with the given label (default: the name of its folder).
# ONE_THREAD: a second thread ends the program. ThreadSanitizer would find nothing in it, so its builds leave it out.
function(pliant_test name)
  cmake_parse_arguments(ARG "ONE_THREAD" "LABEL;TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(ARG_ONE_THREAD AND PLIANT_SANITIZE MATCHES "thread")
    return()
  endif()
  if(NOT ARG_LABEL)
    get_filename_component(ARG_LABEL ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 400)  # ends a hung test, but not one that is slow on a busy machine
  endif()
  add_executable(${name} ${ARG_SOURCES})
  if(ARG_ONE_THREAD)
    pliant_one_thread(${name})
  endif()
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main)
  pliant_precompile(${name} test)
  target_compile_options(${name} PRIVATE ${PLIANT_TEST_OPTIONS})
  target_compile_definitions(${name} PRIVATE PLIANT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_dependencies(${ARG_LABEL}_tests ${name})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# pliant_also_gpu(NAMES ...): ./dev test gpu runs these tests too. They are of the current folder; those that do not exist
# are left out.
function(pliant_also_gpu)
  foreach(name ${ARGN})
    if(TEST ${name})
      set_property(TEST ${name} APPEND PROPERTY LABELS gpu)
    endif()
    if(TARGET ${name})
      add_dependencies(gpu_tests ${name})
    endif()
  endforeach()
endfunction()

# pliant_new_seeds(NAME [ENVIRONMENT "A=b"] [ARGUMENTS "words ..."]): ./dev test all also runs the test NAME with seeds that no
# run had before. $PLIANT_NEW_SEED, which ./dev draws and prints, is the first of them. Both texts are for a shell. The first
# line of the output replays the run. It writes no report, which would overwrite that of the program's other run.
function(pliant_new_seeds name)
  cmake_parse_arguments(ARG "" "ENVIRONMENT;ARGUMENTS" "" ${ARGN})
  if(NOT TEST ${name})
    return()
  endif()
  get_test_property(${name} LABELS labels)
  set(replay "PLIANT_NEW_SEED=$PLIANT_NEW_SEED ctest --test-dir ${CMAKE_BINARY_DIR} -R ^${name}_new_seeds -V")
  add_test(NAME ${name}_new_seeds
    COMMAND sh -uc "echo \"${replay}\"; ${ARG_ENVIRONMENT} $<TARGET_FILE:${name}> ${ARG_ARGUMENTS}")
  set_tests_properties(${name}_new_seeds PROPERTIES LABELS "${labels};long" TIMEOUT 3600 ENVIRONMENT GTEST_OUTPUT=)
endfunction()
