# A room is one folder under src/, one static library plimsoll_<room>, one namespace.
# The rooms it may link are the ones its floor allows; tests/house checks the includes.

add_library(plimsoll_flags INTERFACE)
target_compile_options(plimsoll_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow
  # g++ 12 reports impossible overlaps in std::string (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(PLIMSOLL_WERROR)
  target_compile_options(plimsoll_flags INTERFACE -Werror)
endif()
if(PLIMSOLL_SANITIZE)
  target_compile_options(plimsoll_flags INTERFACE
    -fsanitize=${PLIMSOLL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(plimsoll_flags INTERFACE -fsanitize=${PLIMSOLL_SANITIZE})
endif()
if(PLIMSOLL_FUZZ)
  # Every room is watched for new paths, not only the fuzz target itself.
  target_compile_options(plimsoll_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# plimsoll_room(<name> ROOMS <rooms it includes> LIBS <third-party targets>)
function(plimsoll_room name)
  cmake_parse_arguments(ROOM "" "" "ROOMS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  add_library(plimsoll_${name} STATIC ${sources})
  target_include_directories(plimsoll_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM ROOM_ROOMS PREPEND plimsoll_)
  target_link_libraries(plimsoll_${name} PUBLIC ${ROOM_ROOMS} PRIVATE plimsoll_flags ${ROOM_LIBS})
endfunction()

# plimsoll_tests(<room>): every tests/<room>/*_test.cpp, in one program, label `fast`.
function(plimsoll_tests name)
  cmake_parse_arguments(ROOM "" "" "ROOMS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  list(TRANSFORM ROOM_ROOMS PREPEND plimsoll_)
  add_executable(plimsoll_${name}_test ${sources})
  target_include_directories(plimsoll_${name}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(plimsoll_${name}_test PRIVATE
    plimsoll_${name} plimsoll_testing ${ROOM_ROOMS} ${ROOM_LIBS} plimsoll_flags GTest::gtest GTest::gtest_main)
  target_compile_definitions(plimsoll_${name}_test PRIVATE
    PLIMSOLL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(plimsoll_${name}_test DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS fast TIMEOUT 300)
endfunction()
