#!/bin/sh
# Installs the package where no C++ compiler works, and holds it to the ids and to what it says of its engine: once with a
# compiler that does nothing but fail, once with one whose error is in a source of the engine.
set -eu
cd "$(dirname "$0")/.."
. scripts/environment.sh
environment
root=$PWD
folder=$root/.cache/without-compiler

# `install_with COMPILER [FLAGS]`: leaves what pip printed in the file log.
install_with() {
    compiler=$1
    shift
    rm -rf "$folder/build"
    CC=$compiler CXX=$compiler python -m pip install --quiet --disable-pip-version-check --no-build-isolation --upgrade \
        --config-settings=build-dir="$folder/build" --target "$folder/site" "$@" . >"$folder/log" 2>&1
}

# `try COMPILER ERROR [FLAGS]`: installs with a compiler that fails with an error, which the install keeps and quotes.
# With GGUFBPE_ENGINE=native, the install fails.
try() {
    compiler=$1
    error=$2
    shift 2
    if GGUFBPE_ENGINE=native install_with "$compiler" --no-deps || ! grep -qF "$error" "$folder/log"; then
        cat "$folder/log"
        echo "without_compiler.sh: GGUFBPE_ENGINE=native does not end in the error '$error'" >&2
        exit 1
    fi
    install_with "$compiler" "$@" || { cat "$folder/log" && exit 1; }
    # -S, for .venv has this checkout installed; and not from here, where Python would find it, too
    cd "$folder/site"
    PYTHONPATH=$folder/site sh "$root/scripts/check_install.sh" reference python -S
    why="does not run: it could not be built when ggufbpe was installed: $error"
    PYTHONPATH=$folder/site python -S -m ggufbpe --version >"$folder/version"
    PYTHONPATH=$folder/site python -S -m ggufbpe tokenize -p "Hello world" 2>"$folder/warning" >/dev/null
    for file in version warning; do
        if ! grep -qF "$why" "$folder/$file"; then
            cat "$folder/$file"
            echo "without_compiler.sh: the $file does not say '$why'" >&2
            exit 1
        fi
    done
    grep -qF "(the whole output: $folder/site/ggufbpe/native/build_error.txt)" "$folder/version"
    [ "$(wc -l <"$folder/site/ggufbpe/native/build_error.txt")" -gt 5 ]
    [ ! -e "$root/ggufbpe/native/build_error.txt" ]
    cd "$root"
}

rm -rf "$folder"
mkdir -p "$folder"
try /bin/false 'The C++ compiler "/bin/false" is not able to compile a simple test program.'
# A compiler that compiles CMake's tests, and fails at the first file of the engine, which CMake may have put together
# with others.
cat >"$folder/c++" <<'END'
#!/bin/sh
case "$*" in
*/native/src/* | */Unity/*) echo "special.cpp:148:5: error: this compiler always fails" >&2 && exit 1 ;;
*) exec c++ "$@" ;;
esac
END
chmod +x "$folder/c++"
try "$folder/c++" "special.cpp:148:5: error: this compiler always fails" --no-deps # the first one installed them
