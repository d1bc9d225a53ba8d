"""The page without a server, in Debian's Chromium: models are opened in the browser, and nothing else is asked for."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import GPT2, UNIGRAM
from dropped_files import drop
from javascript_runs import built_package, debian_chromium
from playwright.sync_api import Page, expect

from ggufbpe import Tokenizer
from ggufbpe.__main__ import main
from ggufbpe.server.standalone_page import write_standalone_page

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")]
expect.set_options(timeout=20_000)

TEXT = "Hello world! naïve 者\n1234"


class Site(SimpleHTTPRequestHandler):
    referrers: ClassVar[dict[str, str | None]] = {}  # path -> where the last request says that it comes from

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""

    def do_GET(self) -> None:
        self.referrers[self.path] = self.headers["Referer"]
        if self.path == "/silent.gguf":
            threading.Event().wait()
        super().do_GET()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the static site."""
    built_package()
    folder = tmp_path_factory.mktemp("site")
    write_standalone_page(folder)
    shutil.copyfile(UNIGRAM, folder / "other.gguf")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, directory=str(folder)))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with debian_chromium() as browser:
        yield browser


@pytest.fixture
def page(site: str, browser: Any) -> Iterator[Page]:
    """The page with TEXT; nothing may stand in the browser's console at the end, nor be asked of another server."""
    said: list[str] = []
    context = browser.new_context()
    page: Page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: request.url.startswith(site) or said.append(request.url))
    page.on("request", lambda request: request.method == "GET" or said.append(request.method))
    page.goto(f"{site}/")
    expect(page.locator(".token").first).to_be_visible()
    page.get_by_role("textbox", name="Text").fill(TEXT)
    expect(page.locator(".view .stats")).to_contain_text(f"{len(TEXT)} characters")
    yield page
    context.close()
    assert said == []


def shown_ids(page: Page, view: int = 0) -> list[int]:
    tokens = page.locator(".view").nth(view).locator(".token")
    return [int(token.get_attribute("data-id") or -1) for token in tokens.all()]


def expect_ids(page: Page, ids: list[int], view: int = 0) -> None:
    expect(page.locator(".view").nth(view).locator(".count")).to_have_text(f"{len(ids)} tokens")
    assert shown_ids(page, view) == ids


def test_tokens_of_the_first_model(page: Page) -> None:
    expect_ids(page, Tokenizer.from_gguf(GPT2).encode(TEXT))
    expect(page.get_by_text("by models that you open here")).to_be_visible()
    expect(page.get_by_text("by the models of this server")).to_be_hidden()


def test_a_model_is_opened_from_a_file_and_compared(page: Page) -> None:
    page.get_by_label("Open a model").set_input_files(UNIGRAM)
    expect(page.locator(".view h2")).to_have_text(["gpt2", "unigram"])
    expect_ids(page, Tokenizer.from_gguf(GPT2).encode(TEXT))
    expect_ids(page, Tokenizer.from_gguf(UNIGRAM).encode(TEXT), view=1)
    expect(page.locator("#parting")).to_contain_text("The vocabularies are different")


@pytest.mark.parametrize("name", ["dropped.gguf", "dropped"])
def test_a_model_is_dropped(name: str, page: Page) -> None:
    """Its first bytes tell, not its suffix."""
    drop(page, {name: UNIGRAM.read_bytes()})
    expect(page.locator(".view h2")).to_have_text(["gpt2", "dropped"])
    expect(page.get_by_role("textbox", name="Text")).to_have_value(TEXT)


def test_a_model_whose_name_is_blank_is_called_model(page: Page) -> None:
    drop(page, {" .gguf": UNIGRAM.read_bytes()})
    expect(page.locator(".view h2")).to_have_text(["gpt2", "model"])


def test_several_files_are_dropped(page: Page) -> None:
    model = UNIGRAM.read_bytes()
    texts = {"a.txt": b"first", "b.txt": b"second"}
    drop(page, texts | {f"{name}.gguf": model for name in "vwxyz"})
    expect(page.locator("#status")).to_have_text(
        'Of 2 texts, one is taken: a.txt.\nAt most 4 models are opened at once. Not opened: "z.gguf".'
    )
    expect(page.locator(".view h2")).to_have_text(["gpt2", "v", "w", "y"])
    expect(page.get_by_role("textbox", name="Text")).to_have_value("first")


def test_the_same_file_is_opened_once(page: Page, tmp_path: Path) -> None:
    choose = page.get_by_label("Open a model")
    choose.set_input_files(UNIGRAM)
    expect(page.locator(".view h2")).to_have_text(["gpt2", "unigram"])
    page.get_by_role("checkbox", name="unigram").uncheck()
    expect(page.locator(".view h2")).to_have_text(["gpt2"])
    choose.set_input_files(UNIGRAM)
    expect(page.locator(".view h2")).to_have_text(["gpt2", "unigram"])
    other = tmp_path / UNIGRAM.name
    other.write_bytes(UNIGRAM.read_bytes() + bytes(1))
    choose.set_input_files(other)
    expect(page.locator(".view h2")).to_have_text(["gpt2", "unigram", "unigram (2)"])


def test_a_model_is_closed(page: Page) -> None:
    choose = page.get_by_label("Open a model")
    heads = page.locator(".view h2")
    expect(page.get_by_role("button", name="Close")).to_have_count(0)  # one model is always open
    choose.set_input_files(UNIGRAM)
    expect(heads).to_have_text(["gpt2", "unigram"])
    page.get_by_role("button", name="Close gpt2").click()
    expect(heads).to_have_text(["unigram"])
    expect(page.get_by_role("checkbox", name="gpt2")).to_have_count(0)
    expect(page.get_by_role("checkbox", name="unigram")).to_be_focused()
    expect(page.get_by_role("button", name="Close")).to_have_count(0)
    expect_ids(page, Tokenizer.from_gguf(UNIGRAM).encode(TEXT))
    choose.set_input_files(GPT2)
    expect(heads).to_have_text(["unigram", "gpt2"])
    page.get_by_role("button", name="Close unigram").click()
    choose.set_input_files(UNIGRAM)  # is read again
    expect(heads).to_have_text(["gpt2", "unigram"])
    expect_ids(page, Tokenizer.from_gguf(UNIGRAM).encode(TEXT), view=1)


def test_a_reload_says_which_models_are_missing_until_they_are_opened(page: Page, tmp_path: Path) -> None:
    choose = page.get_by_label("Open a model")
    choose.set_input_files(UNIGRAM)
    expect(page.locator(".view h2")).to_have_text(["gpt2", "unigram"])
    page.get_by_role("checkbox", name="gpt2").uncheck()
    expect(page.locator(".view h2")).to_have_text(["unigram"])
    page.reload()
    status = page.locator("#status")
    missing = (
        'This link is for the model "unigram", which is not open here: open its file to select it. '
        'The tokens shown are those of "gpt2".'
    )
    expect(status).to_have_text(missing)
    expect(page.locator(".view h2")).to_have_text(["gpt2"])
    page.get_by_role("textbox", name="Text").fill("abc")
    expect(page.locator(".view .stats")).to_contain_text("3 characters")
    page.reload()
    expect(page.locator(".view .stats")).to_contain_text("3 characters")
    expect(status).to_have_text(missing)
    other = shutil.copyfile(UNIGRAM, tmp_path / "other.gguf")
    choose.set_input_files(other)
    expect(page.locator(".view h2")).to_have_text(["gpt2", "other"])
    expect(status).to_contain_text('the model "unigram", which is not open')
    choose.set_input_files(UNIGRAM)
    expect(page.locator(".view h2")).to_have_text(["gpt2", "other", "unigram"])
    expect(status).to_be_empty()


def test_a_model_is_opened_from_an_address(page: Page, site: str) -> None:
    page.get_by_label("or its address").fill(f"{site}/other.gguf")
    page.get_by_role("button", name="Open", exact=True).click()
    expect(page.locator(".view h2")).to_have_text(["gpt2", "other"])
    expect_ids(page, Tokenizer.from_gguf(UNIGRAM).encode(TEXT), view=1)
    assert Site.referrers["/other.gguf"] is None  # an own policy: the page's is not that of its worker


def test_a_file_that_is_no_model_is_refused_in_words(page: Page, tmp_path: Path) -> None:
    """The words stay while the text changes, until another model is opened."""
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"Hello")
    choose = page.get_by_label("Open a model")
    refused = page.locator("#openings .bad")
    choose.set_input_files(wrong)
    expect(refused).to_have_text(re.compile(r"^wrong\.gguf: .+"))
    page.get_by_role("textbox", name="Text").fill("abc")
    expect(page.locator(".view .stats")).to_contain_text("3 characters")
    choose.set_input_files(UNIGRAM)
    expect(page.locator(".view h2")).to_have_text(["gpt2", "unigram"])
    expect(page.locator("#openings")).to_be_empty()
    drop(page, {"wrong.gguf": b"Hello", "right.gguf": UNIGRAM.read_bytes()})
    expect(page.locator(".view h2")).to_have_text(["gpt2", "unigram", "right"])
    expect(refused).to_have_count(1)  # of several, one that is opened hides none of the others
    shutil.copyfile(UNIGRAM, wrong)
    choose.set_input_files(wrong)  # the same name again
    expect(page.locator(".view h2").last).to_have_text("wrong")
    expect(page.locator("#openings")).to_be_empty()


def test_a_model_that_lacks_a_key_is_refused_with_the_key(page: Page, tmp_path: Path) -> None:
    lacking = tmp_path / "lacking.gguf"
    lacking.write_bytes(GPT2.read_bytes().replace(b"tokenizer.ggml.merges", b"tokenizer.ggml.nobody"))
    page.get_by_label("Open a model").set_input_files(lacking)
    expect(page.locator("#openings .bad")).to_have_text(
        "lacking.gguf: key 'tokenizer.ggml.merges': the key is missing"
    )


def test_a_fifth_model_replaces_the_last_one(page: Page) -> None:
    """A model that is not shown for want of room can be closed, and its button looks so."""
    drop(page, {f"{name}.gguf": UNIGRAM.read_bytes() for name in "vwxy"})
    expect(page.locator(".view h2")).to_have_text(["gpt2", "v", "w", "y"])
    expect(page.get_by_label("Compared with")).to_have_value("gpt2")
    hidden = page.locator("#models > span").nth(3)
    expect(hidden.get_by_role("checkbox", name="x")).to_be_disabled()
    expect(hidden.locator("label")).to_have_css("opacity", "0.6")
    expect(hidden).to_have_css("opacity", "1")
    page.get_by_role("button", name="Close x").click()
    expect(page.locator("#models > span")).to_have_count(4)


def test_an_address_without_a_model_is_named_once(page: Page, site: str) -> None:
    page.get_by_label("or its address").fill("missing.gguf")
    page.get_by_role("button", name="Open", exact=True).click()
    expect(page.locator("#openings .bad")).to_have_text(
        f"{site}/missing.gguf: the server responded with status 404"
    )


def test_an_address_with_a_password_is_refused_without_it(page: Page) -> None:
    page.get_by_label("or its address").fill("http://user:secret@localhost/a.gguf")
    page.get_by_role("button", name="Open", exact=True).click()
    expect(page.locator("#openings .bad")).to_have_text(
        "http://localhost/a.gguf: An address with a user name or a password cannot be opened here."
    )


@pytest.mark.parametrize("address", ["file:///a.gguf", r"C:\a.gguf", "data:,GGUF"])
def test_an_address_that_no_browser_reads_is_refused_in_words(address: str, page: Page) -> None:
    page.get_by_label("or its address").fill(address)
    page.get_by_role("button", name="Open", exact=True).click()
    expect(page.locator("#openings .bad")).to_have_text(
        f'{address}: Only http and https addresses can be opened here. For a file, use "Open a model".'
    )


def test_a_long_name_makes_a_narrow_page_no_wider(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    names = ["my_company_mistral_7b_v0_3_finetuned_on_support_tickets_q4_k_m", "y" * 200]
    drop(page, {f"{name}.gguf": UNIGRAM.read_bytes() for name in names})
    expect(page.locator(".view h2")).to_have_text(["gpt2", *names])
    page.locator(".view").last.locator(".token").first.click()
    expect(page.locator("#details")).to_contain_text("Token 1 of")
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390


def test_an_address_that_does_not_answer_holds_up_nothing(page: Page, site: str) -> None:
    page.get_by_label("or its address").fill(f"{site}/silent.gguf")
    page.get_by_role("button", name="Open", exact=True).click()
    page.get_by_role("textbox", name="Text").fill("abc")
    expect(page.locator(".view .stats")).to_contain_text("3 characters")
    page.get_by_label("Open a model").set_input_files(UNIGRAM)
    expect(page.locator(".view h2")).to_have_text(["gpt2", "unigram"])
    expect(page.locator("#openings")).to_have_text(f"Opening {site}/silent.gguf …")


def test_ids_become_text(page: Page) -> None:
    page.get_by_role("tab", name="Ids").click()
    page.get_by_label("Ids, separated by anything").fill("15496, 995")
    expect(page.locator("#text-of-ids")).to_have_text("Text: Hello world")
    page.get_by_label("Ids, separated by anything").fill("15496, 99999")
    expect(page.locator("#status")).to_contain_text("Token id 99999 is out of range")


def test_the_vocabulary_is_searched(page: Page) -> None:
    page.get_by_text("Search the vocabulary").click()
    page.get_by_label("Part of a token, or an id").fill("Hello")
    page.get_by_role("button", name="Search").click()
    answer = page.locator("#vocabulary-answer")
    expect(answer.locator(".id").first).to_have_text("15496")
    pieces = Tokenizer.from_gguf(GPT2).token_bytes
    count = sum(b"Hello" in piece for piece in pieces)
    expect(answer).to_contain_text(f"{count} tokens")


def test_a_worker_opens_models_and_encodes(page: Page) -> None:
    assert [worker.url.rpartition("/")[2] for worker in page.workers] == ["answers.js"]
    asked = "() => performance.getEntriesByType('resource').map((entry) => entry.name).join()"
    assert ".wasm" not in page.evaluate(asked)
    assert "gpt2.gguf" in page.workers[0].evaluate(asked)


def test_a_question_that_nobody_waits_for_is_not_sent(page: Page) -> None:
    sent = page.evaluate(
        """async () => {
            const { ask } = await import("./server.js");
            const sent = [];
            const post = Worker.prototype.postMessage;
            Worker.prototype.postMessage = function (request) {
                sent.push(request.body.text);
                post.call(this, request);
            };
            const question = (text) => ({ model: "gpt2", text, add_special: false, parse_special: false });
            const early = new AbortController();
            const all = [
                ask("v1/tokens", question("first")),
                ask("v1/tokens", question("second"), early.signal),
                ask("v1/tokens", question("third")),
            ];
            early.abort();
            const outcomes = (await Promise.allSettled(all)).map(({ status }) => status);
            Worker.prototype.postMessage = post;
            return { sent, outcomes };
        }"""
    )
    assert sent == {"sent": ["first", "third"], "outcomes": ["fulfilled", "rejected", "fulfilled"]}


def test_a_worker_that_cannot_be_loaded_leaves_nothing_waiting(site: str, browser: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.route("**/answers.js", lambda route: route.abort())
    page.goto(f"{site}/")
    expect(page.locator("#status")).to_have_text("The worker of this page cannot be loaded.")
    page.get_by_label("Open a model").set_input_files(UNIGRAM)
    expect(page.locator("#openings .bad")).to_have_text(
        "unigram.gguf: The worker of this page cannot be loaded."
    )
    context.close()


def test_what_needs_a_server_says_so(page: Page) -> None:
    page.locator(".token").first.click()
    details = page.locator("#details")
    expect(details).to_contain_text("How a token came about is shown by the page of ggufbpe serve.")
    page.get_by_role("tab", name="Chat").click()
    panel = page.get_by_role("tabpanel", name="Chat")
    expect(panel.locator(".notice")).to_contain_text("Chats need a server, which this page does not have.")
    expect(panel.get_by_role("textbox")).to_have_count(0)
    expect(page.locator("#output")).to_be_hidden()  # the tokens are of the text
    expect(page.locator("#status")).to_be_empty()
    drop(page, {"a.txt": b"first"})
    expect(page.get_by_role("textbox", name="Text")).to_have_value("first")
    expect(page.locator(".view .stats")).to_contain_text("5 characters")


def test_questions_that_need_a_server_are_not_offered(page: Page) -> None:
    expect(page.get_by_text("Search the vocabulary")).to_be_visible()
    expect(page.get_by_text("Why is a piece not used?")).to_be_hidden()
    expect(page.get_by_text("Other ids were expected")).to_be_hidden()
    expect(page.get_by_role("link", name="API")).to_be_hidden()


def test_accessibility(page: Page) -> None:
    page.get_by_label("Open a model").set_input_files(UNIGRAM)
    expect(page.get_by_role("button", name="Close")).to_have_count(2)
    assert Axe().run(page).response["violations"] == []


def test_files_are_listed(tmp_path: Path, site: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["page", "-o", str(tmp_path / "site"), "--json"]) == 0
    files = json.loads(capsysbinary.readouterr().out)["files"]
    assert {"index.html", "gpt2.gguf", "ggufbpe/index.js", "ggufbpe/ggufbpe.wasm"} <= set(files)
    assert all((tmp_path / "site" / name).is_file() for name in files)
