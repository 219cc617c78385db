"""A recipe makes a job of NVFlare's with fedaccord at both ends, and the user's files."""

import json

import pytest

pytest.importorskip("nvflare", reason="needs NVFlare (the extra nvflare)")

from federation.nvflare.in_process import GOALS

from fedaccord.errors import InputError
from fedaccord.federation import MwFed
from fedaccord.federation.nvflare import AlgorithmRecipe


def recipe_in(folder, **options):
    (folder / "task.py").write_text("")
    given = {"files": [folder / "task.py"], "plan": dict.fromkeys(GOALS, 8), **options}
    return AlgorithmRecipe(MwFed(form="local"), GOALS, "task:Net", "task:load_data", **given)


def test_a_job_has_the_controller_the_executor_and_the_files(tmp_path):
    recipe_in(tmp_path, interval=0.25, min_clients=2).export(str(tmp_path / "jobs"))
    job = tmp_path / "jobs" / "fedaccord"
    assert json.loads((job / "meta.json").read_text())["min_clients"] == 2
    (config,) = job.rglob("config_fed_server.json")
    server = json.loads(config.read_text())
    (workflow,) = server["workflows"]
    assert workflow["path"] == "fedaccord.federation.nvflare.controller.AlgorithmController"
    assert workflow["args"]["plan"]["contributions"] == [8, 8, 8]
    assert server["server"] == {"task_request_interval": 0.25}
    (config,) = job.rglob("config_fed_client.json")
    (executor,) = json.loads(config.read_text())["executors"]
    assert executor["tasks"] == ["introduce", "train", "validate"]
    assert executor["executor"]["args"]["data"] == "task:load_data"
    # The user's file travels with the job, and fedaccord does not.
    assert {path.name for path in job.rglob("*.py")} == {"task.py"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"files": ["nowhere.py"]}, "nowhere.py is not there"),
        ({"interval": 0}, "interval must be"),
        ({"plan": {"site-1": 3}}, "site-2"),
        ({"site": {"may_report": ["names"]}}, "may_report knows train-loss, label-counts"),
    ],
)
def test_what_a_job_could_not_keep_is_refused(tmp_path, options, words):
    with pytest.raises(InputError, match=words):
        recipe_in(tmp_path, **options)
