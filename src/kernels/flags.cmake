# The kernels room is the only one built for several instruction sets; which table runs is chosen at run time.
file(GLOB kernel_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
# No contraction anywhere: a product that is rounded in one table and fused in another would make
# dequantization differ from the format's definition.
set_property(SOURCE ${kernel_sources} APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=off)

set(avx512_sources ${CMAKE_CURRENT_LIST_DIR}/avx512.cpp ${CMAKE_CURRENT_LIST_DIR}/avx512_vnni.cpp
                   ${CMAKE_CURRENT_LIST_DIR}/avx512_bf16.cpp)
set(wide_sources ${CMAKE_CURRENT_LIST_DIR}/avx2.cpp ${avx512_sources})
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/avx2.cpp APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mfma -mf16c)
  set_property(SOURCE ${avx512_sources} APPEND PROPERTY COMPILE_OPTIONS
    -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c
    # g++ 12 takes the deliberately undefined registers of its own header for a mistake (GCC bug 105593).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/avx512_vnni.cpp APPEND PROPERTY COMPILE_OPTIONS -mavx512vnni)
  set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/avx512_bf16.cpp APPEND PROPERTY COMPILE_OPTIONS
    -mavx512vnni -mavx512bf16)
else()
  set_property(SOURCE ${wide_sources} PROPERTY HEADER_FILE_ONLY ON)
endif()
