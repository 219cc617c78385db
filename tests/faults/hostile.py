"""Names that mean harm, on every page and in every table that a command writes."""

import csv
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import openpyxl
from faults.forked import Ended, Forked
from page_elements import Elements, hash_of, policy

# What a browser, a template or a spreadsheet would run.
NAMES = (
    '=HYPERLINK("http://evil.example","x")</td><script>alert(1)</script>',
    '@SUM(1)"><img src=x onerror=alert(2)>',
    "-1+cmd|' /C calc'!A0{{7*7}}</style><svg onload=alert(3)>",
    "+1];javascript:alert(4)//",
)
PAGES = (
    "solve hospitals.json",
    "check hospitals.json shares.json",
    "share hospitals.json",
    "coalitions hospitals.json",
    "plan hospitals.json",
    "plan histograms.csv",
    "plan two_pilots.csv",
    "train sites.toml",
    "train digits.toml --algorithm MW-FED",
    "audit sites.toml --workers 1 --results new.sqlite",
    "audit digits.toml --workers 1 --algorithm FedAvg --results new.sqlite",
    "frontier digits.toml --workers 1 --algorithm FedAvg --results new.sqlite",
    "difficulty beforehand.toml",
    "pretrain beforehand.toml",
    "search beforehand.toml --draws 2",
)
TABLES = (
    "solve hospitals.json --save out.csv",
    "solve hospitals.json --save out.xlsx",
    "share hospitals.json --save out.csv",
    "plan hospitals.json --save out.csv",
    "plan histograms.csv --save out.csv",
    "plan two_pilots.csv --save out.csv --save-pilots again.csv",
    "plan two_pilots.csv --save out.xlsx",
    "pilots histograms.csv --save out.csv",
    "train digits.toml --algorithm MW-FED --save out.csv",
)
# A cell that a spreadsheet runs; a negative number is none.
RUN = re.compile(r"\s*[=+\-@\t\r＝＋－＠]")
NUMBER = re.compile(r"-?[\d.,]+(e[+-]?\d+)?( ?%)?")


def prepare(folder: Path) -> None:
    """Give the inputs in the current folder hostile names."""
    quoted = {name: '"' + name.replace('"', '""') + '"' for name in NAMES}
    hospitals = json.loads((folder / "hospitals.json").read_text())
    hospitals["agents"] = list(NAMES[: len(hospitals["requirements"])])
    (folder / "hospitals.json").write_text(json.dumps(hospitals))
    (folder / "shares.json").write_text(json.dumps({"contributions": [300, 1200, 600]}))
    for file, old in (
        ("two_pilots.csv", ("North", "South")),
        ("histograms.csv", ("University", "City", "Rural", "severe")),
        ("patients.csv", ()),
    ):
        text = (folder / file).read_text()
        for name, new in zip(old, NAMES, strict=False):
            text = text.replace(name, quoted[new])
        if file == "patients.csv":
            for name, new in zip("ABC", NAMES, strict=False):
                text = re.sub(f"^{name},", lambda _, new=new: quoted[new] + ",", text, flags=re.M)
        (folder / file).write_text(text)
    config = (folder / "digits.toml").read_text()
    names = ", ".join(json.dumps(name) for name in NAMES[:2])
    config = config.replace('names = ["north", "south"]', f"names = [{names}]")
    (folder / "digits.toml").write_text(config)


def find_page_faults(html: str) -> list[str]:
    """List what a page would run, or fetch, that it should not."""
    faults = []
    read = Elements(html)
    try:
        allowed = policy(html)
    except ValueError:
        return ["no content-security policy"]
    if allowed.get("default-src") != "'none'" or "unsafe" in str(allowed):
        faults.append(f"the policy allows {allowed}")
    for script in re.findall("<script[^>]*>(.*?)</script>", html, re.S):
        if hash_of(script) not in allowed.get("script-src", ""):
            faults.append(f"a script that the policy does not know: {script[:60]}")
    for tag, attributes in read.found:
        faults += [f"{tag} has {key}" for key in attributes if key.startswith("on")]
        for key in ("src", "href", "action", "srcset", "data", "xlink:href", "formaction"):
            if not (attributes.get(key) or "#").startswith(("#", "data:")):
                faults.append(f"{tag} leads to {attributes[key]}")
    for table in re.findall(r'"data:text/csv[^,"]*,([^"]*)"', html):
        faults += find_cell_faults(unquote(table))
    return faults


def find_cell_faults(text: str) -> list[str]:
    """List cells of a CSV file that a spreadsheet would run."""
    cells = (cell for row in csv.reader(text.splitlines()) for cell in row)
    return [f"the cell {c[:40]!r}" for c in cells if RUN.match(c) and not NUMBER.fullmatch(c)]


def find_workbook_faults(path: Path) -> list[str]:
    """List cells of a workbook that are formulas."""
    cells = (cell for sheet in openpyxl.load_workbook(path) for row in sheet for cell in row)
    return [f"the formula {cell.value[:40]!r}" for cell in cells if cell.data_type == "f"]


def open_pages() -> Iterator[tuple[str, Ended, list[str]]]:
    """Yield every command with what is wrong with its page."""
    for line in PAGES:
        Path("new.sqlite").unlink(missing_ok=True)
        ended = Forked([*line.split(), "--report", "page.html"]).wait(120)
        faults = ended.faults(codes=(0, 1))
        page = Path("page.html")
        if page.exists():
            html = page.read_text(encoding="utf-8")
            faults += find_page_faults(html)
            named = sum(name.split("<")[0].split('"')[0] in html for name in NAMES)
            if not named and "beforehand" not in line:
                faults.append("no name is on the page")
            page.unlink()
        elif not faults:
            faults.append("no page")
        yield line, ended, faults


def write_tables() -> Iterator[tuple[str, Ended, list[str]]]:
    """Yield every command with what a spreadsheet would run of its tables."""
    place = Path("tables")
    for line in TABLES:
        place.mkdir()
        ended = Forked(
            line.replace("out.", f"{place}/out.").replace("again", f"{place}/again").split()
        )
        done = ended.wait(120)
        faults = done.faults(codes=(0, 1))
        for path in place.iterdir():
            if path.suffix == ".csv":
                faults += find_cell_faults(path.read_text(encoding="utf-8"))
            else:
                faults += find_workbook_faults(path)
        if not any(place.iterdir()):
            faults.append("no table")
        shutil.rmtree(place)
        yield line, done, faults
