# What `cmake --install` adds to the tools and the runtime: a tree that works wherever it is moved to.
#
#   bin/heedc ...                 finds lib/heed relative to itself
#   lib/heed/                     libheed_runtime.a, libHalide.so (of the wheel; no system has it)
#   include/heed/                 heed.h, host.h
#   lib/pkgconfig/heed.pc         for programs over `heedc --emit=lib`
#   lib/cmake/Heed/               the same for CMake, and heed_add_model()
include(CMakePackageConfigHelpers)

get_target_property(_heed_halide_library Halide::Halide IMPORTED_LOCATION_RELEASE)
if(NOT _heed_halide_library)
  get_target_property(_heed_halide_library Halide::Halide IMPORTED_LOCATION)
endif()
install(PROGRAMS "${_heed_halide_library}" DESTINATION lib/heed)

configure_file(cmake/heed.pc.in heed.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/heed.pc" DESTINATION lib/pkgconfig)

write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/HeedConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES cmake/HeedConfig.cmake "${CMAKE_CURRENT_BINARY_DIR}/HeedConfigVersion.cmake" DESTINATION lib/cmake/Heed)
