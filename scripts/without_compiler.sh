#!/bin/sh
# Installs the package where no C++ compiler works, and holds it to the ids and to what it says of its engine.
set -eu
cd "$(dirname "$0")/.."
. scripts/environment.sh
environment
folder=$PWD/.cache/without-compiler
rm -rf "$folder"
CC=/bin/false CXX=/bin/false python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
    --config-settings=build-dir="$folder/build" --target "$folder/site" .
# -S, for .venv has this checkout installed; and not from here, where Python would find it, too
cd "$folder/site"
export PYTHONPATH="$folder/site"
ggufbpe() {
    "$python" -S -m ggufbpe "$@"
}
python=$(command -v python)
expect() {
    if [ "$1" != "$2" ]; then
        echo "without a compiler: expected '$1', found '$2'" >&2
        exit 1
    fi
}
expect "(engine: reference)" "$(ggufbpe --version | cut -d' ' -f3-)"
expect 1 "$(ggufbpe info --json 2>/dev/null | grep -c '"engine": "reference"')"
expect "[15496, 995]" "$(ggufbpe tokenize -p 'Hello world' --ids 2>/dev/null)"
expect "Hello world" "$(ggufbpe detokenize 15496 995 2>/dev/null)"
expect 2 "$(ggufbpe count -p 'Hello world' 2>/dev/null | awk 'NR == 2 { print $1 }')"
echo "the reference engine gives the ids"
