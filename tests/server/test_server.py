"""`ggufbpe serve`: the recorded answers of llama-server, those of other servers' forms, and who is let in.

Requests are put to the application in this process; test_server_process.py has what sockets and signals are for.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from conftest import GPT2, RAW_UTF8, ROOT, missing
from jsonschema import Draft202012Validator
from make_tiny_model import CONTEXT, make_tiny_model
from record_chats import VOCABULARY, read_chats
from record_server import ANSWERS, TEMPLATES, Request, answers, metadata_of, requests
from reference import NotPreparedError

from ggufbpe import Tokenizer, diagnose, diff, explain, why_not
from ggufbpe.server.api_description import description
from ggufbpe.server.app import Application
from ggufbpe.server.endpoints import ENDPOINTS, Endpoint
from ggufbpe.server.failures import RequestError
from ggufbpe.server.llama_server import shown_piece
from ggufbpe.server.rendering import MOST_SLOW_OF_MODEL
from ggufbpe.server.served_models import Models, named_models
from ggufbpe.server.settings import Settings
from ggufbpe.server.unsupported import NEEDING_WEIGHTS

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")

JSON = {"content-type": "application/json"}


class Answer:
    """What the application sends."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        start, *rest = messages
        self.status: int = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        self.parts = [message["body"] for message in rest]
        self.body = b"".join(self.parts)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


LONG_ANSWER = 1 << 16  # bytes; longer ones are not held to their schemas, which takes long


def ask(
    app: Application,
    path: str,
    body: Any = None,
    method: str | None = None,
    headers: Mapping[str, str] | None = None,
    parts: list[bytes] | None = None,
) -> Answer:
    """The answer to a request; the body is bytes or becomes JSON."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    method = method or ("GET" if body is None and parts is None else "POST")
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in (headers or {}).items()],
    }
    coming = [data] if parts is None else parts
    messages = [
        {"type": "http.request", "body": part, "more_body": number < len(coming)}
        for number, part in enumerate(coming, 1)
    ]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if messages else await asyncio.Future()  # the client stays

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    answer = Answer(sent)
    if (method, path) in ENDPOINTS and len(answer.body) < LONG_ANSWER:
        described = described_answer(method, path, answer.status)
        assert [error.message[:300] for error in described.iter_errors(answer.json)] == []
    return answer


@cache
def described_answer(method: str, path: str, status: int) -> Draft202012Validator:
    """What checks that an answer is what the schema of the description allows."""
    described = description()
    answers = described["paths"][path][method.lower()]["responses"]
    content = answers[str(status)]["content"]["application/json"]
    return Draft202012Validator({**content["schema"], "components": described["components"]})


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("server") / "tiny.gguf", VOCABULARY)


@pytest.fixture(scope="module")
def apps(tiny: Path) -> dict[str, Application]:
    """An application for each of the recorded templates."""
    templates = read_chats("templates")
    return {
        name: Application(
            Settings({"tiny": str(tiny)}, {"tokenizer.chat_template": templates[name]} if name else {})
        )
        for name in TEMPLATES
    }


@pytest.fixture(scope="module")
def app() -> Application:
    """A server of two models."""
    return Application(Settings({"gpt2": str(GPT2), "raw": str(RAW_UTF8)}))


# ---- as llama-server ------------------------------------------------------------------------------------

RECORDED = json.loads(ANSWERS.read_text("utf-8"))["answers"]
PLACE = re.compile(r"(.*)\n------------\nWhile executing \w+ at line (\d+), .*\nError: (.*)", re.DOTALL)
OWN_WORDS = ("[json.exception.parse_error", "[json.exception.out_of_range.406]")  # of a parser of JSON


def test_recorded_requests_are_those_of_the_tables() -> None:
    recorded = [(template, kind) for template, kinds in RECORDED.items() for kind in kinds]
    assert recorded == [(template, kind) for template, kind, _ in requests()], (
        "run tests/makers/record_server.py"
    )


@pytest.mark.parametrize(
    ("template", "kind", "request_"), [pytest.param(*each, id=f"{each[0]}: {each[1]}") for each in requests()]
)
def test_answers_are_those_of_llama_server(
    apps: dict[str, Application], template: str, kind: str, request_: Request
) -> None:
    status, expected = RECORDED[template][kind]
    answer = ask(apps[template], request_.path, request_.data, request_.method)
    found = answer.json
    if answer.status == 200:
        found = found["data"][0]["meta"] if kind == "models" else metadata_of(kind, found)
        found.pop("n_ctx", None)
        if kind.startswith("detokenize"):  # for clients of vLLM
            assert found.pop("prompt") == found["content"]
    if status == 500:  # what is said to be the server's fault, and is the caller's
        status, expected = 400, {"error": {**expected["error"], "code": 400, "type": "invalid_request_error"}}
        expected["error"]["message"] = found["error"]["message"]
    elif status == 400:
        message = PLACE.sub(r"line \2 of the chat template: \1\3", expected["error"]["message"])
        is_own = message.startswith(OWN_WORDS)
        expected = {
            "error": {**expected["error"], "message": found["error"]["message"] if is_own else message}
        }
    assert (answer.status, found) == (status, expected)


def test_llama_server_still_answers_so(tiny: Path) -> None:
    """The first template's requests, put to llama-server now."""
    try:
        with ChatServer(tiny) as server:
            found = answers(server, TEMPLATES[0])
    except NotPreparedError as error:
        missing(str(error))
    assert found == RECORDED[TEMPLATES[0]]


def test_nesting_has_an_end(app: Application) -> None:
    """llama-server has none: one of the differences."""
    answer = ask(app, "/tokenize", b'{"content": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")


@pytest.fixture(scope="module")
def app_of_examples() -> Application:
    """A server of the models that the examples of endpoints name. The one without a name can fill in."""
    fills_in = ROOT / "fixtures" / "vocabs" / "fim-by-key.gguf"
    return Application(Settings({"NAME": str(fills_in), "A": str(GPT2), "B": str(RAW_UTF8)}))


def nested_request(example: Mapping[str, Any], depth: int, field: str = "chat_template_kwargs") -> bytes:
    """An example of a body with an array nested so deeply in one of its fields."""
    return f'{json.dumps(example)[:-1]}, "{field}": {"[" * depth}{"]" * depth}}}'.encode()


@pytest.mark.slow
@pytest.mark.parametrize("field", ["chat_template_kwargs", "tools", "messages", "input", "system", "x"])
@pytest.mark.parametrize("depth", [100, 253, 254, 260, 900, 1020])
def test_nesting_is_answered_or_refused_and_never_a_failure(
    app_of_examples: Application, caplog: pytest.LogCaptureFixture, depth: int, field: str
) -> None:
    statuses = {
        (path, number): ask(app_of_examples, path, nested_request(example, depth, field)).status
        for (_, path), endpoint in ENDPOINTS.items()
        for number, example in enumerate(endpoint.examples)
    }
    assert {asked: status for asked, status in statuses.items() if status not in (200, 400)} == {}
    assert caplog.records == []


def test_nesting_has_an_end_where_chats_are_measured(app: Application) -> None:
    chat = next(each for each in ENDPOINTS["POST", "/v1/diagnose"].examples if "messages" in each)
    answer = ask(app, "/v1/diagnose", nested_request(chat, 260))
    assert (answer.status, answer.json["error"]["message"]) == (400, "the chat is nested too deeply")


def test_props_of_a_model_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    answer = ask(Application(Settings({"a": str(tmp_path / "a.gguf")})), "/props")
    assert (answer.status, answer.json["error"]["type"]) == (500, "server_error")


def test_models_are_listed_beside_one_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    answer = ask(Application(Settings({"a": str(tmp_path / "a.gguf"), "b": str(GPT2)})), "/v1/models")
    metas = {each["id"]: each["meta"] for each in answer.json["data"]}
    assert (metas["a"], metas["b"]["n_vocab"]) == (None, 50257)


TEMPLATE_REPLACED = ("/tokenize", "/v1/explain", "/v1/fit")  # by that of a request


@pytest.fixture(scope="module")
def app_with_a_broken_template() -> Application:
    return Application(Settings({"gpt2": str(GPT2)}, {"tokenizer.chat_template": "{% if %}"}))


@pytest.mark.parametrize("path", [*TEMPLATE_REPLACED, "/apply-template", "/v1/tokens"])
def test_a_template_that_cannot_be_used_is_not_the_fault_of_the_caller(
    app_with_a_broken_template: Application, path: str
) -> None:
    answer = ask(app_with_a_broken_template, path, {**CHAT, "limit": 99})
    assert (answer.status, answer.json["error"]["type"]) == (500, "server_error")


def test_a_template_that_cannot_be_used_is_diagnosed(app_with_a_broken_template: Application) -> None:
    chatml = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    found = ask(app_with_a_broken_template, "/v1/diagnose", {**CHAT, "expected_prompt": chatml}).json
    assert [cause["id"] for cause in found["explanations"][0]["causes"]] == ["template"]


@pytest.mark.parametrize("path", TEMPLATE_REPLACED)
def test_a_template_that_cannot_be_used_may_be_replaced(
    app_with_a_broken_template: Application, path: str
) -> None:
    body = {**CHAT, "limit": 99, "chat_template": "known:chatml"}
    assert ask(app_with_a_broken_template, path, body).status == 200


# ---- several models -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["models/a.gguf"], {"a": "models/a.gguf"}),
        (["1/a.gguf", "2/a.gguf"], {"1/a": "1/a.gguf", "2/a": "2/a.gguf"}),
        (["chat=models/b.gguf", "c.Q4.gguf"], {"chat": "models/b.gguf", "c.Q4": "c.Q4.gguf"}),
        (["/x=y/a.gguf"], {"a": "/x=y/a.gguf"}),
        (["hf:o/r:Q8_0", "ollama:me/x"], {name: name for name in ("hf:o/r:Q8_0", "ollama:me/x")}),
    ],
)
def test_names_of_models(given: list[str], names: dict[str, str]) -> None:
    assert named_models(given, str) == names


def test_two_models_of_one_name() -> None:
    with pytest.raises(ValueError, match="two models have the name 'a'"):
        named_models(["a.gguf", "a=b.gguf"], str)


@pytest.mark.parametrize(
    ("name", "model"), [("gpt2", GPT2), ("raw", RAW_UTF8), ("", GPT2), (None, GPT2), (5, GPT2)]
)
def test_the_field_model_chooses(app: Application, name: Any, model: Path) -> None:
    answer = ask(app, "/tokenize", {"content": "hello 者", "model": name})
    ids = Tokenizer.from_gguf(model).encode("hello 者", add_special=False)
    assert answer.json == {"tokens": ids}


@pytest.mark.parametrize("name", ["ollama:gemma3", "ollama:gemma3:latest"])
def test_models_have_the_names_of_the_command_models(name: str) -> None:
    app = Application(Settings({"gpt2": str(GPT2), "ollama:gemma3": str(RAW_UTF8)}))
    answer = ask(app, "/tokenize", {"model": name, "content": "Hello"})
    assert answer.json["tokens"] == Tokenizer.from_gguf(RAW_UTF8).encode("Hello", add_special=False)


@pytest.mark.parametrize("name", ["other", "../../etc/passwd", str(GPT2), "ollama:other", "hf:/"])
def test_no_other_file_is_opened(app: Application, name: str) -> None:
    answers = [
        ask(app, "/tokenize", {"content": "a", "model": name}),
        ask(app, "/v1/diff", {"models": ["gpt2", name]}),
        ask(app, "/v1/diagnose", {"text": "a", "ids": [1], "others": [name]}),
        ask(app, f"/props?model={name}"),
    ]
    message = f"model '{name}' not found"
    assert [(answer.status, answer.json["error"]["message"]) for answer in answers] == [(400, message)] * 4


def test_one_model_is_the_one_whatever_it_is_called(apps: dict[str, Application]) -> None:
    assert ask(apps[""], "/tokenize", {"content": "a", "model": "gpt-4o"}).json == {"tokens": [64]}


def test_models_used_longest_ago_are_closed() -> None:
    models = Models({"a": str(GPT2), "b": str(GPT2), "c": str(GPT2)}, most_open=2)
    for name in ("a", "b", "a", "c"):
        models.named(name)
    assert [models.if_open(name) is not None for name in "abc"] == [True, False, True]


# ---- as other servers -----------------------------------------------------------------------------------

CHAT = {"messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    ("path", "body", "answer"),
    [
        (
            "/tokenize",
            {"model": "m", "prompt": "Hello"},
            {"count": 4, "max_model_len": CONTEXT, "tokens": [1756, 39, 695, 78], "token_strs": None},
        ),
        (
            "/tokenize",
            {"prompt": "Hello", "add_special_tokens": False, "return_token_strs": True},
            {"count": 3, "max_model_len": CONTEXT, "tokens": [39, 695, 78], "token_strs": ["H", "ell", "o"]},
        ),
        ("/detokenize", {"model": "m", "tokens": [39, 695, 78]}, {"content": "Hello", "prompt": "Hello"}),
        ("/detokenize", {"tokens": [39, 695, 78]}, {"content": "Hello", "prompt": "Hello"}),
        (
            "/api/detokenize",
            {"model": "m:latest", "tokens": [39, 695, 78]},
            {"model": "m:latest", "content": "Hello"},
        ),
        ("/api/tokenize", {"model": "m", "content": "Hello"}, {"model": "m", "tokens": [39, 695, 78]}),
    ],
)
def test_forms_of_other_servers(
    apps: dict[str, Application], path: str, body: dict[str, Any], answer: dict[str, Any]
) -> None:
    found = ask(apps[""], path, body).json
    assert {name: value for name, value in found.items() if not name.endswith("_duration")} == answer


def test_tokenizer_info(app: Application) -> None:
    found = ask(app, "/tokenizer_info?model=gpt2").json
    template = ask(app, "/props?model=gpt2").json["chat_template"]
    end = "<|endoftext|>"
    assert found == {
        "tokenizer_class": "ggufbpe",
        "vocab_size": 50257,
        "bos_token": end,
        "eos_token": end,
        "pad_token": None,
        "unk_token": None,
        "add_bos_token": False,
        "add_eos_token": False,
        "chat_template": template,
    }


def test_chats_of_vllm_have_the_ids_that_llama_server_counts(apps: dict[str, Application]) -> None:
    app = apps[TEMPLATES[0]]
    found = ask(app, "/tokenize", {"model": "m", **CHAT}).json
    prompt = ask(app, "/apply-template", CHAT).json["prompt"]
    assert ask(app, "/detokenize", {"tokens": found["tokens"]}).json["content"] == f"<s>{prompt}"
    assert found["count"] == ask(app, "/v1/chat/completions/input_tokens", CHAT).json["input_tokens"]


def test_ollamas_failures_have_its_form(app: Application) -> None:
    answer = ask(app, "/api/tokenize", {"model": "other", "content": "a"})
    assert (answer.status, answer.json) == (404, {"error": "model 'other' not found"})


@pytest.mark.parametrize(("method", "path"), [("POST", "/api/nothing"), ("GET", "/api/tokenize")])
def test_addresses_that_ollama_does_not_have_are_refused_in_its_form(
    app: Application, method: str, path: str
) -> None:
    answer = ask(app, path, method=method)
    assert (answer.status, answer.json) == (404, {"error": "File Not Found"})


@pytest.mark.parametrize("name", ["gemma3", "gemma3:latest", "ollama:gemma3"])
def test_ollamas_clients_find_its_models(name: str) -> None:
    app = Application(Settings({"raw": str(RAW_UTF8), "ollama:gemma3": str(GPT2)}))
    assert ask(app, "/api/tokenize", {"model": name, "content": "Hello"}).json["tokens"] == [15496]


# ---- what needs weights ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path"), sorted(NEEDING_WEIGHTS))
def test_requests_that_need_weights_are_told_that_there_are_none(
    app: Application, method: str, path: str
) -> None:
    answer = ask(app, path, {**CHAT, "input": "Hi", "prompt": "Hi"} if method == "POST" else None, method)
    message = (
        "this server only counts: it reads the tokenizer of a model, not the weights, and cannot answer "
        f"{path}; run llama-server for that"
    )
    expected: Any = {"error": {"code": 501, "message": message, "type": "not_supported_error"}}
    if path.startswith("/api/"):
        expected = {"error": message}
    if path == "/v1/messages":
        expected["type"] = "error"
    assert (answer.status, answer.json) == (501, expected)


def test_no_endpoint_is_listed_as_one_that_needs_weights() -> None:
    assert NEEDING_WEIGHTS.isdisjoint(ENDPOINTS)


# ---- our own --------------------------------------------------------------------------------------------


def test_explain_is_that_of_the_package(app: Application) -> None:
    assert ask(app, "/v1/explain", {"text": "Hello 者"}).json == explain(GPT2, "Hello 者").to_dict()


def test_symbols_that_are_no_characters_can_be_told_apart() -> None:
    model = GPT2.parents[2] / "fixtures" / "vocabs" / "rwkv.gguf"
    app = Application(Settings({"rwkv": str(model)}))
    answer = ask(app, "/v1/explain", {"text": "者"})
    assert answer.json == explain(model, "者").to_dict()
    assert rb"\udce8" in answer.body
    assert ask(app, "/v1/word", {"text": "者", "token": 0}).json["in_word"]["shown"] == {
        "\udce8": {"piece": None, "bytes": "e8"}
    }


def test_explain_of_a_chat_is_that_of_the_package(app: Application) -> None:
    assert ask(app, "/v1/explain", CHAT).json == json.loads(json.dumps(explain(GPT2, CHAT).to_dict()))


def test_why_not_is_that_of_the_package(app: Application) -> None:
    expected = why_not(GPT2, "Hello world", "Hell").to_dict()
    answer = ask(app, "/v1/explain", {"text": "Hello world", "why_not": "Hell"})
    assert answer.json == json.loads(json.dumps(expected))


def test_diff_is_that_of_the_package(app: Application) -> None:
    expected = diff(*map(app.models.named, ("gpt2", "raw")), ["Hello", "者"]).to_dict()
    answer = ask(app, "/v1/diff", {"models": ["gpt2", "raw"], "texts": ["Hello", "者"]})
    found = answer.json
    for each in (found, expected):
        del each["texts"]["seconds"], each["texts"]["mb_per_second"]
    assert found == json.loads(json.dumps(expected))


def test_diagnose_is_that_of_the_package(app: Application) -> None:
    expected = diagnose(GPT2, "Hello world", [50256, 15496, 995]).to_dict()
    answer = ask(app, "/v1/diagnose", {"text": "Hello world", "ids": [50256, 15496, 995]})
    assert answer.json == json.loads(json.dumps(expected))


@pytest.mark.parametrize("expected", [{"ids": [17250]}, {"expected_prompt": "<|im_start|>user\nHi"}])
def test_diagnose_of_a_chat_is_that_of_the_package(app: Application, expected: dict[str, Any]) -> None:
    found = ask(app, "/v1/diagnose", {**CHAT, **expected}).json
    assert found == json.loads(json.dumps(diagnose(GPT2, chat=CHAT, **expected).to_dict()))


def test_count(app: Application) -> None:
    answer = ask(app, "/v1/count", {"texts": ["Hello world", "", "a b c"]})
    assert answer.json == {"counts": [2, 0, 3], "total": 5}


def test_common_prefix_is_that_of_the_package(app: Application) -> None:
    answer = ask(app, "/v1/common_prefix", {"tokens": [15496, 476, 335], "content": "Hello world"})
    expected = Tokenizer.from_gguf(GPT2).common_prefix([15496, 476, 335], "Hello world")
    assert answer.json == expected._asdict()


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/v1/count", {}, 400, "'texts' must be a string or an array of strings"),
        ("/v1/count", {"texts": ["a"] * 5000}, 413, "'texts' has 5000 texts; the limit is 4096"),
        (
            "/v1/truncate",  # a ValueError
            {"text": "a b", "limit": 1, "marker": "a b"},
            400,
            "the marker alone has 2 tokens, and the limit is 1",
        ),
        ("/tokenize", {"prompt": 5}, 400, "'prompt' is required and must be a string"),
        (
            "/v1/why",
            {"text": "a", "piece": "a" * 16_385},
            413,
            "the text has 16385 bytes; the limit here is 16384",
        ),
        (
            "/v1/explain",
            {"text": "a", "why_not": "é" * 8_193},
            413,
            "the text has 16386 bytes; the limit here is 16384",
        ),
    ],
)
def test_requests_that_make_no_sense(
    app: Application, path: str, body: Any, status: int, message: str
) -> None:
    answer = ask(app, path, body)
    assert (answer.status, answer.json["error"]["message"]) == (status, message)


def test_a_word_of_a_long_text_is_traced_alone(app: Application) -> None:
    answer = ask(app, "/v1/word", {"text": "Hello world " * 80_000, "token": 160_000})
    assert (answer.status, answer.json["in_word"]["start"]) == (200, 959_999)


@pytest.mark.parametrize("add_special", [True, False])
def test_where_models_part_goes_by_the_flags(add_special: bool) -> None:
    vocabularies = GPT2.parents[2] / "fixtures" / "vocabs"
    models = {name: str(vocabularies / f"{name}.gguf") for name in ("add-bos", "add-eos-only")}
    body = {"models": list(models), "text": "ab", "add_special": add_special}
    found = ask(Application(Settings(models)), "/v1/parting", body).json
    assert bool(found["differences"]) == add_special


NUMBERS = "Some words, and 1234567 of them."
GPT2_IDS = [4366, 2456, 11, 290, 17031, 2231, 3134, 286, 606, 13]
BY_DIGITS = [4366, 2456, 11, 290, 220, 16, 17, 18, 19, 20, 21, 22, 286, 606, 13]


@pytest.mark.parametrize(
    ("ids", "step", "smallest"),
    [
        (
            BY_DIGITS,
            "words",
            {"text": "56", "ours": [3980], "theirs": [20, 21]},
        ),
        ([50256, *GPT2_IDS], "BOS/EOS", {"text": "", "ours": [], "theirs": [50256]}),
        (
            GPT2_IDS[:-1],
            "BOS/EOS",
            None,
        ),  # cut off at so many ids: that of a smaller text is another difference
        (GPT2_IDS, None, None),
    ],
)
def test_where_expected_ids_part_with_the_smallest_text(
    app: Application, ids: list[int], step: str | None, smallest: Any
) -> None:
    found = ask(app, "/v1/parting", {"text": NUMBERS, "ids": ids}).json
    assert [each["step"] for each in found["differences"]] == [step] * (step is not None)
    assert found["smallest"] == smallest


@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
def test_the_description_has_every_address(app: Application, path: str) -> None:
    answer = ask(app, path)
    assert answer.status == 200
    assert [each.path for each in ENDPOINTS.values() if each.path not in answer.body.decode()] == []


def test_the_description_has_every_type_of_a_field(app: Application) -> None:
    paths = ask(app, "/openapi.json").json["paths"]
    body = paths["/tokenize"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert body["content"] == {"type": ["string", "array"]}
    assert body["return_token_strs"] == {"type": "boolean"}
    assert [each["name"] for each in paths["/props"]["get"]["parameters"]] == ["model"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        pytest.param("/v1/fits", {"text": "Hello world", "limit": 1}, 200, id="a count that is null"),
        pytest.param("/v1/tokens", {"text": "\N{SLIGHTLY SMILING FACE}"}, 200, id="pieces that are null"),
        pytest.param("/v1/vocabulary", {"query": "94"}, 200, id="a found piece that is null"),
        pytest.param("/api/tokenize", {"model": "other", "content": "a"}, 404, id="an unknown model"),
        pytest.param("/api/tokenize", {"model": "gpt2"}, 400, id="a refusal in Ollama's form"),
        pytest.param("/infill/input_tokens", {"input_prefix": "a", "input_suffix": ""}, 501, id="no infill"),
    ],
)
def test_answers_and_refusals_are_as_described(app: Application, path: str, body: Any, status: int) -> None:
    """`ask` holds each to its schema."""
    assert ask(app, path, body).status == status


EXAMPLES = [
    pytest.param(endpoint.path, example, id=f"{endpoint.path} {number}")
    for endpoint in ENDPOINTS.values()
    for number, example in enumerate(endpoint.examples)
]


def test_the_documentation_names_each_address() -> None:
    documented = (ROOT / "docs" / "server.md").read_text()
    missing = [path for _, path in ENDPOINTS if f"`{path}`" not in documented]
    assert [path for path in missing if f"`/v1{path}`" not in documented] == []
    [long] = [each for each in documented.split("\n\n") if "have a thread of their own" in each]
    assert [each.path for each in ENDPOINTS.values() if each.is_long != (f"`{each.path}`" in long)] == []


@pytest.mark.slow
@pytest.mark.parametrize(("path", "example"), EXAMPLES)
def test_examples_of_the_description_are_answered_without_a_path_of_the_server(
    app_of_examples: Application, path: str, example: Mapping[str, Any]
) -> None:
    answer = ask(app_of_examples, path, example)
    assert (answer.status, str(ROOT) in answer.body.decode()) == (200, False)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/props", None),
        ("/v1/diff", {"models": ["A", "B"]}),
        ("/v1/parting", {"models": ["A", "B"], "text": "Hello"}),
        ("/v1/diagnose", {"model": "A", "text": "0123", "ids": [15, 16, 17, 18], "others": ["B"]}),
    ],
)
def test_models_have_their_names_in_answers_and_not_the_paths_of_their_files(
    app_of_examples: Application, path: str, body: Any
) -> None:
    assert ".gguf" not in ask(app_of_examples, path, body).body.decode()


@pytest.mark.parametrize(
    "endpoint", [each for each in ENDPOINTS.values() if each.examples], ids=lambda each: each.path
)
def test_required_fields_are_those_without_which_every_example_is_refused(
    app_of_examples: Application, endpoint: Endpoint
) -> None:
    def is_refused(example: Mapping[str, Any], without: str) -> bool:
        rest = {name: value for name, value in example.items() if name != without}
        return ask(app_of_examples, endpoint.path, rest).status == 400

    shared = set.intersection(*map(set, endpoint.examples))
    required = {name for name in shared if all(is_refused(each, name) for each in endpoint.examples)}
    content = description()["paths"][endpoint.path]["post"]["requestBody"]["content"]["application/json"]
    assert set(content["schema"].get("required", ())) == set(endpoint.required) == required


@pytest.mark.parametrize("path", [each.path for each in ENDPOINTS.values() if each.method == "GET"])
def test_requests_without_a_body_are_answered_as_described(path: str) -> None:
    assert ask(Application(Settings({"A": str(GPT2)})), path).status == 200


def test_every_endpoint_is_summed_up() -> None:
    assert [each.path for each in ENDPOINTS.values() if not each.summary] == []


# ---- who is let in --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:8080"}, 200),
        ({"host": "LOCALHOST"}, 200),
        ({"host": "127.0.0.1:1"}, 200),
        ({"host": "[::1]:8080"}, 200),
        ({"host": "192.168.1.5:8080"}, 200),
        ({"host": "tokens.example.org"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "localhost.evil.example:8080"}, 403),
        ({"host": "localhost@evil.example"}, 403),
        ({"host": ""}, 403),
        ({"host": "[::1].evil.example"}, 403),
        ({"host": "[::1]evil.example:80"}, 403),
        ({"host": "[localhost]"}, 403),
        ({"host": "::1"}, 403),
        ({"host": "[::1%evil.example]"}, 403),
        ({"host": "127.0.0.1:evil.example"}, 403),
        ({"host": "127.0.0.1:80:80"}, 403),
        ({"host": "localhost:"}, 200),
        ({"host": "[::1]"}, 200),
        ({"host": "localhost:8080", "origin": "http://localhost:8080"}, 200),
        ({"host": "localhost:8080", "origin": "https://localhost:8080"}, 200),
        ({"host": "localhost:8080", "origin": "http://localhost:3000"}, 403),
        ({"host": "localhost:8080", "origin": "http://evil.example"}, 403),
        ({"host": "localhost:8080", "origin": "null"}, 403),
        ({"host": "localhost:8080", "origin": "https://friend.example"}, 200),
        ({"host": "localhost:8080", "sec-fetch-site": "cross-site"}, 403),
        ({"host": "localhost:8080", "sec-fetch-site": "same-origin"}, 200),
    ],
)
def test_host_and_origin(headers: dict[str, str], status: int) -> None:
    settings = Settings(
        {"gpt2": str(GPT2)},
        allowed_hosts=("tokens.example.org",),
        allowed_origins=("https://friend.example/",),
    )
    app = Application(settings)
    answer = ask(app, "/tokenize", {"content": "a"}, headers=headers)
    assert answer.status == status
    short = app.at_once("/tokenize", {name.encode(): text.encode() for name, text in headers.items()}, b"{}")
    assert short is None or status == 200
    shown_to = "https://friend.example" if "friend" in headers.get("origin", "") else None
    assert answer.headers.get("access-control-allow-origin") == shown_to


def test_all_origins_may_be_allowed() -> None:
    app = Application(Settings({"gpt2": str(GPT2)}, allowed_origins=("*",)))
    headers = {"host": "localhost", "origin": "https://any.example"}
    answer = ask(app, "/tokenize", {"content": "a"}, headers=headers)
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "https://any.example")
    foreign = {**headers, "host": "rebound.example"}
    assert ask(app, "/tokenize", {"content": "a"}, headers=foreign).status == 403


def test_preflight_of_an_allowed_origin() -> None:
    app = Application(Settings({"gpt2": str(GPT2)}, allowed_origins=("https://a.example",), api_keys=("k",)))
    answers = [
        ask(app, "/tokenize", method="OPTIONS", headers={"origin": origin})
        for origin in ("https://a.example", "https://b.example")
    ]
    assert [answer.status for answer in answers] == [204, 403]
    assert "content-length" not in answers[0].headers  # RFC 9110, 8.6
    assert "authorization" in answers[0].headers["access-control-allow-headers"]


@pytest.mark.parametrize(
    "path", ["/", "/docs", "/openapi.json", "/metrics", "/health", "/nothing", "/api/nothing"]
)
def test_pages_of_an_allowed_origin_may_read_every_answer(path: str) -> None:
    app = Application(Settings({"gpt2": str(GPT2)}, allowed_origins=("https://a.example",)))
    answers = [
        ask(app, path, headers={"origin": "https://a.example"}),
        ask(app, path, headers={"host": "localhost", "origin": "http://localhost"}),
        ask(app, path),
    ]
    shown_to = [answer.headers.get("access-control-allow-origin") for answer in answers]
    assert shown_to == ["https://a.example", None, None]
    assert all(answer.headers["x-content-type-options"] == "nosniff" for answer in answers)


@pytest.mark.parametrize("path", ["/index.html", "/static/page.js", "/../pages.py", "/health/"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_nothing_else_is_served(app: Application, path: str, method: str) -> None:
    answer = ask(app, path, method=method)
    assert (answer.status, answer.json["error"]["message"]) == (404, "File Not Found")


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/tokenize", {}, 401),
        ("/tokenize", {"authorization": "Bearer one"}, 200),
        ("/tokenize", {"authorization": "one"}, 200),
        ("/tokenize", {"x-api-key": "two"}, 200),
        ("/tokenize", {"authorization": "Bearer three"}, 401),
        ("/tokenize", {"authorization": "bearer one"}, 200),
        ("/tokenize", {"authorization": "BEARER   one"}, 200),
        ("/tokenize", {"authorization": "Bearerone"}, 401),
        ("/tokenize", {"authorization": "Bearer three", "x-api-key": "two"}, 200),
        ("/tokenize", {"authorization": "Basic dXNlcjpvbmU=", "x-api-key": "two"}, 200),
        ("/tokenize", {"authorization": "Bearer one", "x-api-key": "three"}, 200),
        ("/tokenize", {"authorization": "Bearer three", "x-api-key": "three"}, 401),
        ("/tokenize", {"authorization": "Bearer ", "x-api-key": ""}, 401),
        ("/nothing", {}, 401),
        ("/v1/models", {}, 401),
        ("/metrics", {}, 401),
        ("/health", {}, 200),
        ("/v1/health", {}, 200),
        ("/docs", {}, 200),
    ],
)
def test_keys(path: str, headers: dict[str, str], status: int) -> None:
    app = Application(Settings({"gpt2": str(GPT2)}, api_keys=("one", "two")))
    body = {"content": "a"} if path == "/tokenize" else None
    assert ask(app, path, body, headers=headers).status == status


def test_an_empty_key_lets_nobody_in() -> None:
    app = Application(Settings({"gpt2": str(GPT2)}, api_keys=("",)))
    assert [ask(app, "/props", headers=headers).status for headers in ({}, {"x-api-key": ""})] == [401, 401]


def test_the_failure_of_a_key_is_llama_servers() -> None:
    answer = ask(Application(Settings({"gpt2": str(GPT2)}, api_keys=("one",))), "/props")
    expected = {"error": {"message": "Invalid API Key", "type": "authentication_error", "code": 401}}
    assert answer.json == expected


# ---- limits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "parts", "status"),
    [
        ({"content-length": "15"}, [b'{"content":"a"}'], 200),
        ({}, [b'{"content"', b':"a"}'], 200),
        ({"content-length": "1001"}, [b""], 413),
        ({"content-length": "9" * 5000}, [b""], 413),
        ({}, [b"[" * 600, b"[" * 600], 413),
    ],
)
def test_bodies_have_a_limit(headers: dict[str, str], parts: list[bytes], status: int) -> None:
    app = Application(Settings({"gpt2": str(GPT2)}, most_body=1000, read_timeout=0.1))
    assert ask(app, "/tokenize", parts=parts, headers=headers).status == status


@pytest.mark.parametrize(("encoding", "status"), [("gzip", 415), ("br", 415), ("Identity", 200), ("", 200)])
def test_compressed_bodies_are_refused(app: Application, encoding: str, status: int) -> None:
    headers = {"content-encoding": encoding}
    answer = ask(app, "/tokenize", {"content": "a"}, headers=headers)
    assert (answer.status, "uncompressed" in answer.body.decode()) == (status, status == 415)
    at_once = app.at_once("/tokenize", {b"content-encoding": encoding.encode()}, b'{"content": "a"}')
    assert at_once is None


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [("/tokenize", {}, 413), ("/tokenize", {"host": "evil.example"}, 403), ("/v1/embeddings", {}, 501)],
)
def test_the_rest_of_a_refused_body_is_dropped_before_the_answer_ends(
    path: str, headers: dict[str, str], status: int
) -> None:
    """A connection that is closed while its client sends is broken for the client, which reads no answer."""
    app = Application(Settings({"gpt2": str(GPT2)}, most_body=1000))
    order: list[str] = []
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b""}
    coming = [{"type": "http.request", "body": b"a" * 600, "more_body": number} for number in range(5)]

    async def receive() -> Any:
        order.append("received")
        return coming.pop()

    async def send(message: Any) -> None:
        order.append(str(message.get("status", "more" if message.get("more_body") else "end")))

    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    asyncio.run(app({**scope, "headers": sent}, receive, send))
    assert order[order.index(str(status)) :][:2] == [str(status), "more"]
    assert (order[-1], order.count("received"), coming) == ("end", 5, [])


_MANY = 1 << 20


@pytest.mark.parametrize(
    ("value", "status"),
    [
        pytest.param(b"[" + b"{}," * _MANY + b"1]", 413, id="objects"),
        pytest.param(b"[" + b"[]," * _MANY + b"1]", 413, id="arrays"),
        pytest.param(b"[" + b'"",' * _MANY + b"1]", 413, id="strings"),
        pytest.param(b"[" + b'{"a":[]},' * (_MANY // 3) + b'"", ""]', 413, id="a third of each"),
        pytest.param(b"[" + b"1," * _MANY * 3 + b"1]", 200, id="numbers"),
        pytest.param(b"[" + b"[]," * (_MANY - 10) + b"1]", 200, id="fewer arrays"),
        pytest.param(b'"' + b"{[" * _MANY + b'"', 200, id="brackets in a string"),
        pytest.param(b'"' + b'\\"' * _MANY * 3 + b'"', 200, id="quotes in a string"),
        pytest.param(b'"' + b'\\\\\\"[' * _MANY + b'"', 200, id="backslashes before quotes in a string"),
        pytest.param(
            b'"\\\\",' + b'"a":"\\\\",' * (_MANY // 2) + b'"b":1', 413, id="backslashes at the end of strings"
        ),
    ],
)
def test_bodies_of_too_many_values_are_refused_before_they_are_parsed(
    app: Application, value: bytes, status: int
) -> None:
    assert ask(app, "/tokenize", b'{"content": "a", "x": ' + value + b"}").status == status


CHARACTERS = "\x01ä者🙂" * 10_000


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/tokenize", {"content": CHARACTERS}, lambda tok, ids: {"tokens": ids}),
        (
            "/tokenize",
            {"content": CHARACTERS, "with_pieces": True},
            lambda tok, ids: {
                "tokens": [{"id": token, "piece": shown_piece(tok.token_to_piece(token))} for token in ids]
            },
        ),
        (
            "/tokenize",
            {"prompt": CHARACTERS, "return_token_strs": True},
            lambda tok, ids: {
                "count": len(ids),
                "max_model_len": 1024,
                "tokens": ids,
                "token_strs": [tok.id_to_token(token) for token in ids],
            },
        ),
        (
            "/detokenize",
            {"tokens": [35496] * 5000},
            lambda tok, ids: dict.fromkeys(["content", "prompt"], tok.decode([35496] * 5000)),
        ),
    ],
)
def test_large_answers_are_never_held(
    app: Application, path: str, body: Any, expected: Callable[[Tokenizer, list[int]], Any]
) -> None:
    """They are made or cut in parts of at most 256 kB, of which the next waits until this one is taken."""
    answer = ask(app, path, body)
    tok = Tokenizer.from_gguf(GPT2)
    assert answer.json == expected(tok, tok.encode(CHARACTERS))
    assert answer.headers["content-length"] == str(len(answer.body))
    assert max(map(len, answer.parts)) <= 1 << 18 < len(answer.body)


def test_bodies_have_a_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of 1000 bytes and no more; the room is there again when they are answered."""
    monkeypatch.setattr("ggufbpe.server.app.HELD_BODIES", 2)
    app = Application(Settings({"gpt2": str(GPT2)}, most_body=1000, read_timeout=0.1))
    body = b'{"content": "a"}' + b" " * 884
    scope = {"type": "http", "method": "POST", "path": "/tokenize", "query_string": b"", "headers": []}

    async def status(rest: asyncio.Event) -> int:
        sent: list[Any] = []
        coming = [{"type": "http.request"}, {"type": "http.request", "body": body, "more_body": True}]

        async def receive() -> Any:
            if len(coming) == 1:
                await rest.wait()
            return coming.pop() if coming else await asyncio.Future()

        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return int(sent[0]["status"])

    async def in_turn() -> list[int]:
        rest = asyncio.Event()
        two = [asyncio.create_task(status(rest)) for _ in range(2)]
        await asyncio.sleep(0)
        third = await status(rest)
        rest.set()
        return [third, *await asyncio.gather(*two), await status(rest)]

    assert asyncio.run(in_turn()) == [503, 200, 200, 200]


@pytest.mark.parametrize(
    ("body", "is_quick"), [({"content": "a"}, True), ({"prompt": "a"}, True), (CHAT, False)]
)
def test_templates_do_not_run_where_requests_are_read(
    app: Application, body: dict[str, Any], is_quick: bool
) -> None:
    """One that loops would keep all others waiting."""
    app.models.named("gpt2")
    assert (app.at_once("/tokenize", {}, json.dumps(body).encode()) is not None) == is_quick


@pytest.mark.parametrize("is_long", [False, True])
def test_more_than_may_wait_are_refused_and_what_takes_too_long_is_given_up(
    monkeypatch: pytest.MonkeyPatch, is_long: bool
) -> None:
    """Three at once, one thread and one waiting place; the thread takes longer than an answer may."""
    held = threading.Event()
    slow = ENDPOINTS["POST", "/v1/count"]._replace(is_long=is_long, answer=lambda models, body: held.wait(10))
    monkeypatch.setattr("ggufbpe.server.app.ENDPOINTS", {("POST", "/slow"): slow})
    app = Application(Settings({"gpt2": str(GPT2)}, threads=1, most_waiting=1, timeout=0.2))

    async def status() -> tuple[int, bytes]:
        sent: list[Any] = []
        coming = [{"type": "http.request", "body": b"{}"}]

        async def receive() -> dict[str, Any]:
            return coming.pop() if coming else await asyncio.Future()

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/slow", "query_string": b"", "headers": []}
        await app(scope, receive, send)
        return sent[0]["status"], dict(sent[0]["headers"]).get(b"retry-after", b"")

    async def all_at_once() -> list[tuple[int, bytes]]:
        return await asyncio.gather(status(), status(), status())

    found = asyncio.run(all_at_once())
    held.set()
    assert sorted(found) == [(429, b"1"), (503, b"1"), (503, b"1")]


@pytest.mark.parametrize(("is_long", "most"), [(False, 2), (True, 1)])
def test_no_thread_is_started_beyond_those_that_work(
    monkeypatch: pytest.MonkeyPatch, is_long: bool, most: int
) -> None:
    """Each thread keeps memory of its own. The places for slow templates need threads only when there are some."""
    threads: list[str] = []

    def note(models: Models, body: Any) -> Any:
        threads.append(threading.current_thread().name)
        time.sleep(0.01)

    endpoint = ENDPOINTS["POST", "/v1/count"]._replace(is_long=is_long, answer=note)
    monkeypatch.setattr("ggufbpe.server.app.ENDPOINTS", {("POST", "/noted"): endpoint})
    app = Application(Settings({"gpt2": str(GPT2)}, threads=2))

    async def ask_at_once() -> list[int]:
        asked = [Asking(app, {}, "/noted") for _ in range(16)]
        return [await each.status() for each in asked]

    assert asyncio.run(ask_at_once()) == [200] * 16
    assert (len(threads), len(set(threads)) <= most) == (16, True)


@pytest.mark.parametrize("is_long", [False, True])
def test_what_waits_is_dropped_when_its_client_hangs_up(
    monkeypatch: pytest.MonkeyPatch, is_long: bool
) -> None:
    """The first request holds the one thread; the second goes, and nothing is kept of it."""
    held = threading.Event()
    begun = []

    def hold(models: Models, body: Any) -> Any:
        begun.append(body)
        return held.wait(10)

    slow = ENDPOINTS["POST", "/v1/count"]._replace(is_long=is_long, answer=hold)
    monkeypatch.setattr("ggufbpe.server.app.ENDPOINTS", {("POST", "/slow"): slow})
    app = Application(Settings({"gpt2": str(GPT2)}, threads=1, most_waiting=1))
    scope = {"type": "http", "method": "POST", "path": "/slow", "query_string": b"", "headers": []}
    gone = asyncio.Event()

    async def asked(body: bytes, leaves: bool) -> list[Any]:
        sent: list[Any] = []
        coming = [{"type": "http.disconnect"}, {"type": "http.request", "body": body}]

        async def receive() -> Any:
            if len(coming) == 1:
                await (gone.wait() if leaves else asyncio.Future())
            return coming.pop()

        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return sent

    async def both() -> tuple[list[Any], int, list[Any]]:
        first = asyncio.create_task(asked(b'"first"', leaves=False))
        body = b'"' + b"second" * 9 + b'"'
        before = sys.getrefcount(body)
        second = asyncio.create_task(asked(body, leaves=True))
        await asyncio.sleep(0)
        gone.set()
        answer = await second
        kept = sys.getrefcount(body) - before
        held.set()
        return answer, kept, await first

    answer, kept, first = asyncio.run(both())
    assert (answer, kept, begun, first[0]["status"]) == ([], 0, ["first"], 200)
    assert 'status="499"} 1.0' in ask(app, "/metrics").body.decode()


def test_a_streamed_answer_ends_when_its_client_hangs_up(app: Application) -> None:
    body = json.dumps({"content": CHARACTERS, "with_pieces": True}).encode()
    coming = [{"type": "http.request", "body": body}]
    scope = {"type": "http", "method": "POST", "path": "/tokenize", "query_string": b"", "headers": []}
    sent: list[Any] = []
    gone = asyncio.Event()

    async def receive() -> Any:
        if coming:
            return coming.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if len(sent) == 5:
            gone.set()

    asyncio.run(app(scope, receive, send))
    assert [len(sent) <= 6, sent[-1]["more_body"]] == [True, True]


# ---- templates that take long ---------------------------------------------------------------------------

FOR_EVER = "{% for i in range(1000000000000) %}{% endfor %}"


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/tokenize", {"chat_template": FOR_EVER}),
        ("/apply-template", {}),
        ("/v1/tokens", {}),
        ("/v1/explain", {}),
        ("/v1/diagnose", {"ids": [1]}),
        ("/v1/messages/count_tokens", {}),
        ("/v1/responses/input_tokens", {"input": "Hi"}),
    ],
)
def test_templates_of_a_request_have_a_time_together(path: str, more: dict[str, Any]) -> None:
    """Each run takes a millisecond, which is all that they may take together."""
    template = "{% for i in range(5000) %}{% endfor %}{{ messages[0].content }}"
    overrides = {"tokenizer.chat_template": template}
    app = Application(Settings({"gpt2": str(GPT2)}, overrides, template_timeout=0.0001))
    answer = ask(app, path, {**CHAT, **more})
    expected = "the chat template takes more than 0.0001 seconds of processor time"
    assert (answer.status, answer.json["error"]["message"]) == (400, expected)


class Asking:
    """A request that is under way; `leave` hangs up."""

    def __init__(self, app: Application, body: dict[str, Any], path: str = "/tokenize") -> None:
        self._coming: list[Any] = [{"type": "http.request", "body": json.dumps(body).encode()}]
        self._gone = asyncio.Event()
        self.sent: list[Any] = []
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": []}
        scope["http_version"] = "1.0"
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self) -> Any:
        if self._coming:
            return self._coming.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    async def leave(self) -> None:
        self._gone.set()
        await self.task

    async def status(self) -> int:
        await asyncio.wait_for(self.task, 60)
        return int(self.sent[0]["status"])


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    for _ in range(6000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("waited for a minute")


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates that run for ever, which the limit of steps would end."""
    monkeypatch.setattr("ggufbpe.chat.template.run_limits.MOST_STEPS", 10**15)


@pytest.mark.usefixtures("endless")
@pytest.mark.parametrize("path", ["/tokenize", "/v1/diagnose"])
def test_a_template_ends_when_its_client_hangs_up(path: str) -> None:
    overrides = {"tokenizer.chat_template": FOR_EVER} if path == "/v1/diagnose" else {}
    app = Application(Settings({"gpt2": str(GPT2)}, overrides, template_timeout=1000))
    works = [app._work, app._long_work]

    async def ask_and_leave() -> None:
        asking = Asking(app, {**CHAT, "ids": [1], "chat_template": FOR_EVER}, path)
        await until(lambda: any(each._begun for each in works))
        await asyncio.sleep(0.2)
        await asking.leave()
        await until(lambda: not any(each._begun for each in works))

    asyncio.run(ask_and_leave())


@pytest.mark.slow
@pytest.mark.usefixtures("endless")
def test_slow_templates_leave_the_threads_to_others() -> None:
    """One thread: slow requests wait in other places, half of which one model may have."""
    settings = Settings({"gpt2": str(GPT2), "raw": str(RAW_UTF8)}, threads=1, template_timeout=1000)
    app = Application(settings)

    def slow(model: str) -> Asking:
        return Asking(app, {**CHAT, "model": model, "chat_template": FOR_EVER})

    async def all_of_it() -> list[int]:
        first = [slow("gpt2") for _ in range(MOST_SLOW_OF_MODEL)]
        await until(lambda: app._slow.count("gpt2") == MOST_SLOW_OF_MODEL)
        assert b"ggufbpe_requests_slow %d.0" % MOST_SLOW_OF_MODEL in app.metrics.exposition()
        statuses = [await slow("gpt2").status()]
        other = slow("raw")
        await until(lambda: app._slow.count("raw") == 1)
        statuses += [await Asking(app, {**CHAT, "model": model}).status() for model in ("gpt2", "raw")]
        for each in (*first, other):
            await each.leave()
        await until(lambda: not app._slow.count("gpt2") and not app._slow.count("raw"))
        return statuses

    assert asyncio.run(all_of_it()) == [429, 200, 200]


@pytest.mark.usefixtures("endless")
def test_a_server_that_ends_ends_its_templates() -> None:
    app = Application(Settings({"gpt2": str(GPT2)}, template_timeout=1000))

    async def ask_and_close() -> list[Any]:
        asking = Asking(app, {**CHAT, "chat_template": FOR_EVER})
        await until(lambda: app._slow.count("gpt2") == 1)
        app._close()
        await asyncio.wait_for(asking.task, 60)
        return asking.sent

    assert asyncio.run(ask_and_close()) == []


@pytest.mark.parametrize("error", [RequestError(413, "too large"), ValueError("wrong")])
def test_nothing_is_kept_of_what_was_refused(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Not until the next garbage collection either: bodies are large, and errors cheap to make."""
    kept = []

    def refused(models: Models, body: Any) -> Any:
        large = {1, 2, 3}
        kept.append(weakref.ref(large))
        raise error.with_traceback(None)

    slow = ENDPOINTS["POST", "/v1/count"]._replace(answer=refused)
    monkeypatch.setattr("ggufbpe.server.app.ENDPOINTS", {("POST", "/refused"): slow})
    app = Application(Settings({"gpt2": str(GPT2)}))
    gc.disable()
    try:
        assert ask(app, "/refused", {}).status in (400, 413)
        assert kept[0]() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("path", "template"),
    [
        pytest.param("/apply-template", None, id="a message without a role"),
        pytest.param("/v1/chat/completions/input_tokens", None, id="the same, counted"),
        pytest.param("/tokenize", "{{ raise_exception('x') }}", id="a template that refuses"),
        pytest.param("/tokenize", "{{ 1", id="a template that cannot be read"),
    ],
)
def test_nothing_is_kept_of_a_chat_that_was_refused(
    app: Application, path: str, template: str | None
) -> None:
    message = {"only here": []} if template is None else {"role": "user", "content": "Hi", "only here": []}
    gc.collect()
    gc.disable()
    try:
        assert ask(app, path, {"messages": [message], "chat_template": template}).status == 400
        kept = [each for each in gc.get_objects() if type(each) is dict and "only here" in each]
        assert kept == [message]
    finally:
        gc.enable()


# ---- what is told ---------------------------------------------------------------------------------------


def test_metrics(caplog: pytest.LogCaptureFixture) -> None:
    app = Application(Settings({"gpt2": str(GPT2)}, logs_requests=True))
    ask(app, "/tokenize", {"content": "a secret"})
    ask(app, "/a/secret", {"content": "a secret"})
    numbers = ask(app, "/metrics").body.decode()
    assert 'ggufbpe_requests_total{endpoint="/tokenize",status="200"} 1.0' in numbers
    assert 'ggufbpe_requests_total{endpoint="(other)",status="404"} 1.0' in numbers
    assert "ggufbpe_models_open 1.0" in numbers
    ask(app, "/v1/count", {"texts": "a"})
    assert 'ggufbpe_requests_in_threads{work="ordinary"} 0.0' in ask(app, "/metrics").body.decode()
    assert "secret" not in numbers


def test_a_thread_that_is_busy_counts_after_its_client_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread cannot be stopped, so the metrics must show that it is still held."""
    finish = threading.Event()
    monkeypatch.setattr("ggufbpe.server.app._answered", lambda *_: finish.wait(60) and b"{}")
    app = Application(Settings({"gpt2": str(GPT2)}, timeout=0.05))

    def numbers() -> str:
        return app.metrics.exposition().decode()

    async def ask_once() -> None:
        asking = Asking(app, {"texts": "a"}, "/v1/count")
        try:
            assert await asking.status() == 503
            assert 'ggufbpe_requests_in_threads{work="ordinary"} 1.0' in numbers()
        finally:
            finish.set()
        await until(lambda: 'ggufbpe_requests_in_threads{work="ordinary"} 0.0' in numbers())

    asyncio.run(ask_once())


def test_logs_have_no_texts(caplog: pytest.LogCaptureFixture) -> None:
    app = Application(Settings({"gpt2": str(GPT2)}, logs_requests=True))
    with caplog.at_level("INFO", logger="ggufbpe.server"):
        ask(app, "/tokenize?q=secret", {"content": "a secret"})
        ask(app, "/secret", {"content": "a secret"})
        ask(app, "/v1/explain", {"text": "a secret", "why_not": "secret"})
        ask(app, "/v1/count", {"texts": "a", "model": "secret"})  # the only model has any name
        ask(app, "/secret")
        ask(app, "/secret", method="SECRET")
    told = [(record.getMessage(), vars(record)["told"]) for record in caplog.records]
    assert [(event, each["method"], each["path"], each["status"]) for event, each in told] == [
        ("request", "POST", "/tokenize", 200),
        ("request", "POST", "(other)", 404),
        ("request", "POST", "/v1/explain", 200),
        ("request", "POST", "/v1/count", 200),
        ("request", "GET", "(other)", 404),
        ("request", "(other)", "(other)", 404),
    ]
    assert "secret" not in repr(told)


@pytest.mark.parametrize(
    ("path", "body", "headers", "expected"),
    [
        ("/tokenize", {"content": "a"}, {}, {"model": "gpt2"}),
        ("/v1/count", {"texts": "a", "model": "raw"}, {}, {"model": "raw"}),
        ("/props?model=raw", None, {}, {"model": "raw"}),
        ("/health", None, {}, {}),
        ("/v1/diff", {"models": ["gpt2", "raw"]}, {}, {}),
        ("/v1/count", {"texts": "a", "model": "secret"}, {}, {"reason": "model not found"}),
        ("/api/show", {"model": "secret"}, {}, {"reason": "model not found"}),
        ("/tokenize", b"{secret", {}, {"reason": "the body is not JSON"}),
        ("/v1/count", {"texts": 1}, {}, {"model": "gpt2", "reason": "'texts' must be a string"}),
        (
            "/v1/fit",
            {"messages": [{"role": "secret"}]},
            {},
            {"model": "gpt2", "reason": "'limit' is required"},
        ),
        (
            "/v1/fit",
            {"messages": "secret", "limit": 9},
            {},
            {"model": "gpt2", "reason": "the chat is refused"},
        ),
        ("/apply-template", {"messages": "secret"}, {}, {"model": "gpt2", "reason": "the chat is refused"}),
        (
            "/tokenize",
            {"content": "a"},
            {"host": "secret.example"},
            {"reason": "the name in the Host header"},
        ),
        ("/tokenize", {"content": "a"}, {"origin": "http://secret"}, {"reason": "pages of this origin"}),
        ("/tokenize", {"content": "a"}, {"content-length": "99999999"}, {"reason": "the body has more than"}),
    ],
)
def test_the_log_says_which_model_answers_and_why_a_request_is_refused(
    path: str, body: Any, headers: dict[str, str], expected: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    app = Application(Settings({"gpt2": str(GPT2), "raw": str(RAW_UTF8)}, logs_requests=True))
    with caplog.at_level("INFO", logger="ggufbpe.server"):
        ask(app, path, body, headers=headers)
    [told] = [vars(record)["told"] for record in caplog.records]
    found = {name: told[name] for name in ("model", "reason") if name in told}
    assert found.keys() == expected.keys()
    assert all(found[name].startswith(value) for name, value in expected.items())
    assert "secret" not in repr(told)


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/v1/embeddings", "POST", 501),
        ("/slots", "GET", 501),
        ("/metrics", "GET", 200),
        ("/docs", "GET", 200),
    ],
)
def test_the_log_and_the_metrics_name_every_path_of_the_server(
    path: str, method: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    app = Application(Settings({"gpt2": str(GPT2)}, logs_requests=True))
    with caplog.at_level("INFO", logger="ggufbpe.server"):
        ask(app, path, method=method)
    [told] = [vars(record)["told"] for record in caplog.records]
    assert (told["path"], told["method"], told["status"]) == (path, method, status)
    assert f'requests_total{{endpoint="{path}",status="{status}"}} 1.0' in ask(app, "/metrics").body.decode()
