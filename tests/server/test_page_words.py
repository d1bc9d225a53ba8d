"""What the page of a server says of a prompt, while it waits, and if there is no answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from conftest import GPT2
from javascript_runs import debian_chromium
from playwright.sync_api import Page, Route, expect
from served_page import serving

pytestmark = pytest.mark.browser
expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with serving("-m", f"gpt2={GPT2}") as address, debian_chromium() as browser:
        page = browser.new_page()
        page.goto(address)
        yield page


@pytest.fixture
def opened(page: Page) -> Iterator[Page]:
    """The page of a server with GPT-2's vocabulary, which has no chat template."""
    page.unroute_all()
    page.goto(page.url.partition("#")[0])
    expect(page.locator(".token").first).to_be_visible()
    yield page
    page.unroute_all()


def ask_about_ids(page: Page) -> None:
    page.get_by_text("Other ids were expected").click()
    page.get_by_label("The expected ids").fill("15496 995")
    page.get_by_role("button", name="Find out why").click()


def test_a_prompt_without_a_template_says_so(opened: Page) -> None:
    opened.get_by_role("tab", name="Chat").click()
    expect(opened.locator("#chat .notice")).to_have_text(
        "The model has no chat template. Like llama-server, this uses ChatML, whose markers may be plain text to the "
        "model."
    )


def test_what_is_waited_for_is_said(opened: Page) -> None:
    """The answers come when the page has said so."""
    waiting: list[Route] = []
    opened.route("**/v1/*", lambda route: waiting.append(route))
    ask_about_ids(opened)
    answer = opened.locator("#ids-answer")
    expect(answer).to_contain_text("Looking for settings of the model that would give these ids.")
    opened.get_by_role("textbox", name="Text").fill("abc")
    expect(opened.locator("#status")).to_have_text('Waiting for the tokens of "gpt2" …')
    for route in waiting:
        route.continue_()
    expect(opened.locator(".view .stats")).to_contain_text("3 characters")
    expect(opened.locator("#status")).to_be_empty()
    expect(answer).to_have_text("The input changed before there was an answer. Ask again.")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"status": 200, "body": '{"match": fal'},
            "The connection to the server broke off before its answer",
        ),
        ({"status": 502, "body": "<html>"}, "The server responded with status 502."),
        (None, "The server does not respond."),
    ],
)
def test_a_request_that_fails_is_said(given: dict[str, Any] | None, words: str, opened: Page) -> None:
    fail = lambda route: route.fulfill(**given) if given else route.abort()  # noqa: E731
    opened.route("**/v1/diagnose", fail)
    ask_about_ids(opened)
    expect(opened.locator("#ids-answer .bad")).to_contain_text(words)
    opened.route("**/v1/tokens", fail)
    opened.get_by_role("textbox", name="Text").fill("abc")
    expect(opened.locator("#status.bad")).to_contain_text(words)


def test_ids_that_were_cut_are_of_no_step(opened: Page) -> None:
    """The finding comes first, and then where the ids end."""
    ask_about_ids(opened)
    heads = opened.locator("#ids-answer h3")
    expect(heads).to_have_text(["Possible causes", "First difference"])
    expect(opened.locator("#ids-answer li").first).to_contain_text("the given ids are the first 2 of")


def test_nothing_touches_or_stands_empty(opened: Page) -> None:
    opened.get_by_text("Other ids were expected").click()
    gaps = opened.evaluate(
        """() => {
            const box = (chosen) => document.querySelector(chosen).getBoundingClientRect();
            return [
                box("#ids-form button").top - box("#expected").bottom,
                box("#input").bottom - box("#panel-text").bottom,
            ];
        }"""
    )
    assert gaps[0] >= 4
    assert gaps[1] <= 20


def test_labels_are_in_sentence_case(opened: Page) -> None:
    opened.locator(".token").first.click()
    expect(opened.locator("#details .facts")).to_be_visible()
    labels = opened.evaluate(
        """() => Array.from(document.querySelectorAll("label, button, .button, summary, option, dt, th, legend"))
            .filter((one) => !one.closest("#models, #messages, #reference"))
            .map((one) => one.textContent.trim())"""
    )
    assert len(labels) > 30
    assert [label for label in labels if label[:1] != label[:1].upper()] == []
