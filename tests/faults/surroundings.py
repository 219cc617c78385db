"""Commands on machines that are not as they should be: disks, folders, homes and languages."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from faults.forked import Ended, Forked
from faults.kills import PATIENCE, Audit, read_rows, timeless

# Every command that writes files, with the place it writes them to.
WRITERS = (
    "solve hospitals.json --save {place}/plan.json",
    "solve hospitals.json --save {place}/plan.csv",
    "solve hospitals.json --save {place}/plan.xlsx",
    "solve hospitals.json --report {place}/page.html",
    "check hospitals.json shares.csv --report {place}/page.html",
    "share hospitals.json --save {place}/pay.csv",
    "coalitions hospitals.json --report {place}/page.html",
    "plan histograms.csv --save {place}/plan.csv",
    "plan hospitals.json --save-game {place}/game.json",
    "pilots City=1200,Rural=800 --save {place}/pilots.csv",
    "template plan {place}/tables",
    "train sites.toml --save {place}/history.csv",
    "audit sites.toml --workers 1 --trials 1 --results {place}/runs.sqlite",
    "merge part.sqlite --into {place}/whole.sqlite",
    "flower init {place}/app",
    "reproduce --only theorem-7 --out {place}/paper",
    "reproduce --only solo-curves --workers 1 --part 1/1000 --out {place}/paper",
)
# These keep what is finished; the others leave nothing behind.
KEEP = ("audit", "merge", "reproduce")


class Unmountable(Exception):
    """This machine lets nobody mount a file system; the text says why."""


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[None]:
    """Mount a disk of so many bytes in memory; only root can, and not everywhere."""
    place.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},nr_inodes=200", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        why = getattr(error, "stderr", None) or str(error)
        raise Unmountable(f"a small disk needs root and mount: {why.strip()}") from None
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(place: Path, free: int) -> Path:
    """Fill a disk up to some free bytes; return the file that does so."""
    path, found = place / "filler", os.statvfs(place)
    path.write_bytes(b"\0" * max(0, found.f_bavail * found.f_frsize - free))
    return path


def fill_disk(place: Path, free: int) -> Iterator[tuple[str, Ended, list[str]]]:
    """Yield every writer with what came of it on a disk with so much space left."""
    for line in WRITERS:
        with small_disk(place, 1 << 20):
            fill(place, free)
            ended = Forked(line.format(place=place).split()).wait()
            faults = ended.faults()
            left = sorted(path.name for path in place.iterdir() if path.name != "filler")
            if ended.code == 2 and left and not line.startswith(KEEP):
                faults.append(f"it left {', '.join(left)} behind")
            yield line, ended, faults


def outgrow_disk(audit: Audit, place: Path) -> list[str]:
    """Run an audit until its disk is full, make space, and run it again."""
    with small_disk(place, 1 << 20):
        filler = fill(place, 64 << 10)
        store = place / "killed.sqlite"
        first = Forked(audit.arguments(1, store)).wait(PATIENCE)
        faults = first.faults(codes=(2,))
        safe = read_rows(store)
        if not safe or f"the {len(safe)} runs in it are safe" not in first.err:
            faults.append(f"{len(safe)} runs are safe, and it says: {first.err}")
        filler.unlink()
        second = Forked(audit.arguments(1, store)).wait(PATIENCE)
        faults += second.faults(codes=(0,))
        if not faults and (timeless(second.out) != audit.expected or not safe <= read_rows(store)):
            faults.append("another result than with space from the start")
    return faults


def close_folder(place: Path) -> Iterator[tuple[str, Ended, list[str]]]:
    """Yield every writer with what came of it in a folder that nobody may write to."""
    # Permissions do not bind root: a disk that is read only does.
    with small_disk(place, 1 << 20):
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        for line in WRITERS:
            ended = Forked(line.format(place=place).split()).wait()
            yield line, ended, ended.faults(codes=(2,))


# Homes and languages: a process each, for they matter when Python starts.
READERS = (
    "solve hospitals.json",
    "plan histograms.csv",
    "check hospitals.json shares.csv --report page.html",
    "audit sites.toml --workers 2 --trials 1 --results new.sqlite",
)
HOMES: Mapping[str, Mapping[str, str | None]] = {
    "no HOME": {"HOME": None, "XDG_CACHE_HOME": None, "XDG_CONFIG_HOME": None},
    "a HOME that is no folder": {"HOME": "/dev/null", "TMPDIR": "/dev/null"},
}
LANGUAGES: Mapping[str, Mapping[str, str | None]] = {
    "LANG=C": {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "LANG=tr_TR.UTF-8": {"LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8"},
}
STRANGE = {**HOMES, **LANGUAGES}


def start_strangely(surroundings: Mapping[str, str | None], line: str) -> Ended:
    """Run a command in an environment that differs."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    for name, value in surroundings.items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    Path("new.sqlite").unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "fedaccord", *line.split()],
        env=environment,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return Ended(done.returncode, out, err, 0.0)


def compare(usual: Ended, strange: Ended) -> list[str]:
    """List what is otherwise in strange surroundings."""
    faults = strange.faults(codes=(usual.code or 0,))
    said = [line for line in strange.err.splitlines() if not line.startswith("fedaccord: ")]
    faults += [f"it says {said[0]}"] if said else []
    # A terminal that knows few signs is shown plainer ones.
    letters = [
        "".join(c for c in ended.out if c.isascii() and c.isalnum()) for ended in (usual, strange)
    ]
    return [*faults, *(["another result"] if letters[0] != letters[1] else [])]
