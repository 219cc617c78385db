"""Detection of copies and of made-up samples."""

import numpy as np
import pytest
from federation.small import small_federation

from fedaccord.errors import InputError
from fedaccord.federation.defection.tactic import Tactic
from fedaccord.federation.detection import (
    compare_samples,
    find_copies,
    hash_samples,
)
from fedaccord.federation.training.deceit import deceive
from fedaccord.federation.training.rng import draw_contribution

SALT = b"a secret of them all"


def test_equal_samples_have_equal_hashes_and_others_do_not():
    rows = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, np.nextafter(2.0, 3)], [1.0, 2.0]])
    one, same, near, other_label = hash_samples(rows, [0, 0, 0, 1], salt=SALT)
    assert one == same
    assert len({one, near, other_label}) == 3
    assert hash_samples(rows[:1], [0], salt=b"another secret of all") != [one]


def test_a_salt_that_can_be_guessed_is_refused():
    with pytest.raises(InputError, match="at least 16 bytes"):
        hash_samples([[1.0]], [0], salt=b"salt")


def test_copies_within_and_across_clients_are_counted():
    found = find_copies({"a": list("xxxyz"), "b": list("pqr"), "c": list("xzq")})
    assert found.within == {"a": 2, "b": 0, "c": 0}
    assert found.across == {("a", "c"): 2, ("b", "c"): 1}


def test_every_copy_of_a_defector_is_found_and_no_genuine_sample_is_refused():
    federation = small_federation((40, 24, 30))
    brought = np.array([32, 24, 30])
    tactic = Tactic((0,), filler="copies", genuine=(8,))
    cheated = deceive(federation, brought, tactic, seed=4)
    hashes = {}
    for client, count in zip(cheated.clients, brought, strict=True):
        given = draw_contribution(client.name, client.points, int(count), seed=4)
        rows = client.inputs[given].numpy(), client.labels[given].numpy()
        hashes[client.name] = hash_samples(*rows, salt=SALT)
    assert find_copies(hashes).within == {"client 0": 24, "client 1": 0, "client 2": 0}
    assert len({*hashes["client 0"][:8]}) == 8


def draw_clients(random: np.random.Generator, *, shift: float = 0.0):
    """Return three clients of 120 samples of three labels; the first may be shifted."""
    clients = {}
    for name in ("a", "b", "c"):
        labels = np.arange(120) % 3
        rows = random.normal(size=(120, 6)) + 3 * np.eye(6)[labels]
        clients[name] = (rows + (shift if name == "a" else 0.0), labels)
    return clients


def test_honest_clients_of_one_distribution_are_rarely_suspected():
    """At 5 %, no more than 5 % of honest clients; 180 tests leave room for chance (z = 2.6)."""
    found = [
        one.p_value < 0.05
        for seed in range(60)
        for one in compare_samples(draw_clients(np.random.default_rng(seed)))
    ]
    assert len(found) == 180
    assert np.mean(found) <= 0.05 + 2.6 * (0.05 * 0.95 / 180) ** 0.5


@pytest.mark.parametrize("kind", ["labels", "noise"])
def test_made_up_samples_are_found(kind):
    caught = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        clients = draw_clients(random)
        rows, labels = clients["a"]
        fake = np.arange(120) >= 30
        if kind == "labels":
            labels = labels.copy()
            labels[fake] = random.permutation(labels[fake])
        else:
            rows = np.where(fake[:, None], random.normal(size=rows.shape) * rows.std(axis=0), rows)
        clients["a"] = (rows, labels)
        first, *_ = compare_samples(clients)
        caught += first.p_value < 0.01 and first.client == "a"
    assert caught >= 19


def test_an_honest_client_unlike_the_others_is_suspected_too():
    """The test cannot tell made-up samples from another distribution: say so, and see it."""
    first, *_ = compare_samples(draw_clients(np.random.default_rng(1), shift=1.5))
    assert first.p_value < 0.01


def test_labels_of_few_samples_are_not_tested():
    clients = {"a": (np.ones((3, 2)), [0, 0, 1]), "b": (np.zeros((50, 2)), [0] * 50)}
    first, second = compare_samples(clients)
    assert (first.p_value, first.label, first.tests) == (1.0, None, 0)
    assert second.tests == 0


def test_constant_features_do_not_divide_by_zero():
    clients = {name: (np.ones((60, 4)), [0] * 60) for name in "abc"}
    assert [one.p_value for one in compare_samples(clients)] == [1.0, 1.0, 1.0]
