"""What a run leaves behind is found from any folder above it, or a sentence says why not."""

import pytest

pytest.importorskip("nvflare", reason="needs NVFlare (the extra nvflare)")

from federation.nvflare.in_process import GOALS, NETWORK, InProcessController, sites_of

from fedaccord.errors import InputError
from fedaccord.federation import FedAvg
from fedaccord.federation.nvflare import load_run


def run_in(folder):
    algorithm = FedAvg(rounds=2, batch_size=5, evaluate_every=2)
    controller = InProcessController(algorithm, GOALS, NETWORK, node_deadline=0)
    assert controller.run_in(folder, sites_of()) is None
    return controller.run.history


def test_a_run_is_read_as_it_was(tmp_path):
    history = run_in(tmp_path / "server" / "job")
    found = load_run(tmp_path).history
    # As text, because NaN is not NaN.
    assert str({**found.to_dict(), "seconds": 0}) == str({**history.to_dict(), "seconds": 0})
    for name, weight in history.weights.items():
        assert (found.weights[name] == weight).all()


def test_where_there_is_no_run_or_more_than_one_the_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="has no run of fedaccord's"):
        load_run(tmp_path)
    run_in(tmp_path / "one")
    run_in(tmp_path / "two")
    with pytest.raises(InputError, match="has 2 runs: name one of one/fedaccord, two/fedaccord"):
        load_run(tmp_path)
