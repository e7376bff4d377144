# Finds MLIR, LLVM and Halide, and defines how this project declares libraries and tools.

find_package(MLIR 22.1 REQUIRED CONFIG PATHS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

file(GLOB _heed_halide_dirs "${HEED_VENV}/lib/python3.*/site-packages/halide")
list(GET _heed_halide_dirs 0 HEED_HALIDE_ROOT)
list(APPEND CMAKE_PREFIX_PATH "${HEED_HALIDE_ROOT}")
find_package(Halide 21.0 REQUIRED CONFIG COMPONENTS shared)

# Messages, reports and generated text (support/Format.h).
find_package(fmt 9.1 REQUIRED CONFIG)

find_program(HEED_LLD NAMES ld.lld-22 ld.lld HINTS /usr/lib/llvm-22/bin)
if(HEED_LLD)
  add_link_options("-fuse-ld=lld")
endif()
find_program(HEED_CCACHE ccache)
if(HEED_CCACHE)
  # ccache takes files over a precompiled header only when told that their macros don't change it.
  set(_heed_launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${HEED_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${_heed_launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${_heed_launcher})
endif()

if(HEED_MUTATIONS)
  add_compile_definitions(HEED_MUTATIONS)
endif()

# libHalide and LLVM make and drop millions of small nodes: with libc's malloc a kernel compiles a tenth longer.
if(NOT HEED_SANITIZE)
  find_package(mimalloc 2.0 REQUIRED CONFIG)
  set(HEED_MALLOC mimalloc)
endif()

if(HEED_SANITIZE)
  add_compile_options(-fsanitize=${HEED_SANITIZERS} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HEED_SANITIZERS})
endif()

# What every C++ file that sees MLIR is compiled with. Debian's LLVM has RTTI and no exceptions; a target that needs them
# nevertheless sets HEED_EXCEPTIONS.
add_library(heed_mlir INTERFACE)
target_include_directories(heed_mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_include_directories(heed_mlir INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_compile_definitions(heed_mlir INTERFACE ${LLVM_DEFINITIONS_LIST})
set(_heed_no_exceptions $<COMPILE_LANGUAGE:CXX> $<NOT:$<BOOL:$<TARGET_PROPERTY:HEED_EXCEPTIONS>>>)
list(JOIN _heed_no_exceptions "," _heed_no_exceptions)
target_compile_options(heed_mlir INTERFACE $<$<AND:${_heed_no_exceptions}>:-fno-exceptions> -Wall -Wextra
                       -Wno-unused-parameter)
target_link_libraries(heed_mlir INTERFACE MLIR LLVM fmt::fmt)

# MLIR's headers that most files over its dialects include, parsed once: about 4 of a file's 10 seconds.
# Files still include what they use. Without times in it, ccache finds it again.
set(HEED_PCH_FLAGS "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
add_library(heed_dialect_headers OBJECT ${CMAKE_SOURCE_DIR}/cmake/DialectHeaders.cpp)
target_link_libraries(heed_dialect_headers PRIVATE heed_mlir)
target_compile_options(heed_dialect_headers PRIVATE ${HEED_PCH_FLAGS})
target_precompile_headers(heed_dialect_headers PRIVATE
  <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Func/IR/FuncOps.h> <mlir/Dialect/Linalg/IR/Linalg.h>
  <mlir/Dialect/Math/IR/Math.h> <mlir/Dialect/SCF/IR/SCF.h> <mlir/Dialect/Tensor/IR/Tensor.h>
  <mlir/IR/Builders.h> <llvm/ADT/STLExtras.h> <llvm/ADT/StringExtras.h> <llvm/ADT/TypeSwitch.h> <fmt/format.h>)

# heed_library(NAME SOURCES a.cpp ... LINK lib ... [DIALECT_HEADERS]): a static library over MLIR.
function(heed_library name)
  cmake_parse_arguments(ARG "DIALECT_HEADERS" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC heed_mlir ${ARG_LINK})
  if(ARG_DIALECT_HEADERS)
    target_compile_options(${name} PRIVATE ${HEED_PCH_FLAGS})
    target_precompile_headers(${name} REUSE_FROM heed_dialect_headers)
    # Two files of a library at a time: templates of MLIR that both use are instantiated once.
    set_target_properties(${name} PROPERTIES UNITY_BUILD ${HEED_UNITY} UNITY_BUILD_BATCH_SIZE 2)
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  # Headers that TableGen writes must exist before any file that may include them is compiled.
  if(TARGET heed_tablegen AND NOT name STREQUAL "heed_tablegen")
    add_dependencies(${name} heed_tablegen)
  endif()
  set_property(GLOBAL APPEND PROPERTY HEED_LIBRARIES ${name})
endfunction()

# heed_tool(NAME SOURCES a.cpp ... LINK lib ...): an executable in build/bin that finds its libraries relative to itself.
function(heed_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE heed_mlir ${ARG_LINK})
  # Installed: libHalide.so lies in lib/heed beside the runtime, MLIR and LLVM are the system's.
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/heed;${LLVM_LIBRARY_DIR}")
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

# heed_tablegen_target(OUT_PREFIX FILE.td -gen-a file.inc ...): TableGen outputs collected in the target heed_tablegen.
add_custom_target(heed_tablegen)
