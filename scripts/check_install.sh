#!/bin/sh
# Holds an installed ggufbpe to the ids and to what it says of its engine: `check_install.sh native|reference PYTHON...`,
# where PYTHON... is the command that has it. Call it from a folder that Python would not find a checkout in.
set -eu
engine=$1
shift
expect() {
    if [ "$1" != "$2" ]; then
        echo "check_install.sh: expected '$1', found '$2'" >&2
        exit 1
    fi
}
expect "(engine: $engine;" "$("$@" -m ggufbpe --version | head -n 1 | cut -d' ' -f3-4)"
expect 1 "$("$@" -m ggufbpe info --json 2>/dev/null | grep -c "\"engine\": \"$engine\"")"
expect "[15496, 995]" "$("$@" -m ggufbpe tokenize -p 'Hello world' --ids 2>/dev/null)"
expect "[2616, 38776, 220, 220, 19526, 254, 25001, 121, 198, 198, 1507, 2091]" \
    "$(printf 'naïve  你好\n\n1833' | "$@" -m ggufbpe tokenize --stdin --ids 2>/dev/null)"
expect "Hello world" "$("$@" -m ggufbpe detokenize 15496 995 2>/dev/null)"
expect 2 "$("$@" -m ggufbpe count -p 'Hello world' 2>/dev/null | awk 'NR == 2 { print $1 }')"
expect "gpt2: byte pair encoding" "$("$@" -m ggufbpe info 2>/dev/null | sed -n 's/^  model *//p')"
# Files that are no modules are there, too; ggufbpe.wasm is where scripts/wasm.sh was run before.
for folder in "analysis/views/templates: base.html compare.html explain.html parts.html report.html server.html style.css training.html" \
    "server/static: chat_editor.js chat_prompt.js comparison.js dom.js examples.js index.html models.js page.css page.js pieces.js \
questions.js server.js state.js token_view.js word_steps.js" \
    "server/standalone: answers.js server.js" \
    "javascript: README.md errors.js incremental.js index.d.ts index.js library.js model_bytes.js package.json tokenizer.js utf16.js" \
    "models: LICENSE.gpt2 gpt2.gguf" \
    "chat: LICENSE.chat_templates chat_templates.json.xz"; do
    expect "${folder#*: }" "$(echo $("$@" -c 'import os, sys, ggufbpe
there = os.scandir(os.path.join(os.path.dirname(ggufbpe.__file__), sys.argv[1]))
print(*sorted(entry.name for entry in there if entry.is_file() and not entry.name.endswith((".py", ".wasm"))))' "${folder%%:*}"))"
done
expect "ggufbpe:1/doctor.json" "$("$@" -c 'import ggufbpe; print(ggufbpe.json_schema("doctor")["$id"])')"
echo "the $engine engine gives the ids"
