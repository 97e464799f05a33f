# Safelight. `make` alone prints the verbs.
#
# Every verb does its own set-up: a fresh Debian 12 machine with a Swift toolchain needs nothing else.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# debug or release: what `build`, `demo` and `run` use.
CONFIGURATION ?= debug
# A folder of photos for `demo`; without one the demo makes a dozen pictures itself.
PHOTOS ?=
# Only tests whose name fits, for `test`, `soak`, `race` and `memory`.
FILTER ?=
LIBRARY ?= .build/library
# Options of `bench`: --only NAME, --pairs N, --quick, --large, --json, --libraries FOLDER.
BENCH ?=

# Where `install` puts the programs, and a root folder before it for packagers.
PREFIX ?= /usr/local
DESTDIR ?=

SWIFT := swift
PROGRAMS := catalog thumbnailer change-broker editor safelight
SOURCES := Package.swift Services Shared Tests
BINARIES := .build/$(CONFIGURATION)
STARTED := $(shell date +%s)
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
ONLY := $(if $(FILTER),--filter '$(FILTER)')
# The test rooms run one after the other: their tests share two cores and the disk, and each has an end in time.
# Passing tests are not listed one by one.
QUIET := grep --line-buffered -vE '^◇|^✔ (Test [^r]|Suite )|^warning: prohibited flag|Test Suite|Executed 0 tests|Planning build|^↳ T'
ROOMS := $(notdir $(wildcard Tests/*Tests))
# The house tests start whole houses and hold them to times: one test after the other.
ALONE := HouseTests

DEBIAN_PACKAGES := libzmq3-dev libmagickwand-dev libgexiv2-dev libsqlite3-dev libheif-dev libraw-dev \
	libjpeg-dev libjxl-dev libssl-dev pkg-config python3 python3-pip libimage-exiftool-perl \
	libvips-tools libjxl-tools imagemagick sqlite3 faketime gcc libc6-dev make
PYZMQ := 27.1.0
PYVIPS := 3.2.0
PYTHON_PACKAGES := .build/python
export PYTHONPATH := $(CURDIR)/$(PYTHON_PACKAGES)

.PHONY: help setup build install uninstall test soak demo bench lint format race memory run docs clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing: Debian packages (apt-get), and pyzmq for the tests into .build/python
	@missing=; for package in $(DEBIAN_PACKAGES); do \
		dpkg-query -W -f='$${Status}' "$$package" 2>/dev/null | grep -q 'ok installed' || missing+=" $$package"; \
	done; \
	if [ -n "$$missing" ]; then \
		echo "setup: installing$$missing"; \
		$(SUDO) apt-get update -qq; \
		DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	fi
	@command -v $(SWIFT) >/dev/null || { \
		echo "setup: there is no Swift toolchain; install Swift 6.2 or newer (https://www.swift.org/install)" >&2; exit 1; }
	@version=$$($(SWIFT) --version 2>&1 | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' | head -1); \
	if [ "$$(printf '%s\n' 6.2 "$$version" | sort -V | head -1)" != 6.2 ]; then \
		echo "setup: Swift $$version is too old; install Swift 6.2 or newer" >&2; exit 1; \
	fi
	@if [ ! -d $(PYTHON_PACKAGES)/pyzmq-$(PYZMQ).dist-info ]; then \
		echo "setup: installing pyzmq $(PYZMQ) into $(PYTHON_PACKAGES)"; \
		rm -rf $(PYTHON_PACKAGES); \
		python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
			--target $(PYTHON_PACKAGES) pyzmq==$(PYZMQ); \
	fi

build: setup ## Build the services and the command line (CONFIGURATION=release for the fast ones)
	@for program in $(PROGRAMS); do $(SWIFT) build -c $(CONFIGURATION) --product $$program; done

install: ## Install release binaries, man pages, completions and systemd units (PREFIX=/usr/local, DESTDIR=)
	@[ -n "$(PREFIX)" ] || { echo "install: PREFIX is empty; name a folder, for example /usr/local" >&2; exit 1; }
	@$(MAKE) build CONFIGURATION=release
	@# The argument parser's plugin would build every program of the package: its tool alone is enough.
	@$(SWIFT) package generate-manual --help >/dev/null && rm -rf .build/man && mkdir -p .build/man
	@for program in $(PROGRAMS); do \
		.build/debug/generate-manual-tool .build/release/$$program --output-directory .build/man; \
	done
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/share/man/man1' \
		'$(DESTDIR)$(PREFIX)/share/bash-completion/completions' '$(DESTDIR)$(PREFIX)/share/zsh/site-functions' \
		'$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d' \
		'$(DESTDIR)$(PREFIX)/lib/systemd/system' '$(DESTDIR)$(PREFIX)/lib/systemd/user'
	install $(addprefix .build/release/,$(PROGRAMS)) '$(DESTDIR)$(PREFIX)/bin'
	install -m 644 .build/man/*.1 '$(DESTDIR)$(PREFIX)/share/man/man1'
	@completions() { .build/release/safelight --generate-completion-script $$1; }; \
	completions bash >'$(DESTDIR)$(PREFIX)/share/bash-completion/completions/safelight'; \
	completions zsh >'$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_safelight'; \
	completions fish >'$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/safelight.fish'
	@for kind in system user; do \
		unit=compose/systemd/safelight.service; [ $$kind = system ] || unit=compose/systemd/safelight-user.service; \
		sed 's|@PREFIX@|$(PREFIX)|' $$unit >'$(DESTDIR)$(PREFIX)'/lib/systemd/$$kind/safelight.service; \
	done
	@echo "installed into $(DESTDIR)$(PREFIX): safelight up starts the services, systemctl --user enable --now safelight at login"

uninstall: ## Remove what `install` put into PREFIX
	cd '$(DESTDIR)$(PREFIX)' && rm -f $(addprefix bin/,$(PROGRAMS)) $(PROGRAMS:%=share/man/man1/%.1) \
		share/bash-completion/completions/safelight share/zsh/site-functions/_safelight \
		share/fish/vendor_completions.d/safelight.fish lib/systemd/system/safelight.service \
		lib/systemd/user/safelight.service

test: setup lint ## Everything that must pass: lint, build without warnings, all tests; prints its time
	$(SWIFT) build --build-tests
	@started=$$(date +%s); \
	if [ -n "$(FILTER)" ]; then $(SWIFT) test --skip-build $(ONLY); else \
		for room in $(ROOMS); do \
			echo "== $$room"; \
			$(SWIFT) test --skip-build $$([ $$room != $(ALONE) ] || echo --no-parallel) \
				--filter "^$$room\." 2>&1 | tee .build/tests.log | $(QUIET) || { \
				echo "== what failed in $$room:"; grep -A 2 '^✘' .build/tests.log | $(QUIET); exit 1; }; \
		done; \
	fi; \
	done=$$(date +%s); \
	echo "make test: passed in $$((done - $(STARTED))) s, of which $$((done - started)) s in the tests"

soak: setup ## The long forms of the tests: kill storms, two minutes of fuzzing, hostile beside honest clients
	$(SWIFT) build --build-tests
	SAFELIGHT_SOAK=10 $(SWIFT) test --skip-build --filter '^(PhotoModel|JSONValue|ChangeBroker|Catalog)Tests\.'
	SAFELIGHT_SOAK=50 SAFELIGHT_FUZZ_SECONDS=120 $(SWIFT) test --skip-build --no-parallel --filter '^HouseTests\.'
	$(SWIFT) build -c release
	SAFELIGHT_EXECUTABLES=.build/release SAFELIGHT_FUZZ_SECONDS=120 $(SWIFT) test --skip-build --no-parallel \
		--filter '^HouseTests\.(HostileMixTests|FairShareTests)'
	@echo "make soak: passed in $$(($$(date +%s) - $(STARTED))) s"

demo: build ## Start the house, import photos, edit one, watch the change arrive (PHOTOS=folder for your own)
	@compose/demo.sh '$(BINARIES)' '$(PHOTOS)'

bench: setup ## Measure against named peers and limits, in one table
	@[ -d $(PYTHON_PACKAGES)/pyvips-$(PYVIPS).dist-info ] || { \
		echo "bench: installing pyvips $(PYVIPS) into $(PYTHON_PACKAGES)"; \
		python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
			--target $(PYTHON_PACKAGES) pyvips==$(PYVIPS); \
	}
	$(SWIFT) build -c release
	@.build/release/Benchmarks --output .build/bench.md $(BENCH)
	@echo "make bench: the table is in .build/bench.md"

lint: ## Check the format of every Swift file
	$(SWIFT) format lint --strict -r -p $(SOURCES)

format: ## Bring every Swift file into the format
	$(SWIFT) format -i -r -p $(SOURCES)

race: setup ## All tests under the thread sanitizer
	$(SWIFT) test --sanitize=thread --scratch-path .build/race $(ONLY)

memory: setup ## All tests under the address and leak sanitizers
	@mkdir -p .build && echo 'leak:XCTest' >.build/leaks
	LSAN_OPTIONS=suppressions=$(CURDIR)/.build/leaks \
		$(SWIFT) test --sanitize=address --scratch-path .build/memory $(ONLY)

run: build ## Run the four services on a library in .build/library until Ctrl-C (LIBRARY=folder for another)
	@mkdir -p '$(LIBRARY)' && exec $(BINARIES)/safelight up --library '$(LIBRARY)'

docs: build ## Write Shared/docs/protocol.md from running services; OpenRPC and the help of all commands into .build/docs
	@mkdir -p .build/docs; \
	for service in catalog thumbnailer editor change-broker; do \
		$(BINARIES)/safelight describe $$service >.build/docs/$$service.openrpc.json; \
	done; \
	$(BINARIES)/safelight --experimental-dump-help >.build/docs/safelight.json; \
	ls .build/docs/*
	$(SWIFT) build --build-tests
	SAFELIGHT_RECORD_EXAMPLES=1 $(SWIFT) test --skip-build --filter '^HouseTests\.ProtocolExampleTests'
	$(BINARIES)/safelight describe protocol --examples Shared/docs/protocol-examples.json >.build/docs/protocol.md
	cp .build/docs/protocol.md Shared/docs/protocol.md

clean: ## Remove everything that was built
	rm -rf .build demo
