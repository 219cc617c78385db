"""Make the files in docs/how-to/nvflare with NVFlare's own simulator: python make.py

NVFlare 2.9.0 wrote cross_val_results.json (CrossSiteEval after FedAvg; the sites submit models that
learnt alone) and statistics.json (FedStatsRecipe). They are here as it wrote them.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from nvflare.app_common.workflows.cross_site_eval import CrossSiteEval
from nvflare.app_common.workflows.fedavg import FedAvg
from nvflare.app_opt.pt.job_config.model import PTModel
from nvflare.job_config.api import FedJob
from nvflare.recipe.fedstats import FedStatsRecipe
from nvflare.recipe.sim_env import SimEnv

HERE = Path(__file__).parent
TO = HERE.parents[2] / "docs" / "how-to" / "nvflare"
sys.path.insert(0, str(HERE))

from parts import SIZES, Digits, Net, Trainer  # noqa: E402


def make_cross_validation(work: Path) -> None:
    job = FedJob(name="cross", min_clients=len(SIZES))
    persistor = job.to_server(PTModel(Net()))["persistor_id"]
    job.to_server(FedAvg(num_clients=len(SIZES), num_rounds=10, persistor_id=persistor))
    job.to_server(CrossSiteEval(persistor_id=persistor))
    job.to_clients(Trainer())
    job.simulator_run(str(work), clients=list(SIZES), threads=len(SIZES))
    (found,) = work.rglob("cross_val_results.json")
    shutil.copyfile(found, TO / "cross_val_results.json")


def make_statistics(work: Path) -> None:
    histogram = {"label": {"bins": 10, "range": [-0.5, 9.5]}, "pixel": {"bins": 4, "range": [0, 1]}}
    recipe = FedStatsRecipe(
        name="statistics",
        stats_output_path="statistics.json",
        sites=list(SIZES),
        statistic_configs={"count": {}, "histogram": histogram},
        stats_generator=Digits(),
        max_bins_percent=11,
    )
    recipe.execute(SimEnv(clients=list(SIZES), workspace_root=str(work)))
    (found,) = work.rglob("statistics.json")
    shutil.copyfile(found, TO / "statistics.json")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        make_statistics(Path(folder) / "statistics")
        make_cross_validation(Path(folder) / "cross")
