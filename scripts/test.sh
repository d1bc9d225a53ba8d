#!/bin/sh
# Runs the tests and does all the set-up that they need.
#
#     sh scripts/test.sh                      # the quick ones, in two to five minutes on two processors
#     sh scripts/test.sh --all                # all of them, as CI does
#     sh scripts/test.sh tests/gguf -k utf8   # other arguments are pytest's
#
# The quick ones need no network, no cluster, no browser and no reference: tests marked `slow`, `cluster` (Ray) or
# `browser` (chromium) are left out, and so is what is compared with real vocabularies and the real llama.cpp. Files
# that need packages which the extra `dev` does not have are left out, too, and named at the end. For all of these,
# `python scripts/reference.py prepare` downloads 75 MB and compiles for some minutes; without it they are skipped and say
# so, and with CI=true they fail. `--all` also runs the tests of exactness (marked `both_engines`) a second time, with the
# reference engine. There are two workers more than processors, since tests also wait.
set -eu
cd "$(dirname "$0")/.."
. scripts/environment.sh
case "${1:-}" in
"")
    environment dev
    GGUFBPE_REFERENCE=$PWD/.cache/left-out python -m pytest -q -rfE -n auto --dist worksteal -m "not slow and not cluster and not browser"
    echo "All tests, also the slow ones and those that need pyarrow, Ray, a browser or llama.cpp: sh scripts/test.sh --all"
    ;;
--all)
    environment test
    shift
    python -m pytest -n auto --dist worksteal "$@"
    if [ "$(GGUFBPE_ENGINE= python -c 'from ggufbpe.native import native; print(native is not None)')" = True ]; then
        echo "== the tests of exactness, with the reference engine"
        GGUFBPE_ENGINE=reference python -m pytest -n auto --dist worksteal "$@" -m both_engines
    fi
    ;;
*)
    environment test
    exec python -m pytest "$@"
    ;;
esac
