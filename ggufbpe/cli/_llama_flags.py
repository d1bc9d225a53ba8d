"""Flags of llama.cpp's tools that commands lack: of all tools, ignored; of llama-server, each with what to do instead.

Source: common/arg.cpp (common_params_parser_init, what LLAMA_EXAMPLE_COMMON, LLAMA_EXAMPLE_TOKENIZE and
LLAMA_EXAMPLE_SERVER have). tokenize.py has the flags that concern a tokenizer, _arguments.py those that name a model.
"""

from __future__ import annotations

_WITHOUT_VALUE = """
    -bs -cl -cmoe -kvo -nkvo -nr -v --backend-sampling --cache-list --check-tensors --cpu-moe
    --ignore-eos --kv-offload --list-devices --log-disable --log-jsonl --log-prefix --log-timestamps
    --log-verbose --no-host --no-kv-offload --no-log-jsonl --no-log-prefix --no-log-timestamps
    --no-op-offload --no-perf --no-repack --op-offload --perf --repack --swa-full
    --verbose
"""
_WITH_VALUE = """
    -C -Cb -Cr -Crb -b -c -ctk -ctkd -ctv -ctvd -dev -dt -fa -fit -fitc -fitt -j -jf -l -lm -lv -lzm
    -mg -n -ncffn -ncmoe -ngl -np -ot -s -sm -t -tb -ts -ub --adaptive-decay --adaptive-target
    --batch-size --cache-type-k --cache-type-k-draft --cache-type-v --cache-type-v-draft
    --control-vector --control-vector-scaled --cpu-mask --cpu-mask-batch --cpu-range
    --cpu-range-batch --cpu-strict --cpu-strict-batch --ctx-size --defrag-thold --device
    --dry-allowed-length --dry-base --dry-multiplier --dry-penalty-last-n --dry-sequence-breaker
    --dynatemp-exp --dynatemp-range --fit --fit-ctx --fit-target --flash-attn --frequency-penalty
    --gpu-layers --grammar --grammar-file --json-schema --json-schema-file --keep --lazy-mode
    --load-mode --log-colors --log-file --log-verbosity --logit-bias --lora --lora-scaled --main-gpu
    --min-p --mirostat --mirostat-ent --mirostat-lr --moe-cache-mib --n-cpu-ffn --n-cpu-moe
    --n-gpu-layers --n-predict --numa --override-tensor --parallel --poll --poll-batch --predict
    --presence-penalty --prio --prio-batch --repeat-last-n --repeat-penalty --rope-freq-base
    --rope-freq-scale --rope-scale --rope-scaling --rpc --sampler-seq --samplers --sampling-seq
    --seed --spec-draft-type-k --spec-draft-type-v --split-mode --temp --temperature --tensor-split
    --threads --threads-batch --top-k --top-n-sigma --top-nsigma --top-p --typical --typical-p
    --ubatch-size --verbosity --xtc-probability --xtc-threshold --yarn-attn-factor --yarn-beta-fast
    --yarn-beta-slow --yarn-ext-factor --yarn-orig-ctx
"""

IGNORED: dict[str, int] = {  # flag: how many values it takes
    **dict.fromkeys(_WITHOUT_VALUE.split(), 0),
    **dict.fromkeys(_WITH_VALUE.split(), 1),
    "--control-vector-layer-range": 2,
}

# ---- llama-server's ---------------------------------------------------------------------------------------

_OF_WEIGHTS = """
    --cache-prompt --cache-reuse --cont-batching --context-shift --embedding --embeddings
    --mlock --model-draft --no-mmap --no-slots --no-warmup --pooling --rerank --reranking
    --sleep-idle-seconds --slot-save-path --slots --warmup -cb -md
"""
_NO_WEIGHTS = "it concerns the weights, which this server does not read: leave it out"
_LOG = "the log is on standard error, and --log-requests adds to it: leave it out"
_TEMPLATE = "for another template, write a copy of the model: ggufbpe fix MODEL --chat-template ... -o COPY"
_TLS = "a proxy in front of this server does that; see docs/for/counting.md"

INSTEAD: dict[str, str] = {  # flag: what to do instead
    **dict.fromkeys(IGNORED, _NO_WEIGHTS),
    **dict.fromkeys(_OF_WEIGHTS.split(), _NO_WEIGHTS),
    **dict.fromkeys(("-v", "--verbose", "-lv", "--verbosity"), _LOG),
    **dict.fromkeys((flag for flag in IGNORED if "-log-" in flag), _LOG),
    **dict.fromkeys(("-a", "--alias"), "-m NAME=PATH gives a model its name"),
    **dict.fromkeys(("--jinja", "--no-jinja"), "chats are always rendered as with --jinja: leave it out"),
    **dict.fromkeys(("--metrics", "--props"), "/metrics and /props always answer: leave it out"),
    **dict.fromkeys(("--chat-template", "--chat-template-file"), _TEMPLATE),
    **dict.fromkeys(("--api-prefix", "--ssl-key-file", "--ssl-cert-file"), _TLS),
    **dict.fromkeys(
        ("--ui", "--no-ui", "--webui", "--no-webui", "--path"), "the page is always there: leave it out"
    ),
    **dict.fromkeys(("--models-dir", "--models-preset"), "give each model with -m"),
    "--threads-http": "--threads is the number of threads",
    "-to": "--timeout is the time for an answer, --read-timeout that for a request",
}
