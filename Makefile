# Safelight. `make` without arguments lists the targets.
#
# Every target installs what it needs: a fresh Debian 12 machine needs only a Swift toolchain.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The build configuration of `build`, `demo` and `run`: debug or release.
CONFIGURATION ?= debug
# The folder of photos for `demo`. Default: a dozen generated photos.
PHOTOS ?=
# Runs only the tests whose names match, for `test` and the sanitizers.
FILTER ?=
LIBRARY ?= .build/library
# Options of `bench`: --only NAME, --pairs N, --quick, --large, --json, --libraries FOLDER.
BENCH ?=

# The folder that `install` installs into, and a staging folder to prepend for packages.
PREFIX ?= /usr/local
DESTDIR ?=
INSTALLED = $(DESTDIR)$(PREFIX)

SWIFT := swift
PROGRAMS := catalog thumbnailer change-broker editor safelight
SOURCES := Package.swift Services Shared Tests
BINARIES := .build/$(CONFIGURATION)
STARTED := $(shell date +%s)
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
# `install` copies as root if it must, and builds as the user: sudo does not search the folders of toolchains.
COPY = $(if $(shell mkdir -p '$(INSTALLED)/bin' 2>/dev/null && [ -w '$(INSTALLED)/bin' ] && echo yes),,$(SUDO))
ONLY := $(if $(FILTER),--filter '$(FILTER)')
# What the build needs, as in compose/Dockerfile; what the programs need besides; what the demo and the tests need.
BUILD_PACKAGES := libzmq3-dev libmagickwand-dev libexiv2-dev libsqlite3-dev libheif-dev libavif-dev libraw-dev libjpeg-dev \
	libjxl-dev libraqm-dev libsixel-dev zlib1g-dev libssl-dev libcurl4-openssl-dev libpq-dev \
	libavformat-dev libavcodec-dev libavfilter-dev libavutil-dev libswscale-dev pkg-config libstdc++-12-dev git
FONT_PACKAGES := fonts-dejavu-core fonts-droid-fallback
DEMO_PACKAGES := ffmpeg
CLUSTER_PACKAGES := etcd-server etcd-client patroni python3-etcd python3-psycopg2 iproute2 procps
FAILOVER_PACKAGES := nftables
TEST_PACKAGES := python3 python3-pip libimage-exiftool-perl libvips-tools libjxl-tools imagemagick ffmpeg sqlite3 \
	faketime gcc libc6-dev make postgresql
PYTHON_REQUIREMENTS := pyzmq==27.1.0 pillow==11.3.0 jsonschema==4.26.0 mypy==1.19.1 setuptools==80.9.0 pyyaml==6.0.3 \
	moto[s3]==5.2.5 flask==3.1.3 flask-cors==6.0.5
# What the long tests need besides: the servers of an object store, OpenStack Swift.
SOAK_PACKAGES := python3-swift
PYVIPS := 3.2.0
AWSCLI := 1.45.11
PYTHON_PACKAGES := .build/python
export PYTHONPATH := $(CURDIR)/$(PYTHON_PACKAGES)

.PHONY: help setup tools build install uninstall test soak earlier demo cluster-demo failover bench lint format test-tsan test-asan run docs image wheel clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# $(call install-packages,<packages>): installs the missing ones.
define install-packages
	@missing=; for package in $(1); do \
		dpkg-query -W -f='$${Status}' "$$package" 2>/dev/null | grep -q 'ok installed' || missing+=" $$package"; \
	done; \
	if [ -n "$$missing" ]; then \
		echo "setup: installing$$missing"; \
		$(SUDO) apt-get update -qq; \
		DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	fi
endef

tools: ## Install what a build needs, and nothing else
	$(call install-packages,$(BUILD_PACKAGES) $(FONT_PACKAGES))
	@command -v $(SWIFT) >/dev/null || { \
		echo "setup: there is no Swift in PATH; install Swift 6.2 or newer (https://www.swift.org/install)," \
			"and call make without sudo, which it uses itself" >&2; exit 1; }
	@version=$$($(SWIFT) --version 2>&1 | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' | head -1); \
	if [ "$$(printf '%s\n' 6.2 "$$version" | sort -V | head -1)" != 6.2 ]; then \
		echo "setup: Swift $$version is too old; install Swift 6.2 or newer" >&2; exit 1; \
	fi

setup: tools ## Install what the tests need besides: Debian packages, and Python packages into .build/python
	$(call install-packages,$(TEST_PACKAGES))
	@if [ "$$(cat $(PYTHON_PACKAGES)/requirements.txt 2>/dev/null)" != '$(PYTHON_REQUIREMENTS)' ]; then \
		echo 'setup: installing $(PYTHON_REQUIREMENTS) into $(PYTHON_PACKAGES)'; \
		rm -rf $(PYTHON_PACKAGES); \
		python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
			--target $(PYTHON_PACKAGES) $(PYTHON_REQUIREMENTS); \
		echo '$(PYTHON_REQUIREMENTS)' >$(PYTHON_PACKAGES)/requirements.txt; \
	fi

build: tools ## Build the services and the command line (CONFIGURATION=release for optimized programs)
	@for program in $(PROGRAMS); do $(SWIFT) build -c $(CONFIGURATION) --product $$program; done

install: ## Install release binaries, man pages, completions and systemd units (PREFIX=/usr/local, DESTDIR=)
	@[ -n "$(PREFIX)" ] || { echo "install: PREFIX is empty; name a folder, for example /usr/local" >&2; exit 1; }
	@$(MAKE) build CONFIGURATION=release
	@# The manual plugin would build every product of the package; only its tool is needed.
	@$(SWIFT) package generate-manual --help >/dev/null && rm -rf .build/man && mkdir -p .build/man
	@for program in $(PROGRAMS); do \
		.build/debug/generate-manual-tool .build/release/$$program --output-directory .build/man; \
	done
	@rm -rf .build/install && mkdir -p .build/install
	@for shell in bash zsh fish; do \
		.build/release/safelight --generate-completion-script $$shell >.build/install/$$shell; \
	done
	@for unit in safelight safelight-user; do \
		sed 's|@PREFIX@|$(PREFIX)|' compose/systemd/$$unit.service >.build/install/$$unit.service; \
	done
	$(COPY) install -d '$(INSTALLED)/bin' '$(INSTALLED)/share/man/man1' '$(INSTALLED)/lib/safelight' \
		'$(INSTALLED)/share/bash-completion/completions' '$(INSTALLED)/share/zsh/site-functions' \
		'$(INSTALLED)/share/fish/vendor_completions.d' '$(INSTALLED)/lib/systemd/system' '$(INSTALLED)/share/systemd/user'
	$(COPY) install $(addprefix .build/release/,$(PROGRAMS)) '$(INSTALLED)/bin'
	@# The libraries of Swift, because other users may not be able to read the toolchain, which may also be removed.
	ldd $(addprefix .build/release/,$(PROGRAMS)) | awk '$$3 ~ /\/swift\// { print $$3 }' | sort -u \
		| xargs $(COPY) install -m 644 -t '$(INSTALLED)/lib/safelight'
	$(COPY) install -m 644 .build/man/*.1 '$(INSTALLED)/share/man/man1'
	@$(COPY) install -m 644 .build/install/bash '$(INSTALLED)/share/bash-completion/completions/safelight'
	@$(COPY) install -m 644 .build/install/zsh '$(INSTALLED)/share/zsh/site-functions/_safelight'
	@$(COPY) install -m 644 .build/install/fish '$(INSTALLED)/share/fish/vendor_completions.d/safelight.fish'
	@$(COPY) install -m 644 .build/install/safelight.service '$(INSTALLED)/lib/systemd/system/safelight.service'
	@$(COPY) install -m 644 .build/install/safelight-user.service '$(INSTALLED)/share/systemd/user/safelight.service'
	@echo "installed into $(INSTALLED): safelight up starts the services, systemctl --user enable --now safelight at login"

uninstall: ## Remove the installed files from PREFIX
	cd '$(INSTALLED)' && $(COPY) rm -rf $(addprefix bin/,$(PROGRAMS)) $(PROGRAMS:%=share/man/man1/%.1) lib/safelight \
		share/bash-completion/completions/safelight share/zsh/site-functions/_safelight \
		share/fish/vendor_completions.d/safelight.fish lib/systemd/system/safelight.service \
		share/systemd/user/safelight.service

image: ## Build the container images and save them as .build/safelight-images.tar.gz, for docker load
	@mkdir -p .build
	docker compose -f compose/compose.yaml --profile tools build
	docker save safelight safelight-tools | gzip -1 >.build/safelight-images.tar.gz.new
	@mv .build/safelight-images.tar.gz.new .build/safelight-images.tar.gz
	@echo "make image: docker load -i .build/safelight-images.tar.gz, then docker compose up -d --no-build"

wheel: ## Build the Python package as a wheel, into .build/wheel
	$(call install-packages,python3 python3-pip)
	@# A copy, because setuptools writes beside the sources.
	@rm -rf .build/wheel && mkdir -p .build/wheel/source
	@cp -R Shared/python/pyproject.toml Shared/python/safelight .build/wheel/source
	@python3 -m pip wheel --quiet --disable-pip-version-check --no-deps \
		--wheel-dir .build/wheel .build/wheel/source
	@rm -rf .build/wheel/source && echo "make wheel: in a virtual environment, pip install $$(ls .build/wheel/*.whl)"

# A build from nothing needs a quarter less time without debug information, which only a debugger reads, and with each
# module compiled as a whole, which makes small changes slower to build.
TEST_FLAGS := $(if $(CI),-Xswiftc -gnone -Xcc -g0 -Xswiftc -wmo -Xswiftc -num-threads -Xswiftc 2)

test: setup lint ## Check the format, build without warnings and run all tests (FILTER=name for some)
	$(SWIFT) build --build-tests $(TEST_FLAGS)
	@started=$$(date +%s); \
	if [ -n "$(FILTER)" ]; then $(SWIFT) test --skip-build $(ONLY); else .ci/run-tests; fi; \
	done=$$(date +%s); \
	echo "make test: passed in $$((done - $(STARTED))) s, of which $$((done - started)) s in the tests"

# The system tests that `soak` runs with the library in PostgreSQL too.
POSTGRESQL_SUITES := (MetadataPath|ImagePath|Supervisor|ReadYourWrites|Fault|Kill|Editing|Publishing|ObservedFetch)

soak: setup ## Run the long tests: repeated kills, two minutes of fuzzing, hostile clients, an hour of mixed load
	$(call install-packages,$(SOAK_PACKAGES) $(CLUSTER_PACKAGES))
	$(SWIFT) build --build-tests
	SAFELIGHT_SOAK=10 $(SWIFT) test --skip-build --filter '^(PhotoModel|JSONValue|ChangeBroker|Catalog)Tests\.'
	SAFELIGHT_STORE=postgresql $(SWIFT) test --skip-build --filter '^CatalogTests\.'
	SAFELIGHT_SOAK=3 SAFELIGHT_STORE=postgresql $(SWIFT) test --skip-build --filter '^CatalogTests\.FetchDifferentialTests'
	SAFELIGHT_STORE=postgresql $(SWIFT) test --skip-build --no-parallel --filter '^SystemTests\.$(POSTGRESQL_SUITES)Tests'
	SAFELIGHT_SOAK=10 $(SWIFT) test --skip-build --no-parallel \
		--filter '^(Metadata|Messaging|Contracts|Editor|Thumbnailer|Imaging)Tests\.'
	SAFELIGHT_SOAK=2 $(SWIFT) test --skip-build --no-parallel --filter '^PhotoKitTests\.'
	SAFELIGHT_SOAK=50 SAFELIGHT_FUZZ_SECONDS=120 $(SWIFT) test --skip-build --no-parallel --filter '^SystemTests\.'
	$(SWIFT) build -c release
	SAFELIGHT_EXECUTABLES=.build/release SAFELIGHT_FUZZ_SECONDS=120 $(SWIFT) test --skip-build --no-parallel \
		--filter '^SystemTests\.(HostileMixTests|FairShareTests|RowsByScriptTests)'
	@if [ -n "$(EARLIER)" ]; then \
		$(MAKE) earlier EARLIER='$(EARLIER)'; \
		SAFELIGHT_EARLIER_EXECUTABLES='$(CURDIR)/.build/earlier/build/debug' $(SWIFT) test --skip-build --no-parallel \
			--filter '^SystemTests\.ReleaseSkewTests'; \
	else echo 'soak: there is no history of git, so no earlier programs were tested'; fi
	@if [ "$$(id -u)" -eq 0 ]; then $(MAKE) failover CONFIGURATION=release; \
	else echo 'soak: network namespaces need root, so make failover did not run'; fi
	@$(MAKE) test-tsan
	@echo "make soak: passed in $$(($$(date +%s) - $(STARTED))) s"

# The commit whose programs `soak` runs together with these; empty without a history of git.
EARLIER ?= $(shell git rev-list --first-parent --max-count=1 --skip=50 HEAD 2>/dev/null)

earlier: tools ## Build the programs of an earlier commit, EARLIER=commit, into .build/earlier for the tests of version skew
	@[ -n "$(EARLIER)" ] || { echo "earlier: there is no history; name a commit with EARLIER=" >&2; exit 1; }
	@rm -rf .build/earlier/source && mkdir -p .build/earlier/source
	git archive '$(EARLIER)' | tar -x -C .build/earlier/source
	@for program in $(PROGRAMS); do \
		$(SWIFT) build --package-path .build/earlier/source --scratch-path .build/earlier/build --product $$program; \
	done

demo: build ## Start the services, import photos, edit one and watch the change arrive (PHOTOS=folder for your own)
	$(call install-packages,$(DEMO_PACKAGES))
	@compose/demo.sh '$(BINARIES)' '$(PHOTOS)'

# CLUSTER_DEMO=--short for fewer changes, --keep to keep the logs.
CLUSTER_DEMO ?=

cluster-demo: setup build ## Run a library on fourteen hosts, which are network namespaces; kill the catalog and PostgreSQL
	$(call install-packages,$(CLUSTER_PACKAGES))
	@$(SUDO) compose/cluster-demo.sh $(CLUSTER_DEMO) '$(BINARIES)' '$(PYTHON_PACKAGES)'

# FAILOVER="--rounds N --seed N" for another number of rounds, and for their order; --keep to keep the logs.
FAILOVER ?=

failover: setup build ## Kill and cut off each part of a cluster in 50 rounds of changes, and check that nothing is lost
	$(call install-packages,$(CLUSTER_PACKAGES) $(FAILOVER_PACKAGES))
	@$(SUDO) compose/failover.sh $(FAILOVER) '$(BINARIES)' '$(PYTHON_PACKAGES)'

bench: setup ## Run the benchmarks and compare them with other software (BENCH='--only NAME' for one)
	@[ -d $(PYTHON_PACKAGES)/pyvips-$(PYVIPS).dist-info ] || { \
		echo "bench: installing pyvips $(PYVIPS) into $(PYTHON_PACKAGES)"; \
		python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
			--target $(PYTHON_PACKAGES) pyvips==$(PYVIPS); \
	}
	@# In a folder of its own, because it needs another version of botocore than moto.
	@[ -d .build/awscli/awscli-$(AWSCLI).dist-info ] || { \
		echo "bench: installing awscli $(AWSCLI) into .build/awscli"; \
		rm -rf .build/awscli; \
		python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
			--target .build/awscli awscli==$(AWSCLI); \
	}
	$(SWIFT) build -c release
	@.build/release/Benchmarks --output .build/bench.md $(BENCH)
	@echo "make bench: the table is in .build/bench.md"

lint: ## Check the format of all Swift files
	$(SWIFT) format lint --strict -r -p $(SOURCES)

format: ## Format all Swift files
	$(SWIFT) format -i -r -p $(SOURCES)

# Without the modules whose tests need worker processes: a worker's limit of address space is far below what the
# sanitizer reserves. A report ends the tests with status 66.
TSAN_MODULES := Basics|JSONValue|Contracts|PhotoModel|Messaging|Hosting|Storage|ObjectStorage|PhotoClient|ChangeBroker

test-tsan: setup ## Run the tests of threads and of the protocol with the thread sanitizer (FILTER=name for others)
	$(SWIFT) build --build-tests --sanitize=thread --scratch-path .build/tsan
	TSAN_OPTIONS='suppressions=$(CURDIR)/.ci/thread-sanitizer.supp exitcode=66' \
		$(SWIFT) test --skip-build --sanitize=thread --scratch-path .build/tsan \
		$(if $(FILTER),$(ONLY),--filter '^($(TSAN_MODULES))Tests\.')
	$(SWIFT) build --build-tests
	.ci/test-sanitized-services

test-asan: setup ## Run all tests with the address and leak sanitizers
	@mkdir -p .build && echo 'leak:XCTest' >.build/leaks
	LSAN_OPTIONS=suppressions=$(CURDIR)/.build/leaks \
		$(SWIFT) test --sanitize=address --scratch-path .build/asan $(ONLY)

run: build ## Run the four services until Ctrl-C, with a library in .build/library (LIBRARY=folder for another)
	@mkdir -p '$(LIBRARY)' && exec $(BINARIES)/safelight up --library '$(LIBRARY)' --state .build/state

docs: build ## Write Shared/docs/protocol.md from running services; OpenRPC and the help of all commands into .build/docs
	@mkdir -p .build/docs; \
	for service in catalog thumbnailer editor change-broker; do \
		$(BINARIES)/safelight describe $$service >.build/docs/$$service.openrpc.json; \
	done; \
	$(BINARIES)/safelight --experimental-dump-help >.build/docs/safelight.json; \
	ls .build/docs/*
	$(SWIFT) build --build-tests
	SAFELIGHT_RECORD_EXAMPLES=1 $(SWIFT) test --skip-build --filter '^SystemTests\.ProtocolExampleTests'
	$(BINARIES)/safelight describe protocol --examples Shared/docs/protocol-examples.json >.build/docs/protocol.md
	cp .build/docs/protocol.md Shared/docs/protocol.md

clean: ## Remove all build products and the demo, but not the library of `make run`
	rm -rf demo
	[ ! -d .build ] || find .build/ -mindepth 1 -maxdepth 1 ! -name library ! -name state -exec rm -rf {} +
