"""In NVFlare's simulator an algorithm does, round by round, what it does in the local loop.

One job runs all algorithms, one after the other, because starting the simulator takes longest.
"""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="needs NVFlare (the extra nvflare)")

from federation.nvflare.agreement import assert_agree, run_locally
from federation.nvflare.in_process import GOALS, LOSS
from nvflare.recipe.sim_env import SimEnv

from fedaccord.federation import Earned, FedAvg, MwFed
from fedaccord.federation.nvflare import (
    AlgorithmController,
    AlgorithmRecipe,
    load_run,
)

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
SEED = 5
COMMON = {"batch_size": 5, "learning_rate": 0.03}
# By the folder of its run: an algorithm, and how many samples each site is to give.
RUNS = {
    "fedavg": (FedAvg(rounds=3, evaluate_every=2, **COMMON), (8, 10, 40)),
    "mw-fed": (MwFed(rounds=3, form="local", goal_points=20, **COMMON), (8, 10, 40)),
    "earned": (Earned(rounds=50, passes=1.0, evaluate_every=3, **COMMON), (20, 10, 20)),
}


class Algorithms(AlgorithmRecipe):
    """The job of a recipe, with a controller for each further run."""

    def __init__(self) -> None:
        network, data = "task:make_network", "task:load_data"
        (first, *others) = (
            {
                "algorithm": algorithm,
                "requirements": GOALS,
                "model": network,
                "plan": dict(zip(GOALS, plan, strict=True)),
                "seed": SEED,
                "ask_for": [LOSS],
                "folder": folder,
            }
            for folder, (algorithm, plan) in RUNS.items()
        )
        super().__init__(
            data=data,
            files=[HERE / "task.py"],
            site={"may_report": [LOSS]},
            interval=0.02,
            name="job",
            **first,
        )
        for settings in others:
            self._job.to_server(AlgorithmController(**settings))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Run the job, and return the folder of the server's run."""
    work = tmp_path_factory.mktemp("nvflare")
    found = Algorithms().execute(SimEnv(clients=list(GOALS), workspace_root=str(work)))
    return Path(found.get_result()) / "server" / "simulate_job"


@pytest.mark.parametrize("name", RUNS)
def test_rounds_agree_with_the_local_loop(folder, name):
    algorithm, plan = RUNS[name]
    result = load_run(folder / name)
    local = run_locally(algorithm, plan, seed=SEED, pledges=name == "earned")
    assert_agree(result.history, local)
    assert result.remarks == ()
    assert (result.history.unique[-1] <= plan).all()


def test_who_is_short_of_its_goal_draws_more(folder):
    samples = load_run(folder / "mw-fed").history.samples
    assert samples[0].tolist() == [5, 5, 5]
    assert samples[-1, 0] > 5 > samples[-1, 1]


def test_a_site_that_stops_delivering_keeps_an_old_model(folder):
    """Site 1 has 8 of the 20 points that it pledged."""
    history = load_run(folder / "earned").history
    assert list(history.checkpoints) == ["site-1"]
    kept = history.checkpoints["site-1"]
    assert max(np.abs(kept[n] - w).max() for n, w in history.weights.items()) > 1e-3
    assert history.unique[-1].tolist() == [8, 10, 20]


def test_the_history_is_a_table_too(folder):
    lines = (folder / "fedavg" / "history.csv").read_text().splitlines()
    assert lines[0] == "round,client,samples,unique,loss,accuracy"
    assert len(lines) == 1 + 3 * len(GOALS)
