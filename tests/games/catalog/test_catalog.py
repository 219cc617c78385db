"""The catalogue: every entry is a game, every parameter is judged, every answer has a source."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.errors import FedaccordError, InputError
from fedaccord.games import catalog
from fedaccord.games.catalog import closed_forms as known
from fedaccord.games.coverage import CoverageGame
from fedaccord.games.files import game_from_dict, read_game, write_game
from fedaccord.games.function import FunctionGame
from fedaccord.games.linear import DiscoveryGame, LinearGame
from fedaccord.games.pac.exact import PacGame

SMALL_LINEAR = (
    "continuum",
    "overlap",
    "unequal",
    "dominant-diagonal",
    "indefinite",
    "cyclic",
    "twins",
    "envious-equilibrium",
    "star",
    "not-attained",
)


def variants(name):
    """Every choice of the parameters of an entry that are words."""
    chosen = [{}]
    for key, words in catalog.CHOICES.items():
        if key in catalog.ENTRIES[name].parameters:
            chosen = [{**before, key: word} for before in chosen for word in words]
    return chosen


EVERYTHING = [(name, v) for name in catalog.ENTRIES for v in variants(name)]


@pytest.mark.parametrize(("name", "parameters"), EVERYTHING)
def test_every_game_is_the_same_after_writing_and_reading(name, parameters, tmp_path):
    game = catalog.build(name, **parameters)
    data = json.loads(json.dumps(game.to_dict()))
    again = game_from_dict(data)
    assert again.to_dict() == game.to_dict()
    write_game(game, tmp_path / "game.json")
    theta = np.arange(game.size) % 2.0
    assert np.array_equal(read_game(tmp_path / "game.json").utilities(theta), game.utilities(theta))
    assert type(again) is type(game)


@pytest.mark.parametrize(("name", "parameters"), EVERYTHING)
def test_every_entry_says_what_it_is_and_where_its_answers_come_from(name, parameters):
    entry = catalog.ENTRIES[name]
    assert entry.name == name
    assert entry.summary and entry.source
    answers = catalog.answers(name, **parameters)
    assert answers.source
    known_totals = [t for t in (answers.stable, answers.envy_free) if t is not None]
    if answers.optimal is not None:
        assert all(answers.optimal <= total * (1 + 1e-12) for total in known_totals)
    assert answers.stable is None or answers.stable_exists


def test_the_catalogue_holds_what_the_paper_has():
    assert {"flower", "two-agents", "k4", "pac-cycle", "sunflower", *SMALL_LINEAR} <= set(
        catalog.ENTRIES
    )
    assert isinstance(catalog.build("flower"), LinearGame)
    assert isinstance(catalog.build("flower", model="coverage"), CoverageGame)
    assert isinstance(catalog.build("sunflower"), DiscoveryGame)
    assert isinstance(catalog.build("pac-cycle"), PacGame)


def test_entries_cannot_be_changed():
    with pytest.raises(TypeError):
        catalog.ENTRIES["flower"].parameters["petals"] = 5


# The games are what the paper says.


@pytest.mark.parametrize("petals", [4, 9, 25])
def test_the_linear_flower_has_the_papers_utilities(petals):
    root = math.isqrt(petals)
    game = catalog.build("flower", petals=petals)
    theta = np.random.default_rng(0).random(petals + 1)
    groups = theta[1:].reshape(root, root)
    petal = groups + (theta[0] + groups.sum(axis=1, keepdims=True) - groups) / root
    expected = [theta[0] + theta[1:].sum() / root, *petal.ravel()]
    assert game.utilities(theta) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("petals", [4, 9, 25])
def test_the_coverage_flower_has_the_papers_utilities(petals):
    root = math.isqrt(petals)
    game = catalog.build("flower", model="coverage", petals=petals)
    counts = np.random.default_rng(1).integers(0, 4, petals + 1).astype(float)
    keep = 1 - 1 / petals
    groups = counts[1:].reshape(root, root)
    group = groups.sum(axis=1, keepdims=True)
    petal = 1 - (keep ** (counts[0] + group) / root + (1 - 1 / root) * keep**groups) / 2
    core = 1 - (keep ** (counts[0] + group)).sum() / (2 * root)
    assert game.utilities(counts) == pytest.approx([core, *petal.ravel()], rel=1e-12)


def test_a_linear_flower_is_the_discovery_game_of_its_sets():
    # W is the number of shared points over b, so b Q Q'.
    petals, root = 9, 3
    game = catalog.build("flower", petals=petals)
    rows = np.zeros((petals + 1, petals + petals * (petals - root)))
    rows[0, :petals] = 1 / petals
    for i in range(petals):
        rows[i + 1, (i // root) * root : (i // root + 1) * root] = 1 / petals
        begin = petals + i * (petals - root)
        rows[i + 1, begin : begin + petals - root] = 1 / petals
    assert game.dense_benefits == pytest.approx(petals * rows @ rows.T, abs=1e-12)


def test_large_flowers_are_made_and_stay_sparse():
    linear = catalog.build("flower", petals=10_000)
    assert linear.size == 10_001
    assert linear.benefits.nnz == 1 + 2 * 10_000 + 10_000 * 100
    coverage = catalog.build("flower", model="coverage", petals=10_000)
    assert coverage.distributions.nnz == 100 + 2 * 10_000
    assert coverage.copies.sum() == 10_000 + 10_000 * (10_000 - 100)


def test_the_sunflower_is_the_one_of_the_authors():
    game = catalog.build("sunflower")
    held = game.distributions.toarray() > 0
    assert held.sum(axis=1).tolist() == [8] * 5
    shared = (held[:, None] & held[None]).sum(axis=2)
    neighbours = [[8, 2, 0, 2], [2, 8, 2, 0], [0, 2, 8, 2], [2, 0, 2, 8]]
    assert shared[1:, 1:].tolist() == neighbours
    assert shared[0].tolist() == [8, 4, 4, 4, 4]
    bare = catalog.build("sunflower-without-core")
    assert np.array_equal(bare.distributions.toarray(), game.distributions.toarray()[1:])


def test_flower_and_bud_has_two_cores_that_share_nothing():
    held = catalog.build("flower-and-bud").distributions.toarray() > 0
    shared = (held[:, None] & held[None]).sum(axis=2)
    assert shared.diagonal().tolist() == [8, 8, 10, 10, 10, 10]
    assert shared[0, 1] == 0
    assert (shared[:2, 2:] == 4).all()
    assert shared[2].tolist() == [4, 4, 10, 4, 0, 4]


@given(st.integers(2, 6), st.integers(1, 5), st.integers(1, 5))
def test_a_common_core_is_a_sunflower_of_sets(agents, core, own):
    held = catalog.build("common-core", agents=agents, core=core, own=own).distributions > 0
    shared = (held.astype(int) @ held.T.astype(int)).toarray()
    expected = np.full((agents, agents), core) + own * np.eye(agents, dtype=int)
    assert np.array_equal(shared, expected)


@given(
    st.integers(4, 9),
    st.lists(st.integers(0, 4), min_size=3, max_size=3),
    st.sampled_from(["3/4", "9/10"]),
)
def test_a_long_cycle_has_the_papers_utilities(d, counts, requirement):
    game = catalog.build("pac-cycle", d=d, requirement=requirement)
    assert isinstance(game, FunctionGame)
    keep = 1 - Fraction(1, d)
    exact = [1 - keep ** (counts[i] + counts[i - 1]) / 2 for i in range(3)]
    assert [game.exact_utility(i, [Fraction(c) for c in counts]) for i in range(3)] == exact
    assert game.utilities(np.array(counts, dtype=float)) == pytest.approx(
        [float(u) for u in exact], rel=1e-12
    )


@pytest.mark.parametrize("d", [1, 2])
def test_a_short_cycle_of_worlds_has_the_same_utilities(d):
    game = catalog.build("pac-cycle", d=d, requirement="3/4")
    assert isinstance(game, PacGame)
    keep = 1 - Fraction(1, d)
    for counts in [(0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 1, 1)]:
        for i in range(3):
            expected = 1 - keep ** (counts[i] + counts[i - 1]) / 2
            assert game.exact_utility(i, [Fraction(c) for c in counts]) == expected


def test_a_long_cycle_cannot_be_written_and_says_so():
    game = catalog.build("pac-cycle", d=4, requirement="3/4")
    with pytest.raises(FedaccordError, match="Python function"):
        game.to_dict()


# What is refused.


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("flowr", {}, ["flowr", "did you mean flower"]),
        ("", {}, ["known: flower"]),
        ("flower", {"petals": 5}, ["square", "4 and 9"]),
        ("flower", {"petals": 17}, ["16 and 25"]),
        ("flower", {"petals": 1}, ["4 at least"]),
        ("flower", {"petals": -4}, ["4 at least"]),
        ("flower", {"petals": 10**6}, ["at most"]),
        ("flower", {"petals": 4.0}, ["whole number"]),
        ("flower", {"petals": True}, ["whole number"]),
        ("flower", {"petals": "4"}, ["whole number"]),
        ("flower", {"leaves": 4}, ["leaves", "petals"]),
        ("flower", {"model": "pac"}, ["linear or coverage"]),
        ("flower", {"strategies": "whole"}, ["real or integer"]),
        ("twins", {"petals": 4}, ["it has: none"]),
        ("star", {"leaves": 0}, ["1 at least"]),
        ("sunflower", {"petals": 2}, ["3 at least"]),
        ("common-core", {"own": 10**9}, ["at most"]),
        ("pac-cycle", {"requirement": "a"}, ["7/8"]),
        ("pac-cycle", {"requirement": "1/0"}, ["7/8"]),
        ("pac-cycle", {"requirement": "1/2"}, ["above 1/2"]),
        ("pac-cycle", {"requirement": "2"}, ["at most 1"]),
        ("pac-cycle", {"requirement": "0.99999999"}, ["at most"]),
        ("pac-cycle", {"d": 2}, ["below 1"]),
    ],
)
def test_a_wrong_name_or_parameter_is_refused_in_a_sentence(name, parameters, words):
    with pytest.raises(InputError) as caught:
        catalog.build(name, **parameters)
    for word in words:
        assert word in str(caught.value)


# The closed forms.


@pytest.mark.parametrize("petals", [4, 9, 16, 100, 10_000])
def test_no_strategy_space_or_rounding_makes_the_flowers_core_cheaper_than_smooth(petals):
    # The core's amount if r^t is not rounded bounds every optimum from below.
    smooth = math.log(1 - 1 / math.isqrt(petals)) / math.log(1 - 1 / petals)
    real = known.coverage_flower_core(petals)
    assert smooth <= real <= known.coverage_flower(petals, "integer").optimal
    game = catalog.build("flower", model="coverage", petals=petals)
    core = np.zeros(petals + 1)
    core[0] = real
    assert game.utilities(core)[1:].min() == pytest.approx(0.5 + 0.5 / petals, abs=1e-13)


@given(st.integers(1, 12), st.integers(51, 99))
def test_the_cycles_threshold_is_the_least_that_suffices(d, percent):
    requirement = Fraction(percent, 100)
    m = known.find_cycle_threshold(d, requirement)
    keep = 1 - Fraction(1, d)
    assert 1 - keep**m / 2 >= requirement
    assert m == 0 or 1 - keep ** (m - 1) / 2 < requirement


def test_a_root_is_found_to_the_last_digit():
    assert known.find_root(lambda x: 2 - x * x, 0, 2) == pytest.approx(math.sqrt(2), rel=1e-15)
