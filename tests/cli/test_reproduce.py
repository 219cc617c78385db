"""The command reproduce, with claims that are made up; the paper's own are in tests/reproduce."""

import json
import sys
from pathlib import Path

import pytest
from commands import assert_refused, run, write

from fedaccord.charts import Chart, Line
from fedaccord.errors import MissingExtraError
from fedaccord.reproduce import run as running
from fedaccord.reproduce.claims import Claim, Finding, Setting, Verdict

ROOT = Line("root of k", (4.0, 100.0), (2.0, 10.0), reference=True)
PRICE = Line("price of stability", (4.0, 100.0), (1.3, 5.3))
CHART = Chart("prices", "Prices", "k", "price", "5.3 at 100.", (PRICE, ROOT), logarithmic=True)


def claim(
    id: str, verdict: Verdict, *, part: str = "Words", correction: str = "", charts=()
) -> Claim:
    finding = Finding(verdict, f"Measured {id}.", correction, {"games": 7}, charts)
    words = (f"That {id} is <b>so</b>", "Section 3, Theorem 1", f"The paper says {id}.")
    return Claim(id, *words, lambda setting: finding, (2.0, 90.0), part)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Claim]:
    """Two claims instead of the paper's, in an empty folder."""
    claims = {
        "sound": claim("sound", Verdict.HOLDS),
        "bent": claim("bent", Verdict.CORRECTED, part="Numbers", correction="Only for b above 4."),
    }
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "all_claims", lambda: claims)
    monkeypatch.setattr(running, "expected_numbers", dict)
    return claims


def test_it_says_its_cost_then_each_row_then_where_things_are(known):
    result = run("reproduce")
    assert result.code == 0
    assert result.stderr.splitlines() == [
        "fedaccord: 2 claims to check; this takes about 4 min 00 s on two cores. Training runs "
        "are stored in reproduction and reused.",
        "fedaccord: sound: holds (0 s).",
        "fedaccord: bent: holds with a correction (0 s).",
        "fedaccord: the result is in reproduction/reproduction.json, the page in "
        "reproduction/reproduction.html.",
    ]
    said = " ".join(result.stdout.split())
    assert "Correction: Only for b above 4." in said
    assert said.endswith(
        "Of 2 claims of the paper, 1 holds as printed and 1 holds with a correction."
    )


def test_the_page_the_figures_and_the_result_are_written(known):
    known["drawn"] = claim("drawn", Verdict.HOLDS, charts=(CHART,))
    run("reproduce", "--out", "a/b")
    page = Path("a/b/reproduction.html").read_text()
    assert "That bent is &lt;b&gt;so&lt;/b&gt;" in page
    assert "<b>so" not in page
    assert "holds with a correction" in page
    figures = {path.name for path in Path("a/b/figures").iterdir()}
    assert figures == {"prices.svg", "prices.png", "prices.csv"}
    rows = json.loads(Path("a/b/reproduction.json").read_text())["rows"]
    assert [row["verdict"] for row in rows] == ["holds", "holds with a correction", "holds"]


def test_a_claim_that_fails_makes_the_exit_code_1(known):
    known["false"] = claim("false", Verdict.FAILS)
    assert run("reproduce").code == 1
    # What failed before is on the page, and was not asked for now.
    assert run("reproduce", "--only", "sound").code == 0


def test_full_says_a_cost_of_hours(known):
    assert "about 3 h 00 min" in run("reproduce", "--full").stderr
    assert json.loads(Path("reproduction/reproduction-full.json").read_text())["scale"] == "full"
    assert Path("reproduction/reproduction-full.html").exists()


def test_neither_scale_takes_the_place_of_the_other(known):
    run("reproduce")
    before = Path("reproduction/reproduction.json").read_text()
    run("reproduce", "--full", "--only", "bent")
    assert Path("reproduction/reproduction.json").read_text() == before


def test_a_result_of_other_versions_is_set_aside(known):
    run("reproduce")
    path = Path("reproduction/reproduction.json")
    write(path, {**json.loads(path.read_text()), "versions": "Python 2"})
    result = run("reproduce", "--only", "bent")
    assert "it was moved to reproduction/reproduction.earlier.json" in result.stderr
    aside = json.loads(Path("reproduction/reproduction.earlier.json").read_text())
    assert [row["verdict"] for row in aside["rows"]] == ["holds", "holds with a correction"]
    verdicts = [row["verdict"] for row in json.loads(path.read_text())["rows"]]
    assert verdicts == ["not run", "holds with a correction"]


def test_json_is_what_the_file_holds_and_nothing_else(known):
    result = run("reproduce", "--json")
    assert json.loads(result.stdout) == json.loads(
        Path("reproduction/reproduction.json").read_text()
    )


def test_the_claims_are_listed(known):
    assert "Section 3, Theorem 1" in run("reproduce", "--list").stdout
    listed = json.loads(run("reproduce", "--list", "--json").stdout)["claims"]
    assert [row["id"] for row in listed] == ["sound", "bent"]
    assert not Path("reproduction").exists()


def test_one_claim_after_the_other_makes_the_same_page(known):
    run("reproduce", "--only", "bent")
    run("reproduce", "--only", "sound")
    rows = json.loads(Path("reproduction/reproduction.json").read_text())["rows"]
    assert [row["verdict"] for row in rows] == ["holds", "holds with a correction"]


def test_what_came_before_an_interruption_is_kept(known):
    def stopped(setting: Setting) -> Finding:
        raise KeyboardInterrupt

    known["bent"] = Claim("bent", "a", "b", "c", stopped, (1.0, 1.0))
    result = run("reproduce")
    assert result.code == 130
    assert "interrupted: finished rows and runs are stored in reproduction" in result.stderr
    rows = json.loads(Path("reproduction/reproduction.json").read_text())["rows"]
    assert [row["verdict"] for row in rows] == ["holds", "not run"]


def test_a_page_of_some_rows_lists_them_and_does_not_speak_of_the_experiment(known):
    known["trained"] = claim("trained", Verdict.HOLDS, part="The experiment")
    run("reproduce", "--only", "sound")
    page = Path("reproduction/reproduction.html").read_text()
    assert "Measured sound" in page
    assert "2 more claims were not checked" in page
    assert "That bent is" not in page and "handwritten digits" not in page
    assert "All is well" not in page
    run("reproduce", "--only", "trained")
    assert "handwritten digits" in Path("reproduction/reproduction.html").read_text()


def test_the_page_may_go_elsewhere(known):
    run("reproduce", "--report", "paper.html")
    assert Path("paper.html").exists()
    assert not Path("reproduction/reproduction.html").exists()


def test_without_the_extra_there_is_a_result_and_no_page(known, monkeypatch):
    def missing(module: str) -> None:
        raise MissingExtraError("matplotlib", "report")

    monkeypatch.setattr("fedaccord.cli.reproduce.imported", missing)
    monkeypatch.setattr(sys.modules["fedaccord.cli.app"], "imported", missing)
    result = run("reproduce")
    assert result.code == 0
    assert "no page can be written: this needs matplotlib" in result.stderr
    assert not Path("reproduction/reproduction.html").exists()
    assert_refused(run("reproduce", "--report", "a.html"), "fedaccord[report]")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--quick", "--full"), "exclude each other"),
        (("--only", "sond"), "no claim 'sond'; did you mean sound?"),
        (("--workers", "0"), "workers must be a whole number of 1 or more"),
        (("--report", "page.pdf"), "--report needs a file that ends in .html; got page.pdf"),
        (("--out", "file/below"), "cannot write to --out file/below"),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(known, arguments, words):
    write(Path("file"), "a file")
    assert_refused(run("reproduce", *arguments), words)


@pytest.mark.parametrize(
    "spoilt", ["", "[]", "not json", '{"rows": 7}', '{"rows": [{"id": "sound"}]}']
)
def test_a_spoilt_earlier_result_is_refused_or_not_used(known, spoilt):
    run("reproduce")
    path = Path("reproduction/reproduction.json")
    made = json.loads(path.read_text())
    text = spoilt if not spoilt.startswith("{") else json.dumps({**made, **json.loads(spoilt)})
    write(path, text)
    result = run("reproduce", "--only", "sound")
    assert result.code == 2
    assert "Traceback" not in result.stderr
