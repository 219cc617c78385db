"""The commands as a coordinator uses them: in this process, and as processes of their own."""

import importlib
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from commands import TWO_HOSPITALS, Run, assert_refused, assert_visible, run, run_process, write

# Both solve W theta = mu: each gives 2/3.
STABLE = {"contributions": [2 / 3, 2 / 3]}
# Four leaves around a centre: optimum 2 (the centre alone), stable 4 (the leaves alone), and
# envy-free 10/3 (everybody the same).
STAR = {
    "model": "linear",
    "requirements": [1] * 5,
    "benefits": [
        [1, 0.5, 0.5, 0.5, 0.5],
        [0.5, 1, 0, 0, 0],
        [0.5, 0, 1, 0, 0],
        [0.5, 0, 0, 1, 0],
        [0.5, 0, 0, 0, 1],
    ],
    "agents": ["centre", "north", "east", "south", "west"],
}
HOSTILE = "[bold]<script>alert(1)</script>\x1b[31m:boom:\u202e[/]" + "x" * 200


def strict_json(text: str) -> Any:
    """Read JSON as other languages do: without NaN and Infinity."""

    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def game(tmp_path: Path) -> Path:
    return write(tmp_path / "game.json", TWO_HOSPITALS)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return write(tmp_path / "plan.json", STABLE)


# check


def test_a_stable_plan_passes_and_is_explained(game: Path, plan: Path) -> None:
    result = run("check", game, plan)
    assert (result.code, result.stderr) == (0, "")
    assert "Feasible and stable, and no agent envies another." in result.stdout
    assert "site B gives 0.6667. Alone it would need 1." in result.stdout


def test_a_plan_with_too_little_or_too_much_fails(game: Path, tmp_path: Path) -> None:
    short = run("check", game, write(tmp_path / "a.json", {"contributions": [0.5, 0.6]}))
    assert (short.code, short.stderr) == (1, "")
    assert short.stdout.startswith(
        "Not feasible: site A is short by 0.2 samples; 1 other agent is short too."
    )
    spare = run("check", game, write(tmp_path / "a.json", {"contributions": [1, 1]}))
    assert (spare.code, spare.stderr) == (1, "")
    assert spare.stdout.startswith("Feasible but not stable: site A could give 0.5 samples less")


@pytest.mark.parametrize(
    ("contributions", "require", "code"),
    [
        ([1, 1], "feasible", 0),
        ([1, 1], "feasible,envy-free", 0),
        ([1, 1], "stable", 1),
        ([1, 1], " feasible , stable ", 1),
        ([1, 0.5], "feasible", 0),
        ([1, 0.5], "envy-free", 1),
        ([0, 0], "feasible", 1),
    ],
)
def test_the_exit_code_follows_what_is_required(
    contributions: list[float], require: str, code: int, game: Path, tmp_path: Path
) -> None:
    plan = write(tmp_path / "plan.json", {"contributions": contributions})
    assert run("check", game, plan, "--require", require).code == code


def test_the_tolerance_decides_what_counts_as_nothing(game: Path, tmp_path: Path) -> None:
    plan = write(tmp_path / "plan.json", {"contributions": [0.667, 0.667]})
    assert run("check", game, plan).code == 1
    assert run("check", game, plan, "--tolerance", "0.01").code == 0


def test_check_prints_the_audit_as_json(game: Path, tmp_path: Path) -> None:
    plan = write(tmp_path / "plan.json", {"contributions": [1, 0.1]})
    result = run("check", game, plan, "--json")
    data = strict_json(result.stdout)
    assert result.code == 1
    keys = ["contributions", "feasible", "stable", "envy_free", "short", "spare", "envy"]
    assert list(data)[:7] == keys and data["contributions"] == [1, 0.1]
    assert (data["feasible"], data["stable"], data["envy_free"]) == (False, False, "false")
    assert data["short"] == [0, pytest.approx(0.4)]
    assert data["spare"] == [pytest.approx(0.05), 0]
    assert run("check", game, plan, "--json").stdout == result.stdout


def test_numbers_in_json_have_full_precision(game: Path, plan: Path) -> None:
    data = strict_json(run("check", game, plan, "--json").stdout)
    assert data["utilities"] == [2 / 3 * 1.5] * 2


def test_an_unreachable_need_is_null_in_json_and_a_dash_in_the_table(tmp_path: Path) -> None:
    # Site A cannot tell the worlds apart by its own samples, only by those of site B.
    worlds = [
        {"prior": "1/2", "samples": [[["x", y, 1]], [["x", y, 1]]]} for y in ("plus", "minus")
    ]
    pac = {"model": "pac", "requirements": [0.9, 0.9], "worlds": worlds}
    path = write(tmp_path / "game.json", pac)
    plan = write(tmp_path / "plan.json", {"contributions": [1, 0]})
    assert strict_json(run("check", path, plan, "--json").stdout)["feasible"] is True
    assert run("check", path, plan).code in (0, 1)


def test_a_csv_is_matched_by_name(game: Path, tmp_path: Path) -> None:
    plan = write(tmp_path / "plan.csv", "agent,contribution\nsite B,0\nsite A,2\n")
    data = strict_json(run("check", game, plan, "--json").stdout)
    assert data["utilities"] == [2, 1]


def test_one_agent_is_a_game(tmp_path: Path) -> None:
    one = {"model": "linear", "requirements": [3], "benefits": [[2]]}
    path = write(tmp_path / "game.json", one)
    assert run("check", path, write(tmp_path / "a.json", {"contributions": [1.5]})).code == 0
    assert run("check", path, write(tmp_path / "a.json", {"contributions": [1.4]})).code == 1


def test_large_and_small_units_are_no_fault(tmp_path: Path) -> None:
    for unit in (1e-90, 1e-30, 1e30, 1e90):
        path = write(tmp_path / "game.json", {**TWO_HOSPITALS, "requirements": [unit, unit]})
        plan = write(tmp_path / "a.json", {"contributions": [2 / 3 * unit] * 2})
        result = run("check", path, plan)
        assert (result.code, result.stderr) == (0, ""), unit


# solve


@pytest.fixture
def star(tmp_path: Path) -> Path:
    return write(tmp_path / "star.json", STAR)


SOLUTION_KEYS = [
    "status", "contributions", "total", "lower_bound", "upper_bound", "method", "seconds", "audit",
]  # fmt: skip


def test_solve_finds_all_three_and_the_prices(star: Path) -> None:
    result = run("solve", star, "--json")
    assert (result.code, result.stderr) == (0, "")
    data = strict_json(result.stdout)
    assert list(data) == ["solutions", "price_of_stability", "price_of_fairness"]
    assert list(data["solutions"]) == ["optimal", "stable", "envy-free"]
    for concept, total in (("optimal", 2), ("stable", 4), ("envy-free", 10 / 3)):
        found = data["solutions"][concept]
        assert set(SOLUTION_KEYS) <= set(found)
        assert found["status"] == "optimal"
        assert found["total"] == pytest.approx(total, rel=1e-6)
        assert found["lower_bound"] <= total * (1 + 1e-6)
        assert found["upper_bound"] >= total * (1 - 1e-6)
        assert found["audit"]["feasible"] is True
    assert data["solutions"]["stable"]["audit"]["stable"] is True
    assert data["solutions"]["envy-free"]["audit"]["envy_free"] in ("true", "borderline")
    for price, value in (("price_of_stability", 2), ("price_of_fairness", 5 / 3)):
        assert data[price]["lower"] <= value * (1 + 1e-6)
        assert data[price]["upper"] >= value * (1 - 1e-6)
        assert data[price]["upper"] - data[price]["lower"] <= 1e-5


def test_solve_prints_a_table_the_prices_and_a_reason_for_each_agent(star: Path) -> None:
    result = run("solve", star)
    assert (result.code, result.stderr) == (0, "")
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["agent", "alone", "optimal", "stable", "envy-free"] in rows
    assert ["west", "1", "0", "1", "0.666667"] in rows
    assert ["all", "5", "2", "4", "3.33333"] in rows
    assert "Price of stability: 2.\n" in result.stdout
    assert "Price of fairness: 1.667.\n" in result.stdout
    assert "centre gives 0. Alone it would need 1. The others alre" in result.stdout


def test_solve_is_the_same_twice_but_for_the_seconds(star: Path) -> None:
    def without_seconds(text: str) -> Any:
        data = strict_json(text)
        for solution in data["solutions"].values():
            assert solution.pop("seconds") >= 0
        return data

    first, second = (run("solve", star, "--json").stdout for _ in range(2))
    assert without_seconds(first) == without_seconds(second)
    assert run("solve", star).stdout == run("solve", star).stdout


def test_concepts_may_be_chosen(star: Path) -> None:
    only = strict_json(run("solve", star, "--concept", "stable", "--json").stdout)
    assert list(only["solutions"]) == ["stable"]
    assert only["price_of_stability"] is None
    both = ("--concept", "stable", "--concept", "optimal", "--concept", "stable")
    data = strict_json(run("solve", star, *both, "--json").stdout)
    assert list(data["solutions"]) == ["optimal", "stable"]
    assert data["price_of_stability"]["upper"] == pytest.approx(2)
    assert data["price_of_fairness"] is None


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_what_solve_saves_check_passes(suffix: str, star: Path, tmp_path: Path) -> None:
    plan = tmp_path / f"plan.{suffix}"
    assert run("solve", star, "--save", plan, "--concept", "stable").code == 0
    checked = run("check", star, plan, "--json")
    assert checked.code == 0
    assert strict_json(checked.stdout)["stable"] is True


def test_save_overwrites_no_device_and_not_the_game(star: Path) -> None:
    before = star.read_text()
    assert_refused(run("solve", star, "--save", star), "overwrite")
    assert star.read_text() == before
    assert_refused(run("solve", star, "--save", "/dev/stdout"))


def test_that_no_equilibrium_exists_is_an_answer(tmp_path: Path) -> None:
    # Each helps the next around a triangle: over whole numbers nobody ever settles.
    ring = {
        "model": "linear",
        "requirements": [1, 1, 1],
        "benefits": [[1, 0, 1], [1, 1, 0], [0, 1, 1]],
        "strategies": "integer",
    }
    path = write(tmp_path / "ring.json", ring)
    result = run("solve", path, "--concept", "stable", "--json")
    found = strict_json(result.stdout)["solutions"]["stable"]
    assert (result.code, found["status"]) == (0, "none-exists")
    assert (found["contributions"], found["total"], found["audit"]) == (None, None, None)
    shown = run("solve", path, "--concept", "stable")
    assert shown.code == 0
    assert "Proved: no plan of this kind exists." in shown.stdout


def test_nothing_is_saved_where_there_is_no_allocation(tmp_path: Path) -> None:
    small = {**TWO_HOSPITALS, "limits": [0.1, 0.1]}
    path = write(tmp_path / "game.json", small)
    found = strict_json(run("solve", path, "--json").stdout)["solutions"]
    assert {solution["status"] for solution in found.values()} == {"infeasible"}
    result = run("solve", path, "--save", tmp_path / "plan.json")
    assert result.code == 1
    assert "infeasible" in result.stdout
    assert result.stderr.count("\n") == 1
    assert "nothing was saved" in result.stderr
    assert not (tmp_path / "plan.json").exists()


def test_one_agent_gives_what_it_needs_alone(tmp_path: Path) -> None:
    path = write(
        tmp_path / "game.json", {"model": "linear", "requirements": [3], "benefits": [[2]]}
    )
    data = strict_json(run("solve", path, "--json").stdout)
    for found in data["solutions"].values():
        assert found["contributions"] == [pytest.approx(1.5)]
    assert data["price_of_stability"]["upper"] == pytest.approx(1)


def test_hostile_names_are_harmless_in_a_solution(tmp_path: Path) -> None:
    path = write(tmp_path / "game.json", {**TWO_HOSPITALS, "agents": ["[/]", HOSTILE]})
    assert_harmless(run("solve", path))
    strict_json(run("solve", path, "--json").stdout)


# catalog


def test_the_catalogue_is_listed() -> None:
    listed = strict_json(run("catalog", "--json").stdout)["entries"]
    names = [entry["name"] for entry in listed]
    assert "flower" in names
    assert all(entry["summary"] and entry["source"] for entry in listed)
    table = run("catalog").stdout
    assert all(name in table for name in names)


def test_every_entry_is_a_game_that_can_be_read_back(tmp_path: Path) -> None:
    for entry in strict_json(run("catalog", "--json").stdout)["entries"]:
        result = run("catalog", entry["name"])
        assert (result.code, result.stderr) == (0, "")
        data = strict_json(result.stdout)
        path = write(tmp_path / "game.json", result.stdout)
        nothing = write(tmp_path / "a.json", {"contributions": [0] * len(data["requirements"])})
        assert run("check", path, nothing).code in (0, 1)
        assert run("catalog", entry["name"], "--json").stdout == result.stdout


def test_a_parameter_changes_the_game() -> None:
    sizes = [
        len(
            strict_json(run("catalog", "flower", "--parameter", f"petals={n}").stdout)[
                "requirements"
            ]
        )
        for n in (4, 9)
    ]
    assert sizes == [5, 10]
    cycle = run("catalog", "pac-cycle", "--parameter", "requirement=7/8", "--parameter", "d=1")
    assert strict_json(cycle.stdout)["requirements"] == [0.875] * 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("flowr",), ("flowr",)),
        (("",), ()),
        (("flower", "--parameter", "petals"), ("petals", "NAME=VALUE")),
        (("flower", "--parameter", "petals=x"), ("petals", "x")),
        (("flower", "--parameter", "petals=5"), ("petals",)),
        (("flower", "--parameter", "petals=-4"), ("petals",)),
        (("flower", "--parameter", "leaves=4"), ("leaves",)),
        (("flower", "--parameter", "petals=" + "9" * 5000), ("petals",)),
        (("pac-cycle", "--parameter", "requirement=1e999999999"), ("requirement",)),
        (("flower", "--parameter", "name=4"), ("name",)),
        (("flower", "--parameter", "petals=4", "--parameter", "petals=9"), ("petals", "twice")),
    ],
)
def test_a_wrong_name_or_parameter_is_refused(
    arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    assert_refused(run("catalog", *arguments), *words)


# Names are the user's data.


def assert_harmless(result: Run) -> None:
    """Insist that a name changed nothing but the place where it stands."""
    text = result.stdout + result.stderr
    assert_visible(text)
    assert "[bold]<script>" in text
    assert ":boom:" in text


def test_the_judge_of_hostile_names_objects_to_the_raw_name() -> None:
    with pytest.raises(AssertionError):
        assert_harmless(Run(0, HOSTILE, ""))
    with pytest.raises(AssertionError):
        assert_harmless(Run(0, "<script>", ""))


def test_a_hostile_name_is_shown_as_it_is_written(tmp_path: Path, plan: Path) -> None:
    path = write(tmp_path / "game.json", {**TWO_HOSPITALS, "agents": ["[/]", HOSTILE]})
    result = run("check", path, plan)
    assert result.code == 0
    assert_harmless(result)
    table = [line for line in result.stdout.splitlines() if "…" in line]
    assert table
    assert all(len(line) <= 100 for line in table)
    assert any(line.split() and line.split()[0] == "[/]" for line in result.stdout.splitlines())


@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "latin-1"])
def test_names_that_the_terminal_cannot_show_are_no_fault(
    encoding: str, tmp_path: Path, plan: Path
) -> None:
    names = ["Zürich 病院", "lone \ud800 surrogate"]
    path = write(tmp_path / "game.json", {**TWO_HOSPITALS, "agents": names})
    result = run_process("check", path, plan, env={"PYTHONIOENCODING": encoding})
    assert (result.code, result.stderr) == (0, "")


def test_many_agents_are_shown_in_brief(tmp_path: Path) -> None:
    size = 200
    many = {
        "model": "linear",
        "requirements": [1] * size,
        "benefits": [[float(i == j) for j in range(size)] for i in range(size)],
    }
    path = write(tmp_path / "game.json", many)
    off = {"contributions": [2 if i == 150 else 1 for i in range(size)]}
    result = run("check", path, write(tmp_path / "a.json", off))
    lines = [line for line in result.stdout.splitlines() if line.strip()]
    assert len(lines) < 25
    assert lines[3].split()[:2] == ["agent", "150"]
    assert "185 more" in result.stdout


# The process around a command.


def test_the_module_runs_as_a_program(game: Path, plan: Path) -> None:
    result = run_process("check", game, plan, "--json")
    assert (result.code, result.stderr) == (0, "")
    assert strict_json(result.stdout) == strict_json(run("check", game, plan, "--json").stdout)
    assert_refused(run_process("check", game, "none.json"), "none.json")
    assert_refused(run_process("chekc"), "check")


def test_the_version_and_the_help_are_told() -> None:
    assert run("--version").stdout.startswith("fedaccord ")
    for command in ("solve", "check", "catalog"):
        text = run(command, "--help").stdout
        assert run(command, "--help").code == 0
        assert "--json" in text
    assert "The exit code is 0 for success" in " ".join(run("--help").stdout.split())


@pytest.mark.parametrize("command", [["share"], ["check"], ["template", "plan"]])
def test_the_terminal_breaks_the_lines_of_the_help(command: list[str]) -> None:
    described = run(*command, "--help").stdout.partition("╭")[0]
    (last,) = re.findall(r"(?:^ \S.*\n)+(?=\s*$(?![\s\S]))", described, re.MULTILINE)
    lines = last.splitlines()
    # The next word would not have fitted.
    assert len(lines) > 2
    assert all(len(a.rstrip()) + 1 + len(b.split()[0]) > 79 for a, b in pairwise(lines))


def test_without_colour_on_a_pipe(game: Path, plan: Path) -> None:
    assert "\x1b" not in run_process("check", game, plan).stdout


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_told_in_one_sentence(unbuffered: str, game: Path, plan: Path) -> None:
    for arguments in (("check", game, plan), ("check", game, plan, "--json"), ("--help",)):
        with open("/dev/full", "w") as full:
            result = run_process(*arguments, stdout=full, env={"PYTHONUNBUFFERED": unbuffered})
        assert_refused(
            result, "No space left" if "--help" in arguments else "to standard output: No"
        )


@pytest.mark.parametrize("option", ["--save", "--report"])
def test_a_file_that_does_not_fit_is_named(option: str, game: Path, tmp_path: Path) -> None:
    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))

    file = tmp_path / ("plan.json" if option == "--save" else "page.html")
    result = run_process("solve", game, option, file, preexec_fn=limit_files)
    assert_refused(result, f"cannot write {file}: File too large")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".fed")] == []


@pytest.mark.parametrize("home", ["", "/dev/null"])
def test_a_page_needs_no_home(home: str, game: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    without = {"HOME": home, "MPLCONFIGDIR": "", "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": ""}
    result = run_process("solve", game, "--report", page, env=without)
    assert (result.code, result.stderr) == (0, f"fedaccord: the page is in {page}.\n")


def test_closed_streams_are_no_fault(game: Path, plan: Path) -> None:
    command = [sys.executable, "-m", "fedaccord", "check", str(game), str(plan)]
    source = str(Path(__file__).parents[2] / "src")
    for streams in (">&-", "2>&- >&-", "<&- >&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f'"$@" {streams}', "sh", *command],
            env={**os.environ, "PYTHONPATH": source},
            stderr=subprocess.PIPE,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b""), streams


def test_what_libraries_print_stays_out_of_the_output(game: Path, plan: Path) -> None:
    code = (
        "import ctypes, fedaccord.cli as cli, fedaccord.games.files as files\n"
        "c, read = ctypes.CDLL(None), files.read_game\n"
        "def noisy(path):\n"
        "    c.printf(b'chatter of a solver\\n')\n"
        "    return read(path)\n"
        "files.read_game = noisy\n"
        "cli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "check", str(game), str(plan), "--json"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert strict_json(done.stdout)["stable"] is True
    assert "chatter" not in done.stdout


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_early_is_no_fault(unbuffered: str, tmp_path: Path) -> None:
    size = 20_000
    (tmp_path / "game.json").write_text(
        json.dumps(
            {"model": "discovery", "requirements": [1] * size, "distributions": [[1]] * size}
        )
    )
    plan = write(tmp_path / "plan.json", {"contributions": [1] * size})
    done = subprocess.run(
        ["bash", "-c", '"$@" | head -c 10; echo ${PIPESTATUS[0]}', "bash", sys.executable, "-m",
         "fedaccord", "check", str(tmp_path / "game.json"), str(plan), "--json"],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
            "PYTHONUNBUFFERED": unbuffered,
        },
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout[10:].strip() == "141"


def test_an_interrupt_ends_in_one_line(tmp_path: Path) -> None:
    # A pipe that nobody writes to keeps the command waiting for its game.
    pipe = tmp_path / "game.json"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, "-m", "fedaccord", "check", str(pipe), str(pipe)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Opening the writing end returns once the command has opened the reading end.
    with pipe.open("w"):
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "fedaccord: interrupted.\n")


def test_what_takes_long_shows_progress_on_a_terminal_and_only_there(
    tmp_path: Path, plan: Path
) -> None:
    pipe = tmp_path / "game.json"
    os.mkfifo(pipe)
    terminal, inside = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "fedaccord", "check", str(pipe), str(plan), "--json"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src"), "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=inside,
        text=True,
    )
    os.close(inside)
    with pipe.open("w") as end:
        # The game is held back until there is something to see, so this ends only if there is.
        seen = b""
        while b"reading " not in seen:
            assert select.select([terminal], [], [], 60)[0], "nothing was shown for a minute"
            seen += os.read(terminal, 1024)
        json.dump(TWO_HOSPITALS, end)
    out, _ = process.communicate(timeout=60)
    os.close(terminal)
    assert process.returncode == 0
    assert strict_json(out)["stable"] is True


def test_the_same_input_gives_the_same_output(game: Path, plan: Path) -> None:
    first, second = (run_process("check", game, plan) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("solve",), "The game file,"),
        (("audit",), "The federation's config."),
        (("catalog",), "Name of a game."),
        (("flower", "init"), "Folder to create."),
    ],
)
def test_the_help_says_what_arguments_are(command: tuple[str, ...], words: str) -> None:
    shown = " ".join(run(*command, "--help").stdout.split())
    arguments = shown.partition("Arguments")[2].partition("Options")[0]
    assert words in arguments


def test_an_interrupt_while_commands_are_loaded_is_one_sentence(monkeypatch, capsys):
    class Interrupt:
        def find_spec(self, name, *_):
            if name == "fedaccord.cli":
                raise KeyboardInterrupt

    for name in [name for name in sys.modules if name.startswith("fedaccord.cli")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("sys.meta_path", [Interrupt(), *sys.meta_path])
    with pytest.raises(SystemExit) as left:
        importlib.import_module("fedaccord.__main__").main()
    assert left.value.code == 130
    assert capsys.readouterr().err == "fedaccord: interrupted.\n"
