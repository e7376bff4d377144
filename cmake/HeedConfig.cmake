# The installed Heed, for projects that compile models:
#
#   find_package(Heed REQUIRED)
#   heed_add_model(sdpa models/sdpa.heed)     # a library, and its header sdpa.h
#   target_link_libraries(program PRIVATE sdpa)
#
# Targets: Heed::heedc (the compiler), Heed::heed (headers and system libraries that every model needs).
get_filename_component(_heed_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
include(CMakeFindDependencyMacro)
find_dependency(Threads)

if(NOT TARGET Heed::heed)
  add_executable(Heed::heedc IMPORTED)
  set_target_properties(Heed::heedc PROPERTIES IMPORTED_LOCATION "${_heed_prefix}/bin/heedc")
  add_library(Heed::heed INTERFACE IMPORTED)
  set_target_properties(Heed::heed PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_heed_prefix}/include/heed"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;m")
endif()

# heed_add_model(NAME FILE [OPTIONS ...]): compiles FILE with heedc to a static library, the target NAME, and a header
# NAME.h that its users find. OPTIONS go to heedc: --prefix=..., --set=..., --target=... A change of FILE, of what it
# imports, of a config or of weights that OPTIONS name compiles it anew.
function(heed_add_model name file)
  cmake_parse_arguments(ARG "" "" "OPTIONS" ${ARGN})
  get_filename_component(source "${file}" ABSOLUTE)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}.heed.dir")
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(
    OUTPUT "${folder}/lib${name}.a" "${folder}/${name}.h"
    COMMAND Heed::heedc "${source}" ${ARG_OPTIONS} --emit=header -o "${folder}/${name}.h"
    COMMAND Heed::heedc "${source}" ${ARG_OPTIONS} --emit=lib -o "${folder}/lib${name}.a" -MF "${folder}/${name}.d"
    DEPENDS "${source}" Heed::heedc
    DEPFILE "${folder}/${name}.d"
    COMMENT "Compiling the model ${name}" VERBATIM)
  add_custom_target(${name}_heed DEPENDS "${folder}/lib${name}.a" "${folder}/${name}.h")
  add_library(${name} INTERFACE)
  add_dependencies(${name} ${name}_heed)
  target_include_directories(${name} INTERFACE "${folder}")
  target_link_libraries(${name} INTERFACE "${folder}/lib${name}.a" Heed::heed)
endfunction()
