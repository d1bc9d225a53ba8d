#!/bin/sh
# Runs tests/integrations with the real libraries, in an environment of their own; a missing library is a failure there.
#
#     sh scripts/test_integrations.sh              # the versions of scripts/integrations.txt, as CI does
#     sh scripts/test_integrations.sh --newest     # the newest versions, for a weekly run
#     sh scripts/test_integrations.sh -k tiktoken  # other arguments are pytest's
#
# The newest versions are those of the packages that the extra `integrations` of pyproject.toml names, whatever limits it
# has. They are written to .cache/integrations-newest.txt, which can take the place of scripts/integrations.txt.
#
# ggufbpe, its compiled engine and pytest come from .venv, behind the libraries' own dependencies. The environment is
# .cache/integrations-venv (or -newest-venv), 2 GB. llama-cpp-python takes minutes to compile: with the pinned versions
# test_llama_cpp.py is left to the other tests, whose environment has it; with the newest ones it is compiled here.
set -eu
cd "$(dirname "$0")/.."
. scripts/environment.sh
environment test

site_packages() {
    "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
}

newest=
if [ "${1:-}" = --newest ]; then
    shift
    newest=-newest
fi
venv=.cache/integrations$newest-venv
$venv/bin/python -m pip --version >/dev/null 2>&1 || PYTHON=python make_venv $venv
link=$(site_packages $venv/bin/python)/ggufbpe.pth
if [ "$newest" ]; then
    rm -f "$link" # pip would take the packages of .venv for its own
    libraries=$(python -c '
import re
from importlib.metadata import requires
names = (re.match(r"[\w.-]+", each)[0] for each in requires("ggufbpe") if re.search("extra == .integrations", each))
print(*(name for name in names if name != "ggufbpe"))')
    # shellcheck disable=SC2086 - a list of words
    $venv/bin/python -m pip install -q --upgrade $libraries xgrammar "torch==2.13.0" # a later one may bring CUDA
    CMAKE_ARGS="-DLLAVA_BUILD=OFF -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF" \
        $venv/bin/python -m pip install -q --upgrade llama-cpp-python
    $venv/bin/python -m pip freeze | sed '/^triton==/d; s/+cpu$//' >.cache/integrations-newest.txt
elif ! cmp -s scripts/integrations.txt $venv/installed.txt; then
    rm -f "$link"
    $venv/bin/python -m pip install -q --no-deps --no-compile -r scripts/integrations.txt
    cp scripts/integrations.txt $venv/installed.txt
fi
echo "import site; site.addsitedir('$(site_packages python)')" >"$link"
GGUFBPE_INTEGRATIONS=required exec $venv/bin/python -m pytest -q tests/integrations "$@"
