"""Mechanical rules of plain English: what can be found in a text without understanding it.

long lines         a line of prose over 100 characters; tables, code and bare links aside
forbidden phrases  words that this project avoids, each with what to write instead
docstrings         a function's docstring starts with a verb that says what the caller gets
"""

import ast
import re
from collections.abc import Iterator

WIDTH = 100
FENCE = re.compile(r"^(?P<indent> *)```.*?^(?P=indent)```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
TARGET = re.compile(r"\]\([^)]*\)")

# Each phrase with what to write instead.
FORBIDDEN = {
    r"\banew\b": "again",
    r"\bbeside\b": "next to, with, or besides",
    r"\bso (?:many|often|much)\b(?! (?:that|as|more|less|better|worse|cheaper))": "name the number",
    r"\b(?:is|are|was|were|be|been|being) told\b": "say who tells, or use 'knows'",
    r"\b(?:is|are|was|were) asked for\b": "name who asks",
    r"\bof whom\b": "start a sentence with the agent",
    r"\blet (?:everybody|everyone|nobody|somebody|at least)\b": "say what to do",
    r"\bof everything random\b": "random seed",
    r"\bthat is no path\b": "not a path",
    r"\bwhoever\b": "an agent that",
    r"\bwho (?:cuts?|brings?|brought|holds? back|held back)\b": "an agent that ...",
    r"\bhow often who\b": "how often an agent that ...",
    r"\b(?:agent|client|contributor|defector)s? who\b": "an agent that ...",
    r"\b(?:the one|those) who (?:cuts?|gives?|gave|brings?|brought)\b": "an agent that ...",
    r"\bwould do\b": "is enough",
    r"\ball the same\b": "still",
    r"\bget in each other's way\b": "say what is slow",
    r"\b(?:is|are) (?:not|never) written over\b": "overwritten",
    r"(?<!there )\bis no (?:array|dataclass|file|folder|key|path|workbook)\b": "is not a ...",
    r"\bplays? its (?:cheapest|own)\b": "follows: plans are followed",
    r"\(95 % interval [^()]*, [^()]*\)": "give the interval a sentence",
}
PATTERNS = [(re.compile(phrase, re.IGNORECASE), remedy) for phrase, remedy in FORBIDDEN.items()]
# Docstrings of functions say what a call returns or does, in the imperative.
WRONG_OPENING = re.compile(r"(?:Gives?|Tells?|Says|Say (?:whether|if|how|what|which)|Lets|Told)\b")


def prose(page: str) -> str:
    """Return a page of Markdown with its code blanked out, line by line."""
    return FENCE.sub(lambda found: "\n" * found[0].count("\n"), page)


def long_lines(page: str) -> Iterator[str]:
    """Yield the lines of prose that are too long, with their numbers."""
    for number, line in enumerate(prose(page).splitlines(), 1):
        # A line that is one link cannot be broken.
        bare = re.fullmatch(r"[-*\d. ]*!?\[[^]]*\]\([^)]*\)[.,:;]?", line)
        if len(line) > WIDTH and not line.startswith(("|", "    ")) and not bare:
            yield f"line {number} has {len(line)} characters, at most {WIDTH}: {line[:40]}..."


def forbidden_phrases(text: str) -> Iterator[str]:
    """Yield the forbidden phrases of a text, each with the line it is on and its remedy."""
    for pattern, remedy in PATTERNS:
        for found in pattern.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"line {line} says {found[0]!r}: {remedy}"


def faults_of_page(page: str) -> list[str]:
    """List what breaks the rules on a page of Markdown."""
    bare = TARGET.sub("]", CODE.sub("code", prose(page)))
    # A phrase may be broken over two lines: a single line break counts as a space.
    return [*long_lines(page), *forbidden_phrases(bare), *_broken_phrases(bare)]


def _broken_phrases(text: str) -> Iterator[str]:
    for match in re.finditer(r"(\S[^\n]*)\n(?=(\S[^\n]*))", text):
        joint = len(match[1])
        pair = f"{match[1]} {match[2].lstrip()}"
        for pattern, remedy in PATTERNS:
            for found in pattern.finditer(pair):
                if found.start() < joint < found.end() - 1:
                    line = text.count("\n", 0, match.start()) + 1
                    yield f"line {line} says {found[0]!r}: {remedy}"


def faults_of_source(source: str) -> list[str]:
    """List what breaks the rules in the string literals and docstrings of a Python file."""
    tree = ast.parse(source)
    faults = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = " ".join(CODE.sub("code", node.value).split())
            faults += [
                f"line {node.lineno}: {fault.partition(' says ')[2]}"
                for fault in forbidden_phrases(text)
            ]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            said = ast.get_docstring(node) or ""
            if WRONG_OPENING.match(said):
                faults.append(f"line {node.lineno}: {said.partition(' ')[0]!r}: Return, Raise, ...")
    return sorted(faults, key=lambda fault: int(re.findall(r"\d+", fault)[0]))
