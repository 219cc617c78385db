"""A recipe of NVFlare's: a job with the controller at the server and the executor at every site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nvflare.job_config.api import FedJob
from nvflare.job_config.file_source import FileSource
from nvflare.recipe.spec import Recipe

from fedaccord._checks import check_real
from fedaccord.errors import InputError
from fedaccord.federation.algorithms.base import Algorithm
from fedaccord.federation.nvflare import messages
from fedaccord.federation.nvflare.controller import AlgorithmController
from fedaccord.federation.nvflare.executor import SiteExecutor
from fedaccord.federation.remote.members import Requirements


class AlgorithmRecipe(Recipe):  # type: ignore[misc]
    """A job that trains with an algorithm of fedaccord's.

    algorithm, requirements, model: see AlgorithmController, which has the other settings too.
    data: the module and name of what returns a site's data sets; see SiteExecutor.
    files: Python files and folders that the job brings along, with model and data and all that they
        import and sites do not have.
    name: the job's.
    site: further settings of SiteExecutor.
    interval: seconds between two looks of a site for its next task, instead of NVFlare's 2.
    settings: further settings of AlgorithmController.
    """

    def __init__(
        self,
        algorithm: Algorithm | Mapping[str, Any],
        requirements: Requirements,
        model: str,
        data: str,
        *,
        files: Sequence[str | Path] = (),
        name: str = "fedaccord",
        site: Mapping[str, Any] | None = None,
        interval: float = 0.5,
        **settings: Any,
    ) -> None:
        check_real("interval", interval, above=0)
        for file in files:
            if not Path(file).exists():
                raise InputError(f"{file} is not there; files must be part of the job")
        controller = AlgorithmController(algorithm, requirements, model, **settings)
        named = len(controller.members or ())
        job = FedJob(name=name, min_clients=controller.min_clients or max(named, 1))
        # fedaccord is installed at every site, and does not travel with the job.
        job.set_app_packages(["fedaccord"])
        job.to_server(controller)
        job.to_server({"server": {"task_request_interval": interval}})
        job.to_clients(SiteExecutor(model, data, **(site or {})), tasks=list(messages.TASKS))
        # Not as scripts, which NVFlare puts into folders after where Python would find them here.
        for file in files:
            job.to_server(FileSource(str(file)))
            job.to_clients(FileSource(str(file)))
        super().__init__(job)
