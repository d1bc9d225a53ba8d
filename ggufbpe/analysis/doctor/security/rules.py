"""The rules of the audit: how grave each finding is, what it says, and why it matters.

An *error* is what only an attack does; a *warning* changes what the model is told, or when, in a way that no known
template does; a *note* is normal in many templates, and good to know.
"""

from __future__ import annotations

from typing import NamedTuple

from ..finding import Finding, Where
from .template_source import TemplateSource


class Rule(NamedTuple):
    """What all findings of one kind share."""

    severity: str
    what: str
    why: str


_PROGRAMS = (
    "llama.cpp's engine has no such objects, but programs that run templates with jinja2 outside of its sandbox do "
    "(CVE-2024-34359, CVE-2026-5760): there, opening the model runs the code."
)
_TOLD = "The model follows it as if you or the publisher had written it, and you do not see it."

RULES: dict[str, Rule] = {
    "sandbox_escape": Rule(
        "error", "The chat template reaches for the insides of the program that runs it.", _PROGRAMS
    ),
    "forbidden_call": Rule(
        "error", "The chat template calls a function that runs programs or opens files.", _PROGRAMS
    ),
    "outside_file": Rule(
        "error",
        "The chat template reads another file.",
        "No template of a model needs one. llama.cpp refuses it; another program may put your file in the prompt.",
    ),
    "unknown_call": Rule(
        "warning",
        "The chat template calls what neither llama.cpp nor transformers has.",
        "It fails in both; in another program, it may do anything.",
    ),
    "foreign_object": Rule(
        "warning",
        "The chat template uses an object of web servers or of jinja2 itself.",
        "Chats do not need it. It is the usual beginning of an attack on the program that runs the template.",
    ),
    "date_condition": Rule(
        "error",
        "The chat template changes with the date.",
        "A prompt that was harmless when you looked at it becomes another one on a certain day.",
    ),
    "random_choice": Rule(
        "warning",
        "The chat template decides by chance.",
        "What you tried is not what others get, and a rare prompt stays unseen.",
    ),
    "content_condition": Rule(
        "warning",
        "The chat template looks for words in messages.",
        "Chats with these words get another prompt than those that you tried.",
    ),
    "length_condition": Rule(
        "warning",
        "The chat template changes when a chat or a message has a certain length.",
        "What it adds then is not in the prompts of the short chats that one tries.",
    ),
    "content_replaced": Rule(
        "warning",
        "The chat template changes the words of messages.",
        "The model reads something else than was written.",
    ),
    "control_from_content": Rule(
        "error",
        "The chat template makes control tokens of the text of messages.",
        "Harmless text becomes the end of a message, or a message of another role, even in programs that take care "
        "that control tokens in messages stay plain text.",
    ),
    "content_as_control": Rule(
        "note",
        "Control tokens in messages take effect.",
        "llama-server encodes the whole prompt with special tokens, so that a message can end itself and begin "
        "another. Every template does so that does not remove them. Remove them from text that you do not trust.",
    ),
    "role_not_checked": Rule(
        "note",
        "The chat template writes any role into the prompt.",
        "Whoever sets the role of a message can write control tokens with it. Check roles that come from others.",
    ),
    "role_confused": Rule(
        "error",
        "The chat template gives messages to another role.",
        "The model obeys a system message more than a user's: whoever writes the message gains its rights.",
    ),
    "text_lost": Rule(
        "warning",
        "The chat template leaves out messages.",
        "The model does not see them, so that what you told it does not hold.",
    ),
    "no_system_role": Rule(
        "note",
        "The chat template has no place for a system message.",
        "llama.cpp detects this and puts the text before the question. Programs that run the template themselves "
        "lose it.",
    ),
    "order_changed": Rule(
        "warning",
        "The chat template changes the order of messages.",
        "Answers seem to be given to other questions.",
    ),
    "hidden_instruction": Rule("error", "The chat template has a hidden instruction for the model.", _TOLD),
    "unfamiliar_text": Rule(
        "warning",
        "The chat template has a text that llama.cpp's template of its family does not have.",
        _TOLD,
    ),
    "own_text": Rule(
        "note",
        "The chat template writes a text of its own.",
        "It is part of each prompt in which the template writes it. Read it.",
    ),
    "encoded_text": Rule(
        "warning",
        "The chat template has a text that cannot be read, such as Base64.",
        "Models can read it, and you cannot.",
    ),
    "web_address": Rule(
        "warning",
        "The chat template writes a web address.",
        "A model that repeats it, or a program that loads it, tells its owner of the chat.",
    ),
    "web_code": Rule(
        "error",
        "There is code for browsers in it.",
        "A program that shows it on a page without escaping runs it.",
    ),
    "answer_begun": Rule(
        "warning",
        "The chat template begins the model's answer.",
        "A model goes on as an answer begins: one that agrees already gives what it would have refused.",
    ),
    "turn_invented": Rule(
        "warning",
        "The chat template writes messages that nobody sent.",
        "The model takes them for yours, or for answers that it gave.",
    ),
    "unseen_character": Rule(
        "error",
        "There are invisible characters in it, or characters that change the direction of text.",
        "It reads otherwise than it is shown, to the model and to the program.",
    ),
    "odd_character": Rule(
        "note",
        "There are characters in it that cannot be seen.",
        "Joiners of emoji and of some scripts are normal; elsewhere they make equal texts differ.",
    ),
    "mixed_scripts": Rule(
        "warning",
        "A word is made of letters of two alphabets.",
        "It looks like another word, and is not.",
    ),
    "terminal_escape": Rule(
        "error",
        "There are control characters for terminals in it.",
        "A program that prints it lets it change your terminal: hide lines, set the title, answer in your name.",
    ),
    "template_unreadable": Rule(
        "warning",
        "The chat template cannot be parsed, so that only its text was checked.",
        "llama.cpp does not start with it. Another program may, and then it does what nobody has looked at.",
    ),
    "template_large": Rule(
        "error",
        "The chat template is so large that not all of it was checked.",
        "No known template has half of its size. What nobody reads can say anything.",
    ),
    "template_slow": Rule(
        "error",
        "The chat template takes so long to check that the audit stopped.",
        "Known templates take much less. What was not checked can do anything.",
    ),
    "template_runaway": Rule(
        "error",
        "The chat template does not end, or writes without end.",
        "One request keeps a server busy, or takes all of its memory.",
    ),
    "steep_growth": Rule(
        "warning",
        "The prompts or the work of the chat template grow much faster than the chat.",
        "A long chat fills the context or keeps the server busy.",
    ),
    "not_run": Rule(
        "note",
        "The chat template was not run with all sample chats.",
        "It refused them, or took too long. What it does with such chats was only read from its source.",
    ),
    "nul_character": Rule(
        "error",
        "There is a NUL in the chat template.",
        "llama.cpp reads what stands before it, and another program all of it: one template that you look at, and one "
        "that runs.",
    ),
    "list_large": Rule(
        "warning",
        "A list of strings is so long that only its beginning was checked.",
        "No list but those of tokens needs so many. What nobody reads can say anything.",
    ),
    "not_utf8": Rule(
        "error",
        "There are bytes in it that are not UTF-8.",
        "Some programs refuse it, some leave the bytes out, llama.cpp takes them as they are: each sees another text.",
    ),
    "control_word": Rule(
        "warning",
        "A control token has the text of an ordinary word.",
        "In a prompt, the word becomes a token that the model was not shown as text, and that is not printed.",
    ),
    "token_lookalike": Rule(
        "error",
        "Two special tokens look the same.",
        "One of them may be put in the place of the other, where nobody sees it.",
    ),
}

_FIX = "do not use this template: take the publisher's, or one of llama.cpp's (known:NAME)"


def template_finding(
    source: TemplateSource,
    id: str,
    position: int | None,
    evidence: str,
    severity: str = "",
    fix: str = "",
) -> Finding:
    """A finding about a template at a position of its source, None for the whole."""
    rule = RULES[id]
    line, column = (None, None) if position is None else source.place(position)
    grave = severity or rule.severity
    return Finding(
        grave,
        id,
        rule.what,
        rule.why,
        fix or (_FIX if grave != "note" else "nothing to do"),
        Where(source.key, line=line, column=column),
        {"template": source.name},
        evidence,
    )
