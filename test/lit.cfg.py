"""lit's configuration: which files are tests, and what the tools are called in them.

`ninja check-heed` runs everything; `lit build/test --filter=Attn` a part. Substitutions: the tools of
build/bin by name, FileCheck, %python, %cc, %heed_src, %heed_bin. In Python tests `%inputs` folders hold no test.
"""
import glob
import os
import shutil

import lit.formats

config.name = "heed"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir", ".heed", ".test", ".py"]
config.excludes = ["lit.cfg.py", "lit.site.cfg.py", "Inputs", "CMakeLists.txt", "peers"]  # peers: `make test-peers`
config.test_source_root = os.path.join(config.heed_source, "test")
config.test_exec_root = os.path.join(config.heed_build, "test")
config.available_features.update(f for f in config.heed_features if f)

bin_dir = os.path.join(config.heed_build, "bin")
llvm_bin = os.path.join(config.heed_llvm, "bin")  # not, count
path = [bin_dir, os.path.dirname(config.heed_python), config.environment["PATH"], llvm_bin]
config.environment["PATH"] = os.pathsep.join(path)
# Python tests import what they share from test/support, and the package; it takes the compiler that was built.
config.environment["PYTHONPATH"] = os.pathsep.join([os.path.join(config.test_source_root, "support"),
                                                    os.path.join(config.heed_source, "python")])
config.environment["HEEDC"] = os.path.join(bin_dir, "heedc")
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
# The machine may have no other C compiler than the one that Heed is built with.
config.environment["CC"] = config.heed_cc
# libMLIR is not instrumented, so containers that cross it look overrun.
config.environment["ASAN_OPTIONS"] = "detect_container_overflow=0:detect_leaks=0"

# Kernels that tests share are compiled once, and the user's cache is left alone.
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")

for tool in ("heedc", "heed-opt", "heed-check"):
    if os.path.exists(os.path.join(bin_dir, tool)):
        config.available_features.add(tool)
# A platform that OpenCL's library may load: PoCL, which tools/setup installs.
if glob.glob("/etc/OpenCL/vendors/*.icd"):
    config.available_features.add("opencl")
    config.environment["POCL_CACHE_DIR"] = os.path.join(config.test_exec_root, "pocl")  # and device code of theirs

# What x86-64-v4 code needs to run.
if os.path.exists("/proc/cpuinfo"):
    with open("/proc/cpuinfo") as cpuinfo:
        words = set(cpuinfo.read().split())
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"} <= words:
        config.available_features.add("avx512")

config.substitutions += [
    (r"\bFileCheck\b", config.heed_filecheck + " --dump-input-filter=annotation"),
    ("%python", config.heed_python),
    ("%cmake", config.heed_cmake),
    ("%cc", config.heed_cc),
    ("%mlir_runner", os.path.join(config.heed_llvm, "bin", "mlir-runner")),
    ("%mlir_tblgen", os.path.join(config.heed_llvm, "bin", "mlir-tblgen")),
    ("%mlir_lib", os.path.join(config.heed_llvm, "lib")),
    ("%heed_src", config.heed_source),
    ("%heed_bin", bin_dir),
    ("%heed_build", config.heed_build),
]
