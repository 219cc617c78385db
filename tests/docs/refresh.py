"""Write what commands print now into the blocks of the README and of docs/.

    python tests/docs/refresh.py [PAGE …]

A block that differs is replaced. Where "..." leaves lines out, as many lines before and after it
are written as the page has. Read the difference: sentences around the blocks may quote numbers too.
"""

import os
import re
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent), str(HERE), str(ROOT / "docs/figures")]


def main() -> None:
    from documents import check_page, same
    from test_documents import PAGES, copy_linked_tables

    chosen = [Path(name).resolve() for name in sys.argv[1:]] or PAGES
    for page in chosen:
        text = page.read_text(encoding="utf-8")
        if "$ fedaccord" not in text:
            continue
        printed: list[tuple[str, str]] = []
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            copy_linked_tables(page, text, Path(folder))
            check_page(text, page.name, Path(folder), told=printed)
            os.chdir(ROOT)
        for before, now in printed:
            if not same(before, now):
                text = text.replace(before, renew(before, now), 1)
        page.write_text(text, encoding="utf-8")


def renew(before: str, now: str) -> str:
    """Return the lines of a block as they are printed now, with its "..." as they are."""
    old = [line.strip() for line in before.rstrip().splitlines()]
    new = [line.rstrip() for line in now.rstrip().splitlines()]
    cuts = [n for n, line in enumerate(old) if line == "..."]
    said: list[str] = []
    for start, end in pairwise([-1, *cuts, len(old)]):
        count = end - start - 1
        if not cuts:
            said += new
        elif start < 0:
            said += [*new[:count], "..."]
        elif end == len(old):
            said += new[len(new) - count :]
        else:
            first = words(old[start + 1])
            at = next((n for n, line in enumerate(new) if words(line) == first), None)
            part = old[start + 1 : end] if at is None else new[at : at + count]
            said += [*part, "..."]
    return "\n".join(said) + before[len(before.rstrip()) :]


def words(line: str) -> str:
    """Return a line without its numbers, and with single spaces."""
    from documents import NUMBER

    return re.sub(r"─+|\s+", " ", NUMBER.sub("0", line)).strip()


if __name__ == "__main__":
    main()
