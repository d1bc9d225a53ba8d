"""Flags of llama-server that `ggufbpe serve` lacks, each with what to do instead.

Source: common/arg.cpp (common_params_parser_init, what LLAMA_EXAMPLE_SERVER has).
"""

from __future__ import annotations

from ._llama_flags import IGNORED

_NO_WEIGHTS = "it concerns the weights, which this server does not read: leave it out"
_TEMPLATE = "for another template, write a copy of the model: ggufbpe fix MODEL --chat-template ... -o COPY"
_TLS = "a proxy in front of this server does that; see docs/for/counting.md"

INSTEAD: dict[str, str] = {
    **dict.fromkeys(IGNORED, _NO_WEIGHTS),
    **dict.fromkeys(
        (
            *("--embedding", "--embeddings", "--rerank", "--reranking", "--pooling", "-md", "--model-draft"),
            *(
                "--slots",
                "--no-slots",
                "--slot-save-path",
                "-cb",
                "--cont-batching",
                "--warmup",
                "--no-warmup",
            ),
            *(
                "--cache-reuse",
                "--cache-prompt",
                "--context-shift",
                "--sleep-idle-seconds",
                "--mlock",
                "--no-mmap",
            ),
        ),
        _NO_WEIGHTS,
    ),
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
