#!/bin/sh
# Runs the tests and does all the set-up they need; arguments go to pytest.
#
# Tests against real vocabularies and the real llama.cpp need `python scripts/reference.py prepare` (it downloads 75 MB
# and compiles for some minutes). Without it they are skipped and say so; with CI=true they fail instead.
set -eu
cd "$(dirname "$0")/.."
. scripts/environment.sh
environment test
exec python -m pytest "$@"
