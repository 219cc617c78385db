"""Docstrings as Markdown: a paragraph of lines such as "game: what the agents want." is a list."""

import re
from typing import Any

import griffe

ARGUMENT = re.compile(r"((?:\*\*)?[a-z_]\w*(?:, \w+)*): ", re.IGNORECASE)


class Arguments(griffe.Extension):
    """Marks the arguments in docstrings."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = mark_arguments(obj.docstring.value)


def mark_arguments(text: str) -> str:
    """Return a docstring in which paragraphs that explain arguments are lists."""
    first, *rest = text.split("\n\n")
    return "\n\n".join([first, *map(_mark, rest)])


def _mark(paragraph: str) -> str:
    lines = paragraph.splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    if not heads or not all(map(ARGUMENT.match, heads)):
        return paragraph
    return "\n".join(ARGUMENT.sub(r"- `\1`: ", line, count=1) for line in lines)
