#!/bin/sh
# Builds ggufbpe/javascript/ggufbpe.wasm, and with `pack` the npm package dist/ggufbpe-VERSION.tgz, which is then installed
# in an empty folder from the file alone, and tried there.
#
#     sh scripts/wasm.sh [pack]
#
# The compiler is Debian's emscripten (apt-get install emscripten), which is installed if it is missing and that is allowed.
set -eu
cd "$(dirname "$0")/.."
package=ggufbpe/javascript

if ! command -v emcmake >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends emscripten >/dev/null
fi
mkdir -p build
emcmake cmake -S . -B build/wasm -DGGUFBPE_WASM=ON -DGGUFBPE_EXTENSION=OFF -DCMAKE_BUILD_TYPE=Release >build/wasm.log
cmake --build build/wasm --parallel "$(nproc)" >>build/wasm.log || { cat build/wasm.log && exit 1; }
cp build/wasm/ggufbpe.wasm "$package/"
echo "$package/ggufbpe.wasm: $(wc -c <"$package/ggufbpe.wasm") bytes, $(gzip -9c "$package/ggufbpe.wasm" | wc -c) with gzip"
[ "${1:-}" = pack ] || exit 0

empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
mkdir -p dist "$empty/package" "$empty/project"
cp "$package"/* LICENSE "$empty/package"
tarball=$PWD/dist/$(npm pack --silent --pack-destination dist "$empty/package")
model=$PWD/ggufbpe/models/gpt2.gguf
cd "$empty/project"
npm install --silent --offline --no-audit --no-fund "$tarball"
cat >try.mjs <<'END'
import { Tokenizer } from "ggufbpe";
const tokenizer = await Tokenizer.fromGGUF(process.argv[2]);
console.log([...tokenizer.encode("Hello world")].join(" "));
END
ids=$(node try.mjs "$model")
if [ "$ids" != "15496 995" ]; then
    echo "wasm.sh: expected '15496 995', found '$ids'" >&2
    exit 1
fi
echo "$tarball: $(wc -c <"$tarball") bytes; installed from it alone, the package gives the ids"
