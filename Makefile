# make lab        set up, and open JupyterLab on a copy of the notebooks in WORK, which updates never overwrite
#                 (OPTIONS: those of Jupyter)
# make test       set up, and run the tests that need nothing but Python's packages (or those in TESTS)
# make test-all   run everything that CI runs: all runtimes, Oclgrind, the browser, the notebooks and their solutions
# make lint       ruff, mypy, the order of the subpackages (import-linter), and workflows (zizmor)
# make notebooks  build the notebooks from their texts, with outputs     make tables   the README's tables
# make site       the web site, in site/dist: kernels on the browser's GPU, the documentation, the chapters
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# One more than there are cores, because many tests wait for a child process, a page or a time limit.
JOBS ?= $(shell $(BIN)/python -c "import os; print(min(8, os.cpu_count() + 1))")
# For test-all two more: pages wait more than they compute. A process takes up to 3 GB of memory when it tests pages.
JOBS_ALL ?= $(shell $(BIN)/python -c "import os; \
  gb = os.sysconf('SC_PAGE_SIZE')*os.sysconf('SC_PHYS_PAGES')//10**9; print(max(1, min(8, os.cpu_count() + 2, gb//3)))")
# Tests start hundreds of processes, which would compile the package each: have Python keep what it has compiled.
export PYTHONDONTWRITEBYTECODE :=
# The reader's copy: in the clone, or where that cannot be written in the home.
ifndef WORK
WORK := $(if $(shell test -w . && echo writable),work,$(HOME)/gemmlab-work)
endif
# Jupyter writes into the home, wherever that can be written.
ifneq ($(shell test -w "$$HOME" && echo writable),writable)
export HOME := $(if $(filter /%,$(VENV)),$(VENV),$(CURDIR)/$(VENV))/home
endif
OVERRIDES := $(VENV)/share/jupyter/lab/settings/overrides.json

.PHONY: lab test test-all lint notebooks pictures tables bench site clean

lab: $(VENV)/lab.done $(OVERRIDES)
	@$(BIN)/python -m gemmlab notebooks "$(WORK)" >/dev/null || { echo "Put the notebooks elsewhere: make lab WORK=DIR"; exit 1; }
	@echo "Starting JupyterLab on the notebooks in $(WORK); Ctrl-C ends it."
	@$(BIN)/python -m jupyterlab $(if $(filter 0,$(shell id -u)),--allow-root) --ServerApp.root_dir="$$(cd "$(WORK)" && pwd)" \
	  $(OPTIONS) --LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb --LabApp.expose_app_in_browser=True

# JupyterLab asks new users whether they want news, in a box that would cover the first panel.
$(OVERRIDES): | $(VENV)/lab.done
	@mkdir -p "$(@D)"
	@echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}' > "$@"

# Several processes test at the same time, so NumPy gets one thread in each: its threads would wait busily.
test: $(VENV)/test.done
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --durations 15 -m "not system" $(TESTS)

test-all: $(VENV)/test.done
	$(BIN)/python -m pip install --quiet -e '.[intel]'
	GEMMLAB_NO_SKIP=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS_ALL) --durations 40 $(TESTS)

lint: $(VENV)/test.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/zizmor --offline --quiet .github

notebooks: $(VENV)/test.done
	$(BIN)/python notebooks/rebuild.py

tables: $(VENV)/test.done
	$(BIN)/python tools/tables.py

# The README's pictures: the explorer as a browser shows it, and the recorded ladder.
pictures: $(VENV)/test.done
	$(BIN)/python tests/browser/screenshot.py --readme notebooks/pictures/explorer.webp
	$(BIN)/python tools/tables.py --pictures notebooks/pictures

# A static site in site/dist. PYODIDE=folder of npm's package pyodide: the first page loads it from its own host.
site: $(VENV)/site.done
	$(BIN)/python site/build.py $(if $(PYODIDE),--pyodide $(PYODIDE))

bench: $(VENV)/lab.done
	$(BIN)/python -m gemmlab bench

# When no device works, the environment is complete, but the file is not written: the next call looks again.
$(VENV)/%.done: pyproject.toml tools/set_up.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" sh tools/set_up.sh $*

clean:
	rm -rf $(VENV)
