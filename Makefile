# make lab    set up, and open JupyterLab        make test   set up, and run the tests (or those in TESTS)
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: lab test lint notebooks pictures bench clean

lab: $(VENV)/lab.done
	$(BIN)/jupyter lab notebooks/00_start_here.ipynb

test: $(VENV)/test.done
	$(BIN)/python -m pytest $(TESTS)

lint: $(VENV)/test.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Run every notebook from top to bottom and store its outputs, but no widget state.
notebooks: $(VENV)/test.done
	$(BIN)/python notebooks/rebuild.py

# The README's pictures: the explorer in a browser, the recorded ladder, and the precisions beside cuBLAS.
pictures: $(VENV)/test.done
	$(BIN)/python tests/screenshot.py --readme notebooks/pictures/explorer.png
	$(BIN)/python -c "from gemmlab import plot, record; open('notebooks/pictures/ladder.png', 'wb').write(plot.ladder(record.ladders(), record.yardsticks('H200')).png())"
	$(BIN)/python -c "from gemmlab import record, tensors; f = next(f for f in record.recorded() if 'errors' in f); open('notebooks/pictures/precisions.png', 'wb').write(tensors.rates(f['side_by_side'], f['errors'], f['title']).png())"

bench: $(VENV)/lab.done
	$(BIN)/python -m gemmlab bench

# PoCL from PyPI computes on the processor. If it cannot, because the processor is newer, and no other device works
# either, Intel's CPU runtime is added, which is proprietary and takes about 260 MB.
$(VENV)/%.done: pyproject.toml
	$(PYTHON) -c "import sys; assert sys.version_info >= (3, 10), 'gemmlab needs Python 3.10 or later'"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[$(if $(filter test,$*),lab$(comma)pocl$(comma)test,lab$(comma)pocl)]'
	$(BIN)/python -m gemmlab doctor || { echo "Adding Intel's CPU runtime."; \
	  $(BIN)/python -m pip install --quiet -e '.[intel]' && $(BIN)/python -m gemmlab doctor; }
	touch $@

clean:
	rm -rf $(VENV)

comma := ,
