# SPDX-License-Identifier: Apache-2.0
# Each target sets up what it needs first; on a machine that has everything, that does nothing.
preset ?= dev
build := build/$(preset)

toolkit := $(CUDA_HOME)
export CUDA_HOME := $(CURDIR)/build/cuda
export CUDACXX := $(CUDA_HOME)/bin/nvcc
export OPSCOPE_LIBRARY_DIR := $(CURDIR)/$(build)/lib
export PATH := $(CURDIR)/$(build)/bin:$(CURDIR)/.venv/bin:$(PATH)
export PYTHONPATH := $(CURDIR)/profiler/python:$(CURDIR)/kernels/python
# One cache serves every checkout.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)

.PHONY: help setup browser configure build demo test bench format lint wheel clean

help:
	@echo "make demo    custom GELU against the builtin, from the Python call to the DRAM byte"
	@echo "make test    build everything and run every test (preset=gpu: those that need a GPU)"
	@echo "make bench   what the collector, the export and the operators cost"
	@echo "make build   build everything into $(build)      make wheel   a Python wheel into dist"
	@echo "make lint    check format and style              make format  put the format right"
	@echo "make setup   install what is missing             make clean   remove $(build)"

setup:
	@CUDA_HOME=$(toolkit) .ci/setup

# Only tests need a browser, which is a large download.
browser:
	@CUDA_HOME=$(toolkit) .ci/setup --browser

# ninja runs cmake again by itself when a CMakeLists.txt changes; a preset it does not watch. The
# warnings that are left out are those of torch's own package.
configure: setup
	@if [ ! -e $(build)/build.ninja ] || [ CMakePresets.json -nt $(build)/build.ninja ]; then \
	  cmake --preset $(preset) --log-level=ERROR && touch $(build)/build.ninja; fi

build: configure
	@cmake --build --preset $(preset)

demo: configure
	@cmake --build --preset $(preset) --target demo-needs
	@opscope demo -o build/demo --force

test: browser build
	@.ci/test $(preset)

bench: build
	@.ci/bench $(build)

format: setup
	@.ci/lint --fix

lint: configure
	@.ci/lint $(build)

# With this checkout's torch and build tools; preset=ci: warnings are errors.
wheel: setup
	@python -m pip wheel -q --no-build-isolation --no-deps -w dist \
	  -C cmake.define.OPSCOPE_WERROR=$(if $(filter ci,$(preset)),ON,OFF) .

clean:
	@rm -rf $(build)
