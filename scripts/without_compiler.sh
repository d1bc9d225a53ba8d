#!/bin/sh
# Installs the package where no C++ compiler works, and holds it to the ids and to what it says of its engine.
set -eu
cd "$(dirname "$0")/.."
. scripts/environment.sh
environment
root=$PWD
folder=$root/.cache/without-compiler
rm -rf "$folder"
CC=/bin/false CXX=/bin/false python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
    --config-settings=build-dir="$folder/build" --target "$folder/site" .
# -S, for .venv has this checkout installed; and not from here, where Python would find it, too
cd "$folder/site"
PYTHONPATH=$folder/site sh "$root/scripts/check_install.sh" reference python -S
