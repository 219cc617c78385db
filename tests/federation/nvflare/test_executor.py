"""A site draws within its quota, and tells the server no more than it must."""

import logging
from types import SimpleNamespace

import pytest

pytest.importorskip("nvflare", reason="needs NVFlare (the extra nvflare)")

from federation.nvflare.in_process import DATA, NETWORK
from nvflare.apis.dxo import from_shareable
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.signal import Signal

from fedaccord.errors import InputError
from fedaccord.federation.nvflare import SiteExecutor
from fedaccord.federation.nvflare.messages import METRICS, REASON, write_order

REPORT = {"report": "train-loss,label-counts"}


def ask(executor, kind, config, site="site-2"):
    context = SimpleNamespace(get_identity_name=lambda: site)
    return executor.execute(kind, write_order(config), context, Signal())


def reason_of(reply):
    assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
    return reply.get_header(REASON)


def test_a_site_says_what_it_may():
    quiet = ask(SiteExecutor(NETWORK, DATA), "introduce", REPORT)
    assert from_shareable(quiet).meta[METRICS] == {"num-points": 24}
    open_one = SiteExecutor(NETWORK, DATA, may_report=["label-counts"])
    said = from_shareable(ask(open_one, "introduce", REPORT)).meta[METRICS]
    assert said == {"num-points": 24, "label-counts": [8, 8, 8]}


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({}, "train", "the server did not say server-round"),
        ({}, "submit_model", "this executor can run introduce, train, validate"),
        ({"model": "nowhere:Net"}, "introduce", "model is nowhere:Net, which cannot be imported"),
        ({"data": "os:missing"}, "introduce", "data is os:missing, which cannot be imported"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(options, kind, words):
    executor = SiteExecutor(**{"model": NETWORK, "data": DATA, **options})
    assert words in reason_of(ask(executor, kind, {}))


def test_what_went_wrong_with_the_data_stays_at_the_site(caplog):
    executor = SiteExecutor(NETWORK, DATA)
    with caplog.at_level(logging.ERROR):
        reason = reason_of(ask(executor, "introduce", {}, site="patient Smith"))
    assert reason == "its app failed with ValueError; the log of its node says more"
    assert "patient Smith" in caplog.text


def test_an_unknown_report_is_refused():
    with pytest.raises(InputError, match="may_report knows train-loss, label-counts"):
        SiteExecutor(NETWORK, DATA, may_report=["names"])
