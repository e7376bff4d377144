# Thin front of CMake: each target installs what is missing (tools/setup), builds and does its job.
.PHONY: build run test test-peers asan tsan tidy bench install clean slow-files
PREFIX ?= /usr/local
export PATH := $(CURDIR)/.venv/bin:$(PATH)

build:
	@tools/setup
	@[ -f build/build.ninja ] || cmake --preset release
	@ninja -C build

run: build
	@.venv/bin/python models/whole-model/minilm/run.py --build build

test: build
	@ninja -C build check-heed

# TEST="swin": files of that name only.
test-peers: build ## models against packages that implement the same systems (5 GB into .venv-peers)
	@test/peers/setup
	@.venv/bin/python tools/suite-times.py .venv/bin/lit -sv test/peers --filter "$(TEST)"

asan: ## tests of runtime and front end, and a minute of fuzzing each reader and the parser, with ASan and UBSan
	@tools/setup
	@[ -f build-asan/build.ninja ] || cmake --preset asan
	@ninja -C build-asan check-asan

tsan: ## tests of the runtime with ThreadSanitizer
	@tools/setup
	@[ -f build-tsan/build.ninja ] || cmake --preset tsan
	@ninja -C build-tsan check-tsan

# FILES="passes/Raise": a regular expression of paths; all, else.
tidy: ## clang-tidy on every C and C++ file of ours
	@tools/setup clang-tidy-22
	@[ -f build-tidy/build.ninja ] || cmake --preset tidy
	@ninja -C build-tidy heed_tablegen heed_dialect_headers
	@run-clang-tidy-22 -quiet -p build-tidy -warnings-as-errors='*' "$(CURDIR)/($(or $(FILES),(bench|compiler|dialects|frontend|passes|runtime|support)/))"

# CASE="causal N=2048": cases of that name only, CASE=zoo: the zoo's, CASE=gpu: a GPU's. REPORT=1: docs/performance.md, or {zoo,recurrence,generate}-performance.md, from this run. BENCH="...": options of run.py.
bench: build
ifeq ($(CASE),gpu)
	@.venv/bin/python bench/gpu.py --build build $(BENCH)
else
	@bench/setup
	@.venv/bin/python bench/run.py --build build --case "$(CASE)" $(if $(REPORT),--report) $(BENCH)
endif

install: build
	@cmake --install build --prefix "$(PREFIX)"

slow-files: ## the ten slowest files of the last build
	@.venv/bin/python tools/slow-files.py build

clean:
	rm -rf build build-dev build-asan build-tsan build-mutations build-tidy
