#!/bin/sh
# Runs the tests and does all the set-up they need; arguments go to pytest. Without arguments, the tests of exactness
# (marked `both_engines`) run a second time, with the reference engine.
#
# Tests against real vocabularies and the real llama.cpp need `python scripts/reference.py prepare` (it downloads 75 MB
# and compiles for some minutes). Without it they are skipped and say so; with CI=true they fail instead. Every processor
# takes a share of the tests.
set -eu
cd "$(dirname "$0")/.."
. scripts/environment.sh
environment test
if [ $# -gt 0 ]; then
    exec python -m pytest "$@"
fi
python -m pytest -n auto
if [ "$(GGUFBPE_ENGINE= python -c 'from ggufbpe.native import native; print(native is not None)')" = True ]; then
    echo "== the tests of exactness, with the reference engine"
    GGUFBPE_ENGINE=reference python -m pytest -n auto -m both_engines
fi
