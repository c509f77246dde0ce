# Warnings, hardening and sanitizers: the same for every target of the project.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow
                    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
                    -Wno-missing-field-initializers -Werror)
if(CMAKE_UNITY_BUILD)
  # A unity build includes .cc files in another one. GCC then takes their classes for classes of a header, and warns if
  # these have members of types that are local to their file.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
# Compiled once: base/asio_source.cc, base/beast_source.cc.
add_compile_definitions(BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION)
# No fast-math and no contraction: a learner's bits must not depend on how a compiler fused a multiply and an add.
add_compile_options(-ffp-contract=off)
add_compile_options(-fstack-protector-strong $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=3>)
add_link_options(-Wl,-z,relro,-z,now)

find_program(PLIANT_CCACHE ccache)
if(PLIANT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${PLIANT_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PLIANT_CCACHE})
endif()

find_program(PLIANT_MOLD mold)
if(PLIANT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

set(PLIANT_SANITIZE "" CACHE STRING "Sanitizers to build with, for example 'address,undefined' or 'thread'")
if(PLIANT_SANITIZE)
  add_compile_options(-fsanitize=${PLIANT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PLIANT_SANITIZE})
  if(PLIANT_SANITIZE MATCHES "thread")
    # ThreadSanitizer does not support fences; asio's mutexes give the same order.
    add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
    add_compile_options(-Wno-tsan)
  endif()
  if(PLIANT_SANITIZE MATCHES "undefined")
    # vptr has false positives for objects of templates that cpprestsdk's library instantiated. AddressSanitizer finds
    # null pointers, and x86 allows unaligned access; these two checks are half of the code that the compiler generates.
    add_compile_options(-fno-sanitize=vptr,null,alignment)
    # A floating-point number that the integer type cannot hold: GCC does not include this check in `undefined`.
    add_compile_options(-fsanitize=float-cast-overflow)
  endif()
endif()
