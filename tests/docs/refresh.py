"""Write the numbers that commands print now into the blocks of the README and of docs/.

    python tests/docs/refresh.py [PAGE …]

A line of a block is replaced by the line that is printed now and differs in numbers and spaces
only. Where there is none, the page stays as it is and the line is named: its words are wrong, or
the page leaves it out. Sentences around the blocks may quote numbers too; mend these by hand.
"""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent), str(HERE), str(ROOT / "docs/figures")]


def main() -> None:
    from documents import NUMBER, check_page
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
            after = "".join(renew(before, now, NUMBER))
            text = text.replace(before, after, 1) if before.strip() else text
        page.write_text(text, encoding="utf-8")


def renew(before: str, now: str, number: re.Pattern[str]) -> Iterator[str]:
    """Yield the lines of a block, each as it is printed now."""

    def words(line: str) -> str:
        return re.sub(r"─+|\s+", " ", number.sub("0", line)).strip()

    left = now.splitlines(keepends=True)
    for line in before.splitlines(keepends=True):
        same = [n for n, new in enumerate(left) if words(new) == words(line)]
        if not line.strip() or line.strip() == "...":
            yield line
        elif same:
            yield left[same[0]].rstrip() + "\n"
            del left[: same[0] + 1]
        else:
            sys.stdout.write(f"not printed: {line}")
            yield line


if __name__ == "__main__":
    main()
