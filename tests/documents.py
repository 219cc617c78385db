"""Running the README and the pages of docs/: every example must print what the page says.

A page is read from top to bottom and runs in a folder of its own, with the CSV files it links to:

    ```python          a block of >>> examples, or plain code; one namespace for the whole page
    ```json game.json  a block with a file name: the file is written
    ```console         lines that start with "$ fedaccord" are run, and what they print compared
    ```console measured, ```python measured
                       the same for what training reaches, which another machine's kernels may round
                       to other accuracies: the words are compared, and that there are numbers
                       where the page has some

Other numbers are compared to six digits, so that another machine's rounding is no error; seconds
may be anything; "..." stands for any text.
"""

import doctest
import math
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands import run

FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-−+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# Said off a terminal only, and pages show what a terminal does.
ANNOUNCED = re.compile(r"^fedaccord: [^\n]* to make[^\n]*\n", re.MULTILINE)
SECONDS = re.compile(r'("(?:run_)?seconds": )[-+.\deE]+')


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: what it is, its file name if any, its text and its line.

    measured: whether its numbers are those of one machine.
    """

    language: str
    file: str
    body: str
    line: int
    measured: bool = False


class WrongPageError(AssertionError):
    """An example of a page does not do what the page says."""


def blocks(text: str) -> Iterator[Block]:
    """Give the fenced blocks of a page in order."""
    for match in FENCE.finditer(text):
        language, *words = match["info"].split() or [""]
        line = text.count("\n", 0, match.start()) + 2
        measured = words == ["measured"]
        yield Block(language, "" if measured else " ".join(words), match["body"], line, measured)


def same(expected: str, printed: str, *, measured: bool = False) -> bool:
    """Say whether two outputs are the same, numbers to six digits (or any) and spaces aside."""
    if measured:
        expected, printed = (NUMBER.sub("0", text) for text in (expected, printed))
    wanted = _words(SECONDS.sub(r"\1...", expected))
    if "..." in expected or SECONDS.search(expected):
        return _matches(wanted, _words(SECONDS.sub(r"\1...", printed)))
    found = _words(printed)
    return len(wanted) == len(found) and all(map(_same_word, wanted, found))


def _words(text: str) -> list[str]:
    # Rules under a table's head are as wide as its numbers.
    bare = re.sub(r"[─-]{3,}", " --- ", text)
    return [word for part in bare.split() for word in re.split(r"(\.\.\.)", part) if word]


def _matches(wanted: list[str], found: list[str]) -> bool:
    """Match words where "..." stands for any of them."""
    if not wanted:
        return not found
    if wanted[0] == "...":
        return any(_matches(wanted[1:], found[n:]) for n in range(len(found) + 1))
    return bool(found) and _same_word(wanted[0], found[0]) and _matches(wanted[1:], found[1:])


def _same_word(wanted: str, found: str) -> bool:
    if wanted == found:
        return True
    if NUMBER.sub("#", wanted) != NUMBER.sub("#", found):
        return False
    pairs = zip(NUMBER.findall(wanted), NUMBER.findall(found), strict=True)
    return all(_same_number(_plain(a), _plain(b)) for a, b in pairs)


def _plain(number: str) -> str:
    return number.replace(",", "").replace("−", "-")


def _same_number(wanted: str, found: str) -> bool:
    # One unit in the last of the digits shown, or six digits where there are more.
    decimals = len(re.sub(r"[eE].*", "", wanted).partition(".")[2])
    exponent = int(wanted.lower().partition("e")[2] or 0)
    last = 10.0 ** (exponent - decimals) if decimals else 0.0
    allowed = min(1.001 * last, 1e-6 * max(1.0, abs(float(wanted))))
    if decimals and abs(float(wanted)) < 1e-6:
        allowed = 1e-6
    return math.isclose(float(wanted), float(found), rel_tol=0, abs_tol=max(allowed, 1e-12))


class _Checker(doctest.OutputChecker):
    def __init__(self, measured: bool) -> None:
        self._measured = measured

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return same(want, got, measured=self._measured)


def check_page(
    text: str, name: str, folder: Path, told: list[tuple[str, str]] | None = None
) -> int:
    """Run a page's examples in a folder that is the working directory; give how many there were.

    Raises WrongPageError at the first example that does not do what the page says. With `told`,
    what commands print is not compared, but added to it: what the page says, and what is printed.
    """
    namespace: dict[str, Any] = {"__name__": "__page__"}
    ran = 0
    for block in blocks(text):
        where = f"{name}, line {block.line}"
        if block.language == "python":
            ran += _run_python(block, namespace, where)
        elif block.language == "console":
            ran += _run_console(block, where, folder, told)
        elif block.file:
            (folder / block.file).write_text(block.body, encoding="utf-8")
    return ran


def _run_python(block: Block, namespace: dict[str, Any], where: str) -> int:
    if block.file:
        Path(block.file).write_text(block.body, encoding="utf-8")
    if ">>>" not in block.body:
        exec(compile(block.body, where, "exec"), namespace)
        return 1
    test = doctest.DocTestParser().get_doctest(block.body, namespace, where, None, block.line)
    faults: list[str] = []
    runner = doctest.DocTestRunner(_Checker(block.measured), verbose=False)
    runner.run(test, out=faults.append, clear_globs=False)
    namespace.update(test.globs)
    if faults:
        raise WrongPageError("".join(faults))
    return len(test.examples)


def _run_console(block: Block, where: str, folder: Path, told: list[tuple[str, str]] | None) -> int:
    ran, code = 0, 0
    for command, expected in _commands(block.body):
        if command == "echo $?":
            printed = str(code)
        elif command.startswith("fedaccord "):
            line, _, target = command.partition(" > ")
            result = run(*shlex.split(line, comments=True)[1:])
            warned = ANNOUNCED.sub("", result.stderr)
            printed, code = result.stdout + warned, result.code
            if target:
                (folder / target.strip()).write_text(result.stdout, encoding="utf-8")
                printed = warned
        else:
            continue
        ran += 1
        if told is not None:
            told.append((expected, printed))
        elif not same(expected, printed, measured=block.measured):
            raise WrongPageError(
                f"{where}: $ {command}\nthe page says:\n{expected}\nit prints:\n{printed}"
            )
    return ran


def _commands(body: str) -> Iterator[tuple[str, str]]:
    """Split a console block into commands and what follows each."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = command[:-1] + more
        yield command.strip(), output
