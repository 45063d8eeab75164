# GNU make 3.81 (the one that macOS ships) reads this file; what a target does stands in tools/.

# PYTHON=/path/to/python overrides the search for the newest CPython from 3.11 on.
PYTHON ?=

# EXTRAS="tpu cuda" makes `make test` install more extras of pyproject.toml and run the tests that need them.
EXTRAS ?=

ifeq ($(OS),Windows_NT)
BIN := .venv/Scripts
else
BIN := .venv/bin
endif

# Any Python from 3.8 on can run tools/environment.py, which then looks for the one to use.
ANY_PYTHON = $(shell for python in "$(PYTHON)" python3 python3.14 python3.13 python3.12 python3.11 python; do \
	test -n "$$python" && "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' >/dev/null 2>&1 \
	&& { echo "$$python"; break; }; done)

define environment
@python="$(ANY_PYTHON)"; if test -z "$$python"; then \
	echo 'No Python was found. Install CPython 3.11 or later, or name one: make PYTHON=/path/to/python3 $@' >&2; exit 2; fi; \
	"$$python" tools/environment.py --python "$(PYTHON)" --extras "$(1)"
endef

.PHONY: help demo test test-all lint proto samples screenshots package clean

help:
	@echo 'make demo         open the explorer on a shipped sample; without a display, print its report'
	@echo 'make test         all linters and tests'
	@echo 'make test-all     also the full matrices: mutants, every variant, the TPU compiler'
	@echo 'make lint         the linters alone'
	@echo 'make samples      write samples/*.hlo again, with JAX'
	@echo 'make screenshots  draw the pictures in docs/ again'
	@echo 'make proto        write the *_pb2.py files again from their .proto files'
	@echo 'make package      freeze the program with PyInstaller and try it'
	@echo 'make clean        remove .venv and everything that was built'
	@echo
	@echo 'PYTHON=/path/to/python3 overrides the search for the newest CPython from 3.11 on.'
	@echo 'EXTRAS=tpu lets make test compile a small module with the TPU compiler as well (Linux x86-64; 600 MB).'

demo:
	$(call environment,)
	@$(BIN)/lapstrake demo

test:
	$(call environment,dev exact $(EXTRAS))
	@$(BIN)/python tools/check.py

test-all:
	$(call environment,dev exact tpu)
	@$(BIN)/python tools/check.py --full

lint:
	$(call environment,dev exact)
	@$(BIN)/python tools/check.py --lint

proto:
	$(call environment,)
	@$(BIN)/python tools/proto.py

samples:
	$(call environment,)
	@$(BIN)/python -m samples.generate

screenshots:
	$(call environment,)
	@QT_QPA_PLATFORM=offscreen $(BIN)/python docs/screenshots.py

package:
	$(call environment,package)
	@$(BIN)/python packaging/build.py

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
