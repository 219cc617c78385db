"""Record the golden tests again: all of them, or those whose names begin as one that is given.

    python tests/golden/record.py [NAME …]

The file of runs, recorded/runs.sqlite, stays: code of any later day must find its runs in it.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]


def main() -> None:
    from golden.cases import CASES
    from golden.pinning import differences, made_now, record, recorded

    chosen = sys.argv[1:] or [""]
    for case in CASES.values():
        if not case.name.startswith(tuple(chosen)):
            continue
        try:
            changed = differences(case, recorded(case), made_now(case))
        except FileNotFoundError:
            changed = ["new"]
        if changed:
            record(case)
            sys.stdout.write(f"{case.name}\n" + "".join(f"    {line}\n" for line in changed))


if __name__ == "__main__":
    main()
