"""`fedaccord flower init` writes an app, once, that runs with the commands of its README."""

import contextlib
import csv
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import assert_refused, assert_visible, run, run_process
from documents import blocks, same
from federation.flower.deployment import SETTINGS
from federation.flower.forking import write_shims
from federation.flower.in_process import InProcessGrid, Node
from flwr.app import Context, RecordDict
from flwr.supercore.utils import is_valid_name
from numpy.testing import assert_allclose, assert_array_equal
from processes import free_port, free_ports, needs_proc, processes, told

from fedaccord._io import folders
from fedaccord.allocation import Allocation
from fedaccord.errors import InputError
from fedaccord.federation import Client, FedAvg, Federation, MwFed, Pledged, Release, train
from fedaccord.federation.flower import templates
from fedaccord.federation.flower.templates import FILES, app_names, write_app

ROOT = Path(__file__).parents[3]
# A machine that is busy with other tests may be very slow.
PATIENCE = 900.0
# Whatever would ask the network finds nobody there.
NO_NETWORK = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
LINE = re.compile(r"^(\w+) +(\d+) +(\d+) +(\d\.\d\d) +(reached|missed)$", re.MULTILINE)
# A sum in another order may tell one of a hospital's hundred validation points otherwise.
ONE_POINT = 0.0101


def everything(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def config_of(folder):
    written = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    return written["tool"]["flwr"]["app"]["config"]


def node_context(config, **node_config):
    named = {key.replace("_", "-"): value for key, value in node_config.items()}
    return Context(
        run_id=1, node_id=1, node_config=named, state=RecordDict(), run_config=dict(config)
    )


# Names.


@pytest.mark.parametrize(
    ("folder", "project", "package"),
    [
        ("hospitals", "hospitals", "hospitals"),
        ("my-app", "my-app", "my_app"),
        ("My App (2)", "my-app-2", "my_app_2"),
        ("Universitätsklinik Köln", "universitatsklinik-koln", "universitatsklinik_koln"),
        ("Große Straße", "grosse-strasse", "grosse_strasse"),
        ("2026-trial", "app-2026-trial", "app_2026_trial"),
        ("..hidden..", "hidden", "hidden"),
        ("a/b".replace("/", "\\"), "a-b", "a_b"),
        ("class", "class-app", "class_app"),
        ("json", "json-app", "json_app"),
        ("torch", "torch-app", "torch_app"),
        ("flwr", "flwr-app", "flwr_app"),
        ("x" * 300, "x" * 32, "x" * 32),
        ("a" * 31 + " bcd", "a" * 31, "a" * 31),
    ],
)
def test_an_app_is_called_as_nearly_as_its_folder_as_flower_and_python_allow(
    folder, project, package
):
    assert app_names(folder) == (project, package)
    assert is_valid_name(project)[0]
    assert package.isidentifier()


@pytest.mark.parametrize("folder", ["", "...", "!?", "日本", "Харків"])
def test_a_folder_whose_name_makes_no_package_is_refused(folder):
    with pytest.raises(InputError, match="choose another name"):
        app_names(folder)


def test_no_folder_is_not_this_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("", " "):
        assert_refused(run("flower", "init", folder), "the app has no folder; name a new one")
    assert list(tmp_path.iterdir()) == []


def test_this_folder_gives_its_own_name(tmp_path, monkeypatch):
    (tmp_path / "Our Trial").mkdir()
    monkeypatch.chdir(tmp_path / "Our Trial")
    assert write_app(".").package == "our_trial"
    assert (tmp_path / "Our Trial" / "our_trial" / "task.py").is_file()


# What is written.


def test_the_command_writes_the_app_and_says_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("flower", "init", "Vier Häuser")
    assert (result.code, result.stderr) == (0, "")
    assert "vier_hauser" in result.stdout
    assert "README.md" in result.stdout
    assert sorted(everything(tmp_path / "Vier Häuser")) == [
        ".flwr/config.toml",
        ".gitignore",
        "README.md",
        "plan.csv",
        "pyproject.toml",
        "vier_hauser/__init__.py",
        "vier_hauser/client_app.py",
        "vier_hauser/server_app.py",
        "vier_hauser/task.py",
    ]


def test_no_file_of_the_template_is_forgotten():
    folder = Path(templates.__file__).with_name("template")
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert there == set(FILES)


def test_a_wheel_has_the_template():
    builders = pytest.importorskip("hatchling.builders.wheel")
    packed = builders.WheelBuilder(str(ROOT)).recurse_included_files()
    places = {file.distribution_path for file in packed}
    assert {f"fedaccord/federation/flower/template/{name}" for name in FILES} <= places


def test_no_blank_is_left_to_be_filled_in(tmp_path):
    written = everything(write_app(tmp_path / "trial").folder)
    assert not [name for name, text in written.items() if b"{{" in text or b"}}" in text]


def test_every_setting_that_the_server_reads_is_declared(tmp_path):
    app = write_app(tmp_path / "trial")
    code = (app.folder / app.package / "server_app.py").read_text(encoding="utf-8")
    assert set(re.findall(r'config\["([^"]+)"\]', code)) == set(config_of(app.folder))


@pytest.mark.parametrize(
    "command", [["format", "--check"], ["check", "--select", "E,W,F,I,UP,B,C4,SIM,RUF,BLE,NPY,D1"]]
)
def test_the_code_of_the_app_is_as_tidy_as_ours(tmp_path, command):
    app = write_app(tmp_path / "trial")
    options = ["--isolated", "--line-length", "100", "--ignore", "D107"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command, *options[: 3 if command[0] == "format" else 5]],
        cwd=app.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "name", ["plain", "with space", 'quote " and \\ slash', "Köln", "new\nline"]
)
def test_flowers_config_names_the_authority_wherever_the_app_is(tmp_path, name):
    (tmp_path / name).mkdir()
    app = write_app(tmp_path / name / "trial")
    written = tomllib.loads((app.folder / ".flwr" / "config.toml").read_text(encoding="utf-8"))
    authority = str(tmp_path / name / "trial" / "keys" / "ca.crt")
    assert written["superlink"]["deployment"]["root-certificates"] == authority


# What is refused.


def test_a_folder_that_has_something_is_left_as_it_is(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert_refused(run("flower", "init", tmp_path), "notes.txt", "not empty", "name a new folder")
    assert everything(tmp_path) == {"notes.txt": b"mine"}


def test_an_app_is_not_written_over(tmp_path):
    app = write_app(tmp_path / "trial")
    (app.folder / "plan.csv").write_text("changed")
    before = everything(app.folder)
    assert_refused(run("flower", "init", app.folder), "not empty")
    assert everything(app.folder) == before


@pytest.mark.parametrize("name", [".gitignore", ".flwr"])
def test_hidden_files_of_the_apps_own_are_not_written_over(tmp_path, name):
    (tmp_path / name).write_text("mine")
    assert_refused(run("flower", "init", tmp_path), name)
    assert everything(tmp_path) == {name: b"mine"}


def test_other_hidden_files_do_not_matter(tmp_path):
    folder = tmp_path / "trial"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref")
    assert run("flower", "init", folder).code == 0
    assert (folder / ".git" / "HEAD").read_text() == "ref"
    assert (folder / "README.md").is_file()


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "trial").write_text("mine")
    assert_refused(run("flower", "init", tmp_path / "trial"), "is not a folder; name another")
    assert_refused(run("flower", "init", tmp_path / "trial" / "app"), "Not a directory")
    assert everything(tmp_path) == {"trial": b"mine"}


def test_a_link_that_leads_nowhere_is_no_folder(tmp_path):
    (tmp_path / "trial").symlink_to(tmp_path / "nowhere")
    assert_refused(run("flower", "init", tmp_path / "trial"), "is not a folder; name another")


def test_the_root_of_all_folders_has_no_name():
    assert_refused(run("flower", "init", "/"), "choose another name")


def test_a_name_too_long_for_a_folder_is_told(tmp_path):
    assert_refused(run("flower", "init", tmp_path / ("x" * 300)), "File name too long")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems take no such names")
def test_a_path_that_is_no_text_is_told(tmp_path):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    os.mkdir(folder)
    result = run("flower", "init", f"{folder}/trial")
    assert_refused(result, "UTF-8")
    assert os.listdir(folder) == []


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_folder_that_may_not_be_written_to_is_told(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    if os.geteuid() == 0:
        # The superuser may write everywhere, but not here.
        closed = Path("/proc")
    result = run("flower", "init", closed / "trial")
    assert_refused(result, "cannot write an app to")
    assert everything(tmp_path) == {}


def failing_after(count, fault):
    """Give a way to write files that fails in the middle of the file after so many."""
    written = []

    def write_new(path, text, made):
        written.append(path)
        if len(written) <= count:
            return plainly(path, text, made)
        plainly(path, text[: len(text) // 2], made)
        raise fault

    plainly = folders.write_new
    return write_new


@pytest.mark.parametrize("count", [0, 3, len(FILES) - 1])
@pytest.mark.parametrize("exists", [False, True])
def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch, count, exists):
    folder = tmp_path / "deep" / "trial"
    if exists:
        folder.mkdir(parents=True)
    full = OSError(28, "No space left on device")
    monkeypatch.setattr(folders, "write_new", failing_after(count, full))
    assert_refused(run("flower", "init", folder), "No space left on device")
    assert list(tmp_path.rglob("*")) == ([folder.parent, folder] if exists else [])


def test_an_interrupt_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "write_new", failing_after(4, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        write_app(tmp_path / "trial")
    assert list(tmp_path.iterdir()) == []


def test_who_is_quicker_is_not_written_over(tmp_path, monkeypatch):
    """Another process writes a file between our look and ours."""
    folder = tmp_path / "trial"
    folder.mkdir()
    look = folders.check_folder

    def slow_look(root, *given):
        look(root, *given)
        (root / "plan.csv").write_text("mine")

    monkeypatch.setattr(folders, "check_folder", slow_look)
    assert_refused(run("flower", "init", folder), "File exists")
    assert everything(folder) == {"plan.csv": b"mine"}


# The app in this process.


@pytest.fixture(scope="module")
def local_app(tmp_path_factory):
    """The app as modules of this process, and its folder."""
    app = write_app(tmp_path_factory.mktemp("local") / "template-under-test")
    sys.path.insert(0, str(app.folder))
    try:
        names = ("task", "client_app", "server_app")
        modules = [importlib.import_module(f"{app.package}.{name}") for name in names]
    finally:
        sys.path.remove(str(app.folder))
    return app.folder, *modules


def federation_of(task, config):
    """Give the hospitals of an app to the local loop, with the weights that its server sends."""
    clients = []
    for place, name in enumerate(task.SITES):
        points, validation = task.load_data(node_context({}, partition_id=place))
        clients.append(Client(name, points.tensors, validation.tensors, config["requirement"]))
    with torch.random.fork_rng():
        torch.manual_seed(config["seed"])
        start = {name: value.numpy() for name, value in task.Net().state_dict().items()}
    return Federation(clients, task.Net, weights=start)


def trained_locally(task, config, rounds, plan=None):
    """Train as the app's config says, in the local loop."""
    kinds = {
        "mw-fed": MwFed,
        "fedavg": FedAvg,
        "plan": FedAvg,
        "pledged": Pledged,
        "release": Release,
    }
    algorithm = kinds[config["algorithm"]](
        rounds=rounds,
        batch_size=config["batch-size"],
        local_batches=config["local-batches"],
        learning_rate=config["learning-rate"],
        form="local",
        evaluate_every=1,
    )
    federation = federation_of(task, config)
    return train(federation, algorithm, contributions=plan, seed=config["seed"])


def rows_of(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def assert_history_is(path, local):
    rows = rows_of(path)
    shape = (len(rows) // len(local.clients), len(local.clients))
    assert [row["client"] for row in rows] == list(local.clients) * shape[0]

    def column(name):
        return np.array([float(row[name]) for row in rows]).reshape(shape)

    assert_array_equal(column("samples"), local.samples)
    assert_array_equal(column("unique"), local.unique)
    assert_allclose(column("accuracy"), local.accuracy, rtol=0, atol=ONE_POINT)


def assert_table_is(printed, local):
    lines = LINE.findall(printed)
    assert [line[0] for line in lines] == list(local.clients)
    assert [int(line[1]) for line in lines] == local.samples.sum(axis=0).tolist()
    assert [int(line[2]) for line in lines] == local.unique[-1].tolist()
    accuracies = [float(line[3]) for line in lines]
    assert_allclose(accuracies, local.final, rtol=0, atol=ONE_POINT)
    reached = [float(line[3]) >= goal for line, goal in zip(lines, local.requirements, strict=True)]
    assert [line[4] == "reached" for line in lines] == reached
    assert f"after {len(local.samples)} rounds" in printed


def run_here(local_app, folder, monkeypatch, **changes):
    """Run the app on an in-process grid whose nodes are in no order; give its config."""
    app_folder, _, client_app, server_app = local_app
    monkeypatch.chdir(folder)
    shutil.copy(app_folder / "plan.csv", folder)
    changed = {key.replace("_", "-"): value for key, value in changes.items()}
    config = {**config_of(app_folder), **changed}
    places = (2, 0, 3, 1)
    grid = InProcessGrid([Node(client_app.app, node_id=n + 10, partition_id=n) for n in places])
    server_app.app(grid=grid, context=node_context(config))
    return config


@pytest.mark.parametrize("algorithm", ["mw-fed", "fedavg"])
def test_the_app_gives_the_local_loops_numbers(local_app, tmp_path, monkeypatch, capsys, algorithm):
    config = run_here(local_app, tmp_path, monkeypatch, algorithm=algorithm, seed=3)
    local = trained_locally(local_app[1], config, config["num-server-rounds"])
    assert (np.ptp(local.samples, axis=1) > 0).any() == (algorithm == "mw-fed")
    assert_history_is(tmp_path / "history.csv", local)
    assert_table_is(capsys.readouterr().out, local)


def test_a_plan_is_kept_to_and_training_ends_at_the_goal(local_app, tmp_path, monkeypatch, capsys):
    config = run_here(
        local_app, tmp_path, monkeypatch, algorithm="plan", history_file="planned.csv"
    )
    rounds = len(rows_of(tmp_path / "planned.csv")) // 4
    assert rounds < config["num-server-rounds"]
    plan = Allocation.load(tmp_path / "plan.csv")
    local = trained_locally(local_app[1], config, rounds, plan)
    satisfied = (local.accuracy >= local.requirements).all(axis=1)
    assert satisfied.tolist() == [False] * (rounds - 1) + [True]
    assert local.unique[-1].tolist() == [120, 60, 60, 60]
    assert_history_is(tmp_path / "planned.csv", local)
    assert_table_is(capsys.readouterr().out, local)


@pytest.mark.parametrize("algorithm", ["pledged", "release"])
def test_the_app_ends_when_its_algorithm_does(local_app, tmp_path, monkeypatch, capsys, algorithm):
    config = run_here(local_app, tmp_path, monkeypatch, algorithm=algorithm, num_server_rounds=30)
    plan = Allocation.load(tmp_path / "plan.csv") if algorithm == "pledged" else None
    local = trained_locally(local_app[1], config, 30, plan)
    # Ten times 300 points, 4 * 64 samples a round.
    assert len(local.samples) == 12 if algorithm == "pledged" else len(local.samples) < 30
    assert_history_is(tmp_path / "history.csv", local)
    assert_table_is(capsys.readouterr().out, local)


def test_who_misses_its_goal_is_told_apart(local_app, tmp_path, monkeypatch, capsys):
    run_here(local_app, tmp_path, monkeypatch, num_server_rounds=1)
    assert [line[4] for line in LINE.findall(capsys.readouterr().out)] == ["missed"] * 4


def test_an_algorithm_that_there_is_not_is_refused_by_name(local_app, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="mw-fed, fedavg, plan, pledged, release"):
        run_here(local_app, tmp_path, monkeypatch, algorithm="mwfed")


def test_the_hospitals_share_no_image(local_app, monkeypatch):
    """Without noise all images are scikit-learn's own, no two of which are the same."""
    task = local_app[1]
    noiseless = {name: (points, 0.0) for name, (points, _) in task.SITES.items()}
    monkeypatch.setattr(task, "SITES", noiseless)
    monkeypatch.setattr(task, "dealt_digits", task.dealt_digits.__wrapped__)
    images, sizes = [], {}
    for name in noiseless:
        points, validation = task.load_data(node_context({}, name=name))
        sizes[name] = len(points), len(validation)
        images += [points.tensors[0], validation.tensors[0]]
    assert len(torch.unique(torch.cat(images), dim=0)) == 300 + 200 + 150 + 100 + 4 * 100
    assert sizes == {
        "University": (300, 100),
        "City": (200, 100),
        "Harbour": (150, 100),
        "Valley": (100, 100),
    }


def test_a_node_that_says_its_name_has_the_data_of_that_hospital(local_app):
    task = local_app[1]
    for place, name in enumerate(task.SITES):
        by_name, by_place = node_context({}, name=name), node_context({}, partition_id=place)
        assert task.site(by_name) == task.site(by_place) == name
        for mine, same_ones in zip(task.load_data(by_name), task.load_data(by_place), strict=True):
            assert torch.equal(mine.tensors[0], same_ones.tensors[0])


# The guide for apps that are there already.


@pytest.fixture(scope="module")
def guide():
    """The apps of the guide, in its order, and all that it defines."""
    text = (ROOT / "docs" / "how-to" / "flower.md").read_text(encoding="utf-8")
    namespace = {"__name__": "guide"}
    apps = []
    for block in blocks(text):
        if block.language == "python" and ">>>" not in block.body:
            exec(compile(block.body, f"flower.md, line {block.line}", "exec"), namespace)
            if "\napp = " in block.body:
                apps.append(namespace["app"])
    server, *clients = apps
    assert len(clients) == 3
    return server, clients, namespace


def run_guide(server, client, folder, monkeypatch):
    """Run the guide's server with one kind of client; give the weights it began with."""
    monkeypatch.chdir(folder)
    grid = InProcessGrid([Node(client, node_id=n + 10, partition_id=n) for n in (1, 2, 0)])
    sent = []
    send = grid.send_and_receive

    def heard(messages, **options):
        messages = list(messages)
        sent.extend(messages)
        return send(messages, **options)

    monkeypatch.setattr(grid, "send_and_receive", heard)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        server(grid=grid, context=node_context({}))
    first = next(message for message in sent if "arrays" in message.content)
    return {name: array.numpy() for name, array in first.content["arrays"].items()}


def test_the_app_of_the_guide_gives_the_local_loops_numbers(guide, tmp_path, monkeypatch, capsys):
    server, clients, namespace = guide
    weights = run_guide(server, clients[0], tmp_path, monkeypatch)
    local = namespace["tried"](weights)
    assert (np.ptp(local.samples, axis=1) > 0).any()
    assert_history_is(tmp_path / "history.csv", local)
    assert "20 rounds" in capsys.readouterr().out


def test_a_client_app_of_ones_own_does_what_the_helper_does(guide, tmp_path, monkeypatch):
    """Both train with the guide's own function, on the samples that are drawn."""
    server, (_, helped, own), _ = guide
    histories = []
    for name, client in (("helped", helped), ("own", own)):
        (tmp_path / name).mkdir()
        run_guide(server, client, tmp_path / name, monkeypatch)
        histories.append(rows_of(tmp_path / name / "history.csv"))
    assert histories[0] == histories[1]
    accuracies = [float(row["accuracy"]) for row in histories[0]]
    assert np.mean(accuracies[-3:]) > np.mean(accuracies[:3]) + 0.1


# The commands of its README.


def commands_of(readme, section):
    """Give the commands of a section, as one script."""
    part = readme.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return "".join(block.body for block in blocks(part) if block.language == "bash")


def with_own_ports(folder):
    """Change the ports of an app to ones that are free: other tests have theirs."""
    ports = {"port=9120": f"port={free_ports(6)}", "9110": str(free_port())}
    ports["9120"] = str(free_port())
    for name in ("README.md", ".flwr/config.toml"):
        text = (folder / name).read_text(encoding="utf-8")
        for old, new in ports.items():
            text = text.replace(old, new)
        (folder / name).write_text(text, encoding="utf-8")


def processes_of(folder):
    """List the processes whose Flower keeps its files in a folder."""
    home = f"FLWR_HOME={folder}/".encode()
    return [pid for pid in processes() if home in told(pid, "environ")]


def wait_until_gone(folder):
    deadline = time.monotonic() + 180
    while (left := processes_of(folder)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return not left


def run_section(folder, section, **settings):
    """Run the commands of a section of an app's README, and give what they print."""
    readme = (folder / "README.md").read_text(encoding="utf-8")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, **SETTINGS, **NO_NETWORK, "PATH": path, **settings}
    output = folder.parent / f"{section}.txt"
    with output.open("w") as file:
        done = subprocess.run(
            ["bash", "-e", "-c", commands_of(readme, section)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            timeout=PATIENCE,
            check=False,
        )
    printed = output.read_text(errors="replace")
    logs = "".join(f"--- {p.name}\n{p.read_text()[-2000:]}" for p in sorted(folder.glob("*.log")))
    assert done.returncode == 0, printed[-5000:] + logs
    return printed


@pytest.fixture(scope="module")
def new_app(tmp_path_factory):
    """Make apps as a user does, each in an empty folder."""
    made = []

    def make(name):
        folder = tmp_path_factory.mktemp("empty")
        made.append(folder)
        assert run_process("flower", "init", name, cwd=folder).code == 0
        with_own_ports(folder / name)
        return folder / name

    yield make
    for folder in made:
        for pid in processes_of(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def simulated(new_app):
    """What the README's simulation prints and leaves."""
    folder = new_app("Vier Häuser")
    with tempfile.TemporaryDirectory(prefix="fa-") as ray:
        printed = run_section(folder, "Simulation", RAY_TMPDIR=ray)
        # Ray's files go only when its processes have.
        ended = wait_until_gone(folder)
    return folder, printed, ended


@pytest.fixture(scope="module")
def deployed(new_app):
    """What the README's deployment prints and leaves; its processes are forked."""
    folder = new_app("hospitals")
    with tempfile.TemporaryDirectory(prefix="fa-") as short:
        address = str(Path(short) / "forking")
        write_shims(Path(short) / "bin", address)
        script = Path(__file__).with_name("forking.py")
        with (folder.parent / "forking.txt").open("w") as output:
            forking = subprocess.Popen(
                [sys.executable, script, address],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env={**os.environ, **SETTINGS},
            )
        try:
            deadline = time.monotonic() + PATIENCE
            while not Path(address).exists():
                assert forking.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
            here = Path(sys.executable).parent
            path = os.pathsep.join([f"{short}/bin", str(here), os.environ["PATH"]])
            printed = run_section(folder, "Deployment", PATH=path)
        finally:
            forking.stdin.close()
            forking.wait(PATIENCE)
    return folder, printed


def task_of(folder, package):
    spec = importlib.util.spec_from_file_location(f"{package}_task", folder / package / "task.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "history"), [("mw-fed", "history.csv"), ("plan", "history-plan.csv")]
)
def test_the_simulation_of_the_readme_gives_the_local_loops_numbers(simulated, algorithm, history):
    folder, printed, _ = simulated
    config = {**config_of(folder), "algorithm": algorithm}
    plan = Allocation.load(folder / "plan.csv") if algorithm == "plan" else None
    rounds = len(rows_of(folder / history)) // 4
    assert (rounds < config["num-server-rounds"]) == (algorithm == "plan")
    local = trained_locally(task_of(folder, "vier_hauser"), config, rounds, plan)
    assert_history_is(folder / history, local)
    first, second = re.split(r"^after ", printed, flags=re.MULTILINE)[1:]
    assert_table_is("after " + (first if algorithm == "mw-fed" else second), local)


@pytest.mark.slow
def test_the_table_in_the_readme_is_of_the_kind_that_is_printed(simulated):
    folder, printed, _ = simulated
    readme = (folder / "README.md").read_text(encoding="utf-8")
    (shown,) = (block.body for block in blocks(readme) if block.language == "text")
    start = printed.index("after ", printed.index("Final results"))
    made = "".join(printed[start:].splitlines(keepends=True)[: len(shown.splitlines())])
    assert same(shown, made, measured=True)


@pytest.mark.slow
@needs_proc
def test_the_simulation_ends_when_the_readme_says_so(simulated):
    assert simulated[2]


@pytest.mark.slow
def test_the_simulation_leaves_flowers_files_in_the_app(simulated):
    assert (simulated[0] / ".flwr" / "apps").is_dir()


@pytest.mark.slow
def test_the_deployment_of_the_readme_gives_the_local_loops_numbers(deployed):
    folder, printed = deployed
    local = trained_locally(task_of(folder, "hospitals"), config_of(folder), 2)
    assert_history_is(folder / "history.csv", local)
    assert_table_is(printed, local)


@pytest.mark.slow
def test_no_key_leaves_the_folder_of_keys(deployed):
    """What Flower unpacked of the app, as the nodes got it, is code and words only."""
    folder, _ = deployed
    unpacked = [p for p in (folder / ".flwr" / "apps").rglob("*") if p.is_file()]
    assert {p.suffix for p in unpacked} >= {".py", ".toml", ".md"}
    private = [p.read_bytes() for p in (folder / "keys").rglob("*.key")]
    assert len(private) == 6
    assert not [p for p in unpacked if p.read_bytes() in private]
    assert not [p for p in unpacked if "key" in p.name.lower()]


def test_what_the_command_says_hides_nothing(tmp_path):
    result = run("flower", "init", tmp_path / "a\u202eb\u001b")
    assert result.code == 0
    assert_visible(result.stdout)
