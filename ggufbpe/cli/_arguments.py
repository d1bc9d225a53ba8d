"""Arguments that several commands share, and what llama-tokenize parses differently from argparse."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NoReturn

from .._util.errors import printable
from .._util.llama_cpp_states import FOLLOWED, STATES
from .._util.shell import shell_word
from . import _output
from ._help import HelpFormatter, help_texts

MODEL_VARIABLE = "GGUFBPE_MODEL"
_MODEL_HELP = """\
Every command that opens a model takes these. A model is a .gguf file, a name such as ollama:gemma3 or \
hf:OWNER/REPO:Q4_K_M, or an address (docs/names.md). A tokenizer.json, or a folder with one, is opened as \
`ggufbpe import` would convert it."""
_A_MODEL = "a .gguf file, or a model's name, such as ollama:gemma3 or hf:OWNER/REPO:Q4_K_M"
_NAMED_MODEL = f"default: {MODEL_VARIABLE} in the environment"
_DEFAULT_MODEL = f"{_NAMED_MODEL}, or the GPT-2 vocabulary that comes with ggufbpe"


class UsageError(Exception):
    """Arguments that are wrong, or do not go together."""


class _Once(argparse.Action):
    """What flags with one value do: a second one is taken in place of the first, as in llama.cpp, and that is said."""

    _is_given = False

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if self._is_given and option_string is not None and values != getattr(namespace, self.dest):
            flag = "/".join(self.option_strings)
            _output.warning(f"{flag} is given more than once; the last one counts: {printable(str(values))}")
        self._is_given = True
        setattr(namespace, self.dest, values)


class _HelpModel(argparse.Action):
    """Shows the flags that all commands have which open a model, and exits."""

    def __init__(self, option_strings: list[str], dest: str, **_: Any) -> None:
        text = "show the flags of models: names, the network, other values of keys, builds of llama.cpp"
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=text)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        assert isinstance(parser, Parser)
        _output.write(parser.model_help().encode())
        parser.exit()


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are a `UsageError` and whose help goes where all output goes."""

    def __init__(self, prog: str, usage: str | None = None) -> None:
        super().__init__(
            prog, usage, formatter_class=HelpFormatter, allow_abbrev=False, conflict_handler="resolve"
        )
        for name in (None, "store"):
            self.register("action", name, _Once)
        self.add_switch("--debug", help="show the full traceback of an error")
        self.add_switch("-q", "--quiet", help="show no notes and warnings, only errors")

        self.ignored: Mapping[str, int] = {}  # flags without a meaning here, and how many values each takes
        # flags of llama.cpp that this command lacks, and what to do instead
        self.instead: Mapping[str, str] = {}
        self._of_models: list[argparse.Action] = []  # flags that --help-model shows, not --help

    def add_switch(self, *flags: str, help: str) -> None:
        """Add a flag without a value: True if it is given."""
        self.add_argument(*flags, action="store_true", help=help)

    def add_number(self, *flags: str, **options: Any) -> None:
        """Add a flag whose value is a whole number."""
        settings: dict[str, Any] = {"type": int, "metavar": "N", **options}
        self.add_argument(*flags, **settings)

    def add_repeated(self, *flags: str, **options: Any) -> None:
        """Add a flag that may be given several times: a list of its values."""
        self.add_argument(*flags, action="append", default=[], **options)

    def add_model_flag(self, *flags: str, **options: Any) -> None:
        """Add a flag that all commands have which open a model; --help-model shows it."""
        if not self._of_models:
            self.add_argument("--help-model", action=_HelpModel)
        self._of_models.append(self.add_argument(*flags, **options))

    # ---- flags of several commands ----

    def add_model(self) -> None:
        """The model of a command whose arguments are something else: texts, ids, files."""
        self.add_argument("-m", "--model", metavar="MODEL", help=f"{_A_MODEL} ({_DEFAULT_MODEL})")
        self.add_names("store")
        self.add_override_kv()

    def add_models(self, more: str) -> None:
        """Add the option -m for a command that accepts several models."""
        self.add_repeated("-m", "--model", metavar="MODEL", help=f"{_A_MODEL} ({_DEFAULT_MODEL}); {more}")
        self.add_names("append")
        self.add_override_kv()

    def add_model_first(self, *, has_default: bool) -> None:
        """The model of a command that takes nothing else: the first argument, or -m; GPT-2's may be the default."""
        self.add_argument("path", nargs="?", metavar="MODEL", help=_A_MODEL)
        default = _DEFAULT_MODEL if has_default else _NAMED_MODEL
        self.add_argument("-m", "--model", metavar="MODEL", help=f"the same ({default})")
        self.add_names("store")

    def add_names(self, action: str) -> None:
        """What goes with a model that is given by a name: llama.cpp's flags for it, and how the network is used.

        `action` is "append" where several models may be named.
        """
        add = self.add_model_flag
        add(
            "-hf",
            "-hfr",
            "--hf-repo",
            action=action,
            metavar="OWNER/REPO[:QUANT]",
            help="a model on the Hugging Face hub, as in llama.cpp; the same as hf:OWNER/REPO[:QUANT]",
        )
        add(
            "-hff", "--hf-file", metavar="FILE", help="the file in that repository, instead of a quantization"
        )
        add("-mu", "--model-url", action=action, metavar="URL", help="a model at a URL")
        add(
            "--offline",
            action="store_true",
            help="do not use the network, even if a model is not on this machine",
        )
        add("--refresh", action="store_true", help="fetch the metadata of remote models again")

    def add_override_kv(self, meaning: str = "") -> None:
        """`--override-kv`; with a `meaning` of its own, it is in the help of the command."""
        add = self.add_argument if meaning else self.add_model_flag
        meaning = meaning or "override values of keys in the file, as in llama.cpp"
        add(
            "--override-kv",
            action="append",
            default=[],
            metavar="KEY=TYPE:VALUE,...",
            help=f"{meaning}; types: int, float, bool, str. Example: tokenizer.ggml.pre=str:llama-bpe",
        )

    def add_llama_cpp(self) -> None:
        """`--llama-cpp`, whose value `Tokenizer.from_gguf` takes."""
        self.add_model_flag(
            "--llama-cpp",
            metavar="BUILD",
            choices=STATES,
            default=FOLLOWED,
            help=f"give the ids of this build of llama.cpp: {', '.join(STATES)} (default: {FOLLOWED})",
        )

    def add_text(self) -> None:
        """The text of a command that takes one."""
        self.add_argument("-p", "--prompt", metavar="TEXT", help="the text")
        self.add_sources("the text")

    def add_sources(self, what: str) -> None:
        self.add_argument(
            "-f", "--file", metavar="PATH", help=f"read {what} from a file; - is standard input"
        )
        self.add_stdin(f"read {what} from")

    def add_stdin(self, what: str) -> None:
        """`--stdin`; see `_input.settle_stdin`."""
        self.add_switch(
            "--stdin",
            help=f"{what} standard input; the default if something is piped in and no other input is given",
        )

    def add_special_flags(self) -> None:
        self.add_switch("--no-bos", help="do not add BOS, even if the model asks for it")
        self.instead = {**self.instead, "--no-add-special": "for that, give --no-bos"}
        self.add_parse_special()

    def add_parse_special(self) -> None:
        self.add_argument(
            "--no-parse-special",
            dest="parse_special",
            action="store_false",
            help="treat the text of special tokens as plain text",
        )

    def add_color(self, what: str = "colour") -> None:
        """`--color`; see `_output.use_color`."""
        self.add_argument(
            "--color", choices=("auto", "always", "never"), default="auto", help=f"{what} (default: auto)"
        )

    # ---- help ----

    def format_help(self) -> str:
        """The help of the command, without the flags of models."""
        if command := self.prog.partition(" ")[2]:
            self.description, self.epilog = help_texts(command)
        helps = [action.help for action in self._of_models]
        for action in self._of_models:
            action.help = argparse.SUPPRESS
        try:
            return super().format_help()
        finally:
            for action, text in zip(self._of_models, helps):
                action.help = text

    def model_help(self) -> str:
        """The help of the flags of models."""
        formatter = self._get_formatter()
        formatter.add_text(_MODEL_HELP)
        formatter.start_section("flags of models")
        formatter.add_arguments(self._of_models)
        formatter.end_section()
        return formatter.format_help()

    def flags(self) -> dict[str, argparse.Action]:
        """All flags, each with what it does."""
        return self._option_string_actions

    def arguments(self) -> list[argparse.Action]:
        """All arguments, with flags and without."""
        return self._actions

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")

    def print_help(self, file: Any = None) -> None:
        _output.write(self.format_help().encode())


_TWO_DASHES = "\0--"  # stands for the value "--", which argparse before Python 3.13 drops


def parse_arguments(parser: Parser, arguments: list[str]) -> argparse.Namespace:
    """`arguments`, read the way llama.cpp reads them."""
    parsed, others = parser.parse_known_args(normalized(parser, arguments))
    if others:
        raise UsageError(f"{_why_not(others, parsed, parser)} (see {parser.prog} --help)")
    for name, value in vars(parsed).items():
        if value == _TWO_DASHES:
            setattr(parsed, name, "--")
    return parsed


def _why_not(others: list[str], parsed: argparse.Namespace, parser: Parser) -> str:
    """What is wrong with arguments that a command does not take."""
    command = parser.prog.rpartition(" ")[2]
    text, path = getattr(parsed, "text", None), getattr(parsed, "path", None)
    flag = next((each for each in others if each.startswith("-") and each != "--"), None)
    if flag is not None:
        from difflib import get_close_matches

        near = get_close_matches(flag.partition("=")[0], parser.flags(), n=1, cutoff=0.75)
        like = f"; did you mean {near[0]}?" if near else ""
        is_text = "-p" in parser.flags() and not flag.startswith("--")  # as "-5" or "-> x" may be
        as_text = f"; as a text: -p {shell_word(flag)}" if is_text else ""
        return f"there is no flag {printable(flag)}{like or as_text}"
    if isinstance(path, str):
        return f"one model only, not {printable(path)} and {printable(others[0])}"
    if "-m" in parser.flags():
        before = (getattr(parsed, each.dest) for each in parser.arguments() if not each.option_strings)
        given = [*(each for each in before if isinstance(each, str)), *others]
        require_no_models(given, command, parsed, "a text" if isinstance(text, str) else "")
    if isinstance(text, str):
        whole = " ".join([text, *others])
        return f"one text only, not {len(others) + 1}; between quotation marks it is one: {shell_word(whole)}"
    if "-f" in parser.flags():
        if os.path.isdir(others[0]):
            return f"{printable(others[0])} is a directory; {command} takes one file: -f FILE"
        way = "-f" if os.path.isfile(others[0]) else "-p"
        return f"{printable(others[0])} needs a flag: {way} {shell_word(others[0])}"
    return f"unrecognized arguments: {' '.join(map(printable, others))}"


def normalized(parser: Parser, arguments: list[str]) -> list[str]:
    """`arguments` such that argparse reads them as llama.cpp does.

    A flag that takes a value takes the next argument, whatever it looks like: `-p --ids` is the text
    "--ids". Long flags may have underscores for dashes. Source: common/arg.cpp, common_params_parse_ex.

    >>> parser = Parser("example")
    >>> _ = parser.add_argument("-p", "--prompt")
    >>> normalized(parser, ["--de_bug", "-p", "--ids"])
    ['--de-bug', '--prompt=--ids']
    """
    takes_value = {
        option: action.option_strings[-1]
        for action in parser.flags().values()
        if action.nargs is None
        for option in action.option_strings
    }
    found: list[str] = []
    rest, help_ = iter(arguments), f"see {parser.prog} --help"
    instead = {**_INSTEAD, **parser.instead}
    for argument in rest:
        if argument == "--":
            return [*found, argument, *rest]
        if argument.startswith("--"):
            flag, equals, value = argument.partition("=")
            argument = flag.replace("_", "-") + equals + value
        if argument in parser.ignored:
            _leave_out(argument, parser.ignored[argument], rest)
            continue
        flag = argument.partition("=")[0]
        if flag not in parser.flags() and (flag in instead or re.match(_SHORT, argument)):
            raise UsageError(f"there is no flag {printable(flag)} ({instead.get(flag) or help_})")
        if argument in takes_value:
            for value in islice(rest, 1):
                argument = f"{takes_value[argument]}={_TWO_DASHES if value == '--' else value}"
        found.append(argument)
    return found


# Flags of llama.cpp that name a model, with what to do instead.
_INSTEAD = {
    **dict.fromkeys(("-dr", "--docker-repo"), "a model of Docker's registry is named by its file: -m PATH"),
    **dict.fromkeys(("-hft", "--hf-token"), "the token is that of HF_TOKEN in the environment"),
}
# -xy, which argparse would take for -x y.
_SHORT = "-[A-Za-z][A-Za-z]"


def _leave_out(flag: str, count: int, rest: Iterator[str]) -> None:
    if len(list(islice(rest, count))) < count:
        raise UsageError(
            f"argument {flag}: expected {'one argument' if count == 1 else f'{count} arguments'}"
        )


def overrides_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """What `--override-kv` gives, for `Tokenizer.from_gguf`; warns of what is ignored."""
    if not arguments.override_kv:
        return {}
    from ..gguf.kv_override import applicable, parse_kv_overrides

    try:
        values, left_out = applicable(
            each for given in arguments.override_kv for each in parse_kv_overrides(given)
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    for reason in left_out:
        _output.warning(f"--override-kv: {reason}; ignored")
    return values


def require_no_models(
    given: Iterable[str], command: str, arguments: argparse.Namespace, what: str = "a text"
) -> None:
    """Ask whether -m was meant, where a model stands in the place of `what` and none is named.

    Also of one that is nothing but the name of a .gguf file which is not there: with a slip in the name, a text would
    be tokenized itself.
    """
    named = any(getattr(arguments, name, None) for name in ("model", "hf_repo", "model_url"))
    if named or MODEL_VARIABLE in os.environ:
        return
    for each in filter(lambda text: text.endswith(".gguf"), given):
        name = shell_word(each)
        meant = f"did you mean -m? ggufbpe {command} -m {name} ..."
        if os.path.isfile(each):
            raise UsageError(f"{name} is a model{what and f', not {what}'}; {meant}")
        is_whole = each == getattr(arguments, "text", each) and not any(map(str.isspace, each))
        if is_whole and "://" not in each and not os.path.exists(each):
            as_text = f" (as a text: -p {name})" if hasattr(arguments, "prompt") else ""
            raise UsageError(f"{name} looks like a model, and no such file is there; {meant}{as_text}")
