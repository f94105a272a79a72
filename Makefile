# `make demo` and `make test` are all a newcomer needs: each makes .venv and installs into it what it needs.
PYTHON ?= python3
RUN := .venv/bin/python

.PHONY: demo test soak mutants check docs install clean

demo: .venv/.installed  ## a minute of CFR and, on the other core, a minute of PPO, then everybody against everybody
	$(RUN) -m training.cfr --config configs/cfr/demo.toml --out runs/demo-cfr --fresh & cfr=$$!; \
	$(RUN) -m training.ppo --config configs/ppo/smoke.toml --out runs/demo-ppo --fresh && wait $$cfr
	$(RUN) -m evaluation.duplicate cfr:runs/demo-cfr/strategy.npz ppo:runs/demo-ppo/policy.npz rule_based raise_draw call_draw raise call uniform --deals 20000 --seed 2

test: .venv/.installed  ## the whole suite
	$(RUN) -m pytest -n 2 --dist worksteal

soak: .venv/.installed  ## an hour of commands killed at random moments; SOAK="--seconds 60 --only ppo" and the like
	$(RUN) -m tests.soak.kills $(SOAK)

mutants: .venv/.installed  ## 20,000 hand histories, 5,000 files of players and 2,000 results, tampered with; with bounds checks: NUMBA_BOUNDSCHECK=1 make mutants
	MUTANTS=full $(RUN) -m pytest -m mutants -n 2 tests/test_notation.py tests/test_archive.py tests/test_cfr.py tests/test_ppo_files.py tests/test_results.py

check: .venv/.installed  ## everything CI checks besides the tests: style, types, imports, doctests
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	.venv/bin/lint-imports
	$(RUN) -m pytest -q --doctest-modules --doctest-glob='*.md' --ignore=docs/bots archie_env agents training/settings.py evaluation/__init__.py README.md docs

docs: .venv/.installed  ## the documentation as a site, in build/docs
	$(RUN) docs/quote_numbers.py --check
	$(RUN) -m sphinx -q -W --keep-going -E -b html docs build/docs

install: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	test -x $(RUN) || $(PYTHON) -m venv .venv
	$(RUN) -m pip install --quiet --constraint constraints.txt --editable '.[train,docs,dev]'
	touch $@

clean:
	rm -rf .venv runs results dist build
