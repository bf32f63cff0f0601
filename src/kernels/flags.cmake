# The kernels room is the only one built for several instruction sets; which table runs is chosen at run time.
# No contraction anywhere: a product that is rounded in one table and fused in another would make
# dequantization differ from the format's definition.
file(GLOB kernel_sources ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
set_property(SOURCE ${kernel_sources} APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=off)
