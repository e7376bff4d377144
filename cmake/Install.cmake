# What `cmake --install` adds to the tools and the runtime: a tree that works wherever it is moved to.
#
#   bin/heedc ...                 finds lib/heed relative to itself
#   lib/heed/                     libheed_runtime.a, libheed.a (for programs that load models), libHalide.so (of the
#                                 wheel; no system has it)
#   include/heed/                 heed.h, heed.hpp, states.h, generate.h, generate.hpp, host.h
#   share/doc/heed/               licences: ours, and Halide's, whose runtime is a part of every model
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

install(FILES LICENSE DESTINATION share/doc/heed)
file(GLOB _heed_halide_licence "${HEED_HALIDE_ROOT}/../halide-*.dist-info/licenses/LICENSE.txt")
if(NOT _heed_halide_licence)
  message(FATAL_ERROR "expected Halide's licence beside '${HEED_HALIDE_ROOT}'")
endif()
list(GET _heed_halide_licence 0 _heed_halide_licence)
install(FILES "${_heed_halide_licence}" DESTINATION share/doc/heed RENAME LICENSE.Halide)
