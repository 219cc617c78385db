"""The site's side: an executor that draws no more than its quota and tells no more than it must.

The job names two functions: one makes the network, one returns a site's data sets.

    SiteExecutor(model="task:Net", data="task:load_data")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from nvflare.apis.executor import Executor
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from fedaccord.errors import InputError
from fedaccord.federation.nvflare import messages
from fedaccord.federation.remote.protocol import REPORT, OrderError
from fedaccord.federation.remote.site import Site, check_reports, keep_errors


class SiteExecutor(Executor):  # type: ignore[misc]
    """Answer a controller of fedaccord's at a site.

    It reports how many samples it could give, how many draws it made, and its accuracy on its own
    validation set. Nothing else about its data leaves the site, except through the model. If
    loading or training fails, the details stay in the site's own log.

    model: the module and name of what makes the network, an nn.Module that returns a score per
        class for each input.
    data: of what takes a site's name and returns its training and validation sets, of pairs of an
        input and a class. They are loaded once in a run.
    train: of what trains the network in place on the samples drawn, and returns the mean loss;
        where left out, in steps of the batch size, with the server's optimizer and learning rate.
    evaluate: of what returns the network's accuracy on samples.
    least_samples: the fewest samples of which it makes a model or a gradient.
    may_report: what else it may report if the server asks: "train-loss", "label-counts".
    """

    def __init__(
        self,
        model: str,
        data: str,
        train: str | None = None,
        evaluate: str | None = None,
        least_samples: int = 1,
        may_report: Sequence[str] = (),
    ) -> None:
        super().__init__()
        # NVFlare writes a job by the attributes that are named like the arguments.
        self.model = model
        self.data = data
        self.train = train
        self.evaluate = evaluate
        self.least_samples = least_samples
        self.may_report = list(check_reports(may_report))
        self._site: Site | None = None

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """Do what the server asks for, or say why not."""
        try:
            with keep_errors(self.logger), torch.random.fork_rng(devices=[]):
                if self._site is None:
                    self._site = self._load(fl_ctx.get_identity_name())
                return _answer(self._site, task_name, shareable)
        except OrderError as error:
            return messages.write_refusal(str(error))

    def _load(self, name: str) -> Site:
        def find(path: str | None, what: str) -> Any:
            return None if path is None else messages.find_function(path, what)

        try:
            model, data = find(self.model, "model"), find(self.data, "data")
            train, evaluate = find(self.train, "train"), find(self.evaluate, "evaluate")
        except InputError as error:
            # It tells of the job, and nothing of the data.
            raise OrderError(str(error)) from None
        points, validation = data(name)
        return Site(
            model,
            points,
            validation,
            own_train=train,
            own_evaluate=evaluate,
            name=name,
            least_samples=self.least_samples,
            may_report=tuple(self.may_report),
        )


def _answer(site: Site, task: str, order: Shareable) -> Shareable:
    arrays, config = messages.read_order(order)
    if task == messages.INTRODUCE:
        return messages.write_reply(site.introduce(str(config.get(REPORT, ""))))
    if task == messages.TRAIN:
        made, metrics = site.train(arrays, config)
        return messages.write_reply(metrics, made)
    if task == messages.EVALUATE:
        return messages.write_reply(site.evaluate(arrays, config))
    known = ", ".join(messages.TASKS)
    raise OrderError(f"the server asks for {task!r}, and this executor can run {known}")
