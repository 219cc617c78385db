"""What server and sites say to each other, in NVFlare's Shareables."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any

import numpy as np
from nvflare.apis.dxo import from_shareable
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.app_common.abstract.fl_model import FLModel
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.utils.fl_model_utils import FLModelUtils

from fedaccord import __version__
from fedaccord.errors import InputError
from fedaccord.federation.remote.protocol import EXAMPLES, clip
from fedaccord.federation.remote.replies import (
    Arrays,
    Evaluation,
    Introduction,
    Unusable,
    Update,
    check_finite_array,
    check_names,
    read_accuracies,
    read_count,
    read_loss,
    read_points,
)

# What sites are asked for, by the names of NVFlare's tasks.
INTRODUCE = "introduce"
TRAIN = AppConstants.TASK_TRAIN
EVALUATE = AppConstants.TASK_VALIDATION
TASKS = (INTRODUCE, TRAIN, EVALUATE)

METRICS = "metrics"
VERSION = "fedaccord-version"
REASON = "fedaccord-reason"


def find_function(path: str, what: str) -> Any:
    """Return the function or class that a text names, as task:Net."""
    if ":" not in path:
        raise InputError(
            f'{what} must be a module and a name in it, such as "task:Net"; got {path!r}'
        )
    try:
        return resolve_name(path)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"{what} is {path}, which cannot be imported ({error}): add its file to the job, or "
            "install it at every site"
        ) from None


def write_order(config: Mapping[str, Any], arrays: Arrays | None = None) -> Shareable:
    """Write an order to a site."""
    return FLModelUtils.to_shareable(FLModel(params=dict(arrays or {}), meta=dict(config)))


def read_order(task: Shareable) -> tuple[Arrays, dict[str, Any]]:
    """Return the model and the config of an order."""
    dxo = from_shareable(task)
    return dxo.data, dxo.meta


def write_reply(metrics: Mapping[str, Any], arrays: Arrays | None = None) -> Shareable:
    """Write what a site replies."""
    said = {METRICS: dict(metrics), VERSION: __version__}
    return FLModelUtils.to_shareable(FLModel(params=dict(arrays or {}), meta=said))


def write_refusal(reason: str) -> Shareable:
    """Write why a site cannot follow an order."""
    return make_reply(ReturnCode.EXECUTION_EXCEPTION, headers={REASON: reason})


def _read_answer(reply: Shareable | None) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return the arrays, metrics and meta of a reply, or raise Unusable."""
    if reply is None:
        raise Unusable("no reply came")
    code = reply.get_return_code()
    if code != ReturnCode.OK:
        reason = clip(reply.get_header(REASON, ""), 300)
        if not reason and code == ReturnCode.TASK_UNKNOWN:
            reason = "it has no executor of fedaccord's for this task; add SiteExecutor to its app"
        raise Unusable(f"it reports: {reason or clip(code)}")
    try:
        dxo = from_shareable(reply)
    except (ValueError, TypeError) as error:
        raise Unusable(f"its reply cannot be read: {clip(error)}") from None
    metrics = dxo.meta.get(METRICS) if isinstance(dxo.meta, dict) else None
    if not isinstance(metrics, dict) or not isinstance(dxo.data, dict):
        raise Unusable("its reply has no metrics; let SiteExecutor answer there")
    return dxo.data, metrics, dxo.meta


def read_introduction(name: str, reply: Shareable | None) -> Introduction:
    """Read what a site says of itself, or raise Unusable."""
    _, metrics, meta = _read_answer(reply)
    version = meta.get(VERSION)
    if version != __version__:
        raise Unusable(
            f"it runs fedaccord {clip(version, 20)} and the server {__version__}; install the same "
            "version at both"
        )
    return Introduction(name, *read_points(metrics), registered=True)


def read_update(reply: Shareable | None, sent: Arrays, *, allotted: int) -> Update:
    """Read what a site made of a round, or raise Unusable."""
    arrays, metrics, _ = _read_answer(reply)
    loss = read_loss(metrics)
    check_names(arrays, sent)
    for name, like in sent.items():
        found = arrays[name]
        if not isinstance(found, np.ndarray):
            raise Unusable(f"{name} is not an array")
        if found.shape != like.shape or found.dtype != like.dtype:
            raise Unusable(
                f"{name} has shape {clip(found.shape)} of {found.dtype.str} instead of "
                f"{like.shape} of {like.dtype.str}"
            )
        check_finite_array(found, name)
    claimed = read_count(metrics, EXAMPLES)
    return Update({name: arrays[name] for name in sent}, min(claimed, allotted), claimed, loss)


def read_evaluation(reply: Shareable | None, *, whole: bool, tested: bool) -> Evaluation:
    """Read what a site measured, as `read_accuracies` does, or raise Unusable."""
    _, metrics, _ = _read_answer(reply)
    return Evaluation(*read_accuracies(metrics, whole=whole, tested=tested))
