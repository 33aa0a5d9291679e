# SPDX-License-Identifier: BSD-3-Clause
# A thin front for Meson: each target makes sure of its packages, configures and builds what it
# needs. Nothing about sources stands here.

BUILD ?= build
prefix ?= /usr/local
# Where Debian looks; Meson finds out by itself only where dpkg-dev is installed.
libdir ?= $(patsubst %/,%,lib/$(shell $(CC) -print-multiarch 2>/dev/null))
# Share of the full-size figures that randomised tests run: a fraction or a decimal. `make soak` runs all.
TEST_SCALE ?= 1/10
SOAK_SCALE ?= 1
FUZZ_SECONDS ?= 60
BENCH ?=
# NTSCOPE_BOOTSTRAP=no leaves the system's packages alone.
NTSCOPE_BOOTSTRAP ?= yes
# WERROR=true turns warnings into errors, as CI does.
WERROR ?= false

export TEST_SCALE

ifeq ($(NTSCOPE_BOOTSTRAP),no)
packages = @:
else
packages = @scripts/bootstrap.sh
endif
configure = @scripts/configure.sh
ninja = @ninja -C

.PHONY: all demo check soak lint format bench fuzz sanitize install fresh clean distclean help

all: ## build into build/ (the tool is build/ntscope)
	$(packages) build
	$(configure) $(BUILD) -Dwerror=$(WERROR)
	$(ninja) $(BUILD)

demo: ## build, then show the tool on a running multi-process program
	$(packages) demo
	$(configure) $(BUILD) -Dwerror=$(WERROR)
	$(ninja) $(BUILD) --quiet
	@NTSCOPE_BUILD="$(abspath $(BUILD))" examples/relay/demo.sh

check: ## build and run all tests (TEST_SCALE=1/10)
	$(packages) check
	$(configure) $(BUILD) -Dtests=true -Dwerror=$(WERROR)
	$(ninja) $(BUILD)
	@meson test -C $(BUILD) --no-rebuild --print-errorlogs

soak: ## run all tests at full size, without time limits (SOAK_SCALE=1)
	$(packages) check
	$(configure) $(BUILD) -Dtests=true
	$(ninja) $(BUILD)
	@TEST_SCALE=$(SOAK_SCALE) meson test -C $(BUILD) --no-rebuild --print-errorlogs -t 0

lint: ## formatting, floors, sizes, banned functions; builds nothing
	$(packages) lint
	@scripts/lint

format: ## rewrite all C sources in the project's format
	$(packages) lint
	@scripts/lint --fix

bench: ## measure; table and build/bench.json (BENCH=name picks one)
	$(packages) build
	$(packages) --try bench
	$(configure) $(BUILD) -Dbench=true
	$(ninja) $(BUILD)
	@scripts/bench.py --build $(BUILD) $(BENCH)

fuzz: ## run every fuzz target, FUZZ_SECONDS=60 in all for each
	$(packages) fuzz
	@scripts/fuzz.sh $(FUZZ_SECONDS)

sanitize: ## gcc and clang ASan+UBSan and gcc TSan builds, tests at 1/50
	$(packages) sanitize
	@scripts/sanitize.sh

install: ## install under prefix (/usr/local), DESTDIR honoured
	$(packages) build
	$(configure) $(BUILD) -Dprefix=$(prefix) -Dlibdir=$(libdir)
	$(ninja) $(BUILD)
	@meson install -C $(BUILD) --no-rebuild
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

fresh: ## try `make demo` and `make check` in a new minimal Debian 12
	$(packages) fresh
	@scripts/fresh.sh 'make demo' 'make check'

clean: ## remove what was built
	@if [ -f $(BUILD)/build.ninja ]; then ninja -C $(BUILD) -t clean >/dev/null; fi

distclean: ## remove all build folders
	@rm -rf $(BUILD) build-*

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12
