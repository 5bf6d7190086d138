# Thin: meson and ninja build, tools/ knows the rest.
#
#   make build      the product, at build/cove
#   make serve      build it and run it in the foreground (STATE=DIR, ARGS="--listen ...")
#   make check      the edit loop, under two minutes: build, layers, unit tests, a smoke of each surface
#   make test       everything; ends with a line `N passed, N failed`
#                   (ONLY=tests/api/30-exec.test.mjs, ONLY=http_parse, ONLY="words of a test's name")
#   make test-heavy tests with Docker, debootstrap, minutes of load; not part of `make test`
#   make bench      measures against bwrap, crun, runc; writes docs/benchmarks.md
#   make fuzz       long fuzzing of every parser (SECONDS_EACH=600)
#   make lint       formatting, layers, and a clang build with warnings as errors
#   make docs       writes the documents that are generated from tables
#   make install    DESTDIR and PREFIX as usual

STATE ?= /var/lib/cove
PREFIX ?= /usr/local
DESTDIR ?=
ARGS ?=
SECONDS_EACH ?= 600

.PHONY: all build serve check test test-heavy bench fuzz lint docs install clean deps deps-test deps-heavy
all: build

deps:
	@tools/install-deps.sh
deps-test:
	@tools/install-deps.sh --test
deps-heavy:
	@tools/install-deps.sh --heavy

build: deps
	@tools/build.sh build

serve: build
	build/cove serve --state $(STATE) $(ARGS)

check: deps-test
	@tools/run-tests.sh checks smoke unit

test: deps-test
	@ONLY="$(ONLY)" tools/run-tests.sh

test-heavy: deps-heavy
	@ONLY="$(ONLY)" tools/run-tests.sh heavy

bench: deps-test build
	@bench/run.sh

fuzz: deps-test
	@tools/fuzz.sh $(SECONDS_EACH)

lint: deps-test
	@tools/lint.sh

docs: build
	@tools/gen-docs.sh

install: build
	install -Dm755 build/cove $(DESTDIR)$(PREFIX)/bin/cove
	install -Dm644 docs/man/cove.1 $(DESTDIR)$(PREFIX)/share/man/man1/cove.1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	build/cove completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/cove
	build/cove completion zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_cove
	build/cove completion fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/cove.fish

clean:
	rm -rf build build-*
