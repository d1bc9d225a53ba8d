#!/bin/sh
# Runs tests/integrations with the real libraries, in an environment of their own; a missing library is a failure there.
#
#     sh scripts/test_integrations.sh              # the versions that pyproject.toml allows
#     sh scripts/test_integrations.sh --newest     # the newest versions of the adapters' libraries
#     sh scripts/test_integrations.sh -k tiktoken  # other arguments are pytest's
#
# The environment is .cache/integrations-venv, 2.5 GB, of which torch is the largest part. test_llama_cpp.py is skipped
# without llama-cpp-python, which takes minutes to compile; the environment of the other tests has it.
set -eu
cd "$(dirname "$0")/.."
venv=.cache/integrations-venv
libraries="chonkie guidance langchain-text-splitters litellm llama-index-core llguidance lm-format-enforcer mistral-common outlines \
    outlines-core semantic-text-splitter tiktoken transformers xgrammar"
[ -x $venv/bin/python ] || python3 -m venv $venv
$venv/bin/pip install -q "torch==2.13.0"  # a later one may bring several GB of CUDA
$venv/bin/pip install -q -e ".[integrations]" "xgrammar>=0.2,<0.3" "pytest>=8,<10" "hypothesis>=6.100,<7"
if [ "${1:-}" = --newest ]; then
    shift
    # shellcheck disable=SC2086 - a list of words
    $venv/bin/pip install -q --upgrade $libraries
fi
GGUFBPE_INTEGRATIONS=required exec $venv/bin/python -m pytest -q tests/integrations "$@"
