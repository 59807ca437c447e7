# A plain front for CMake: `make`, `make test`, `make install PREFIX=…`. Presets live in CMakePresets.json.
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
MAKEFLAGS += --no-print-directory

.PHONY: all test test-long bench fuzz install format format-check clean
all: build/Makefile
	@cmake --build build -j $(JOBS)

build/Makefile:
	@cmake --preset release

build/%/Makefile:
	@cmake --preset $*

# Every fast test: the release build, the double-precision build (gradient checks) and the sanitizers.
test: all build/double/Makefile build/sanitize/Makefile
	@cmake --build build/double -j $(JOBS)
	@cmake --build build/sanitize -j $(JOBS)
	@sh tests/run_all.sh

test-long: test
	@ctest --test-dir build -L long --output-on-failure

bench: all
	@sh bench/run.sh

fuzz:
	@sh fuzz/run.sh

install: all
	@cmake --install build --prefix $(PREFIX) --strip

format:
	@clang-format -i $$(git ls-files '*.c' '*.h')

# What CI asks: every source as clang-format 14 (Debian 12) writes it.
format-check:
	@clang-format --dry-run --Werror $$(git ls-files '*.c' '*.h')

clean:
	@rm -rf build
