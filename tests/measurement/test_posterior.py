"""Draws from the posterior: they are where the truth is, as often as a posterior says."""

import numpy as np
import pytest
from scipy import stats

from fedaccord.measurement.curve_fit import (
    CURVE,
    TYPICAL,
    AgentFit,
    CurveModel,
    Grouped,
    Residuals,
    fit_agent,
    list_starts,
)
from fedaccord.measurement.pooling import (
    ALIKE,
    EXPECTED,
    SCATTER_DOUBT,
    Population,
    Scatter,
    make_design,
)
from fedaccord.measurement.posterior import draw_posterior

GIVEN = np.array([[400.0, 0], [0, 400], [100, 100], [300, 300], [800, 200], [200, 800], [900, 900]])
CENTRE = np.array([np.log(0.05 / 0.95), np.log(0.15), np.log(100.0), np.log(0.5), np.log(0.4)])
VALIDATION = 400


def describe(agent: int, errors: np.ndarray, given: np.ndarray = GIVEN) -> AgentFit:
    before = Population.before(hinted=False)
    return AgentFit(
        model=CurveModel(given, agent, 400.0),
        centre=CENTRE,
        prior=before.marginal_prior(CENTRE),
        found=CENTRE,
        information=np.zeros((5, 5)),
        errors=errors,
        pilots=np.arange(len(errors)),
        parameters=0.0,
        training=TYPICAL,
        validation=VALIDATION,
    )


def fit(agents: list[AgentFit]) -> list[AgentFit]:
    starts = list_starts(CENTRE)
    return [fit_agent(one, one.prior, starts) for one in agents]


def split(fits: list[AgentFit]) -> Scatter:
    return Scatter.split(
        [
            Residuals((one.errors - one.fitted) ** 2, np.full(len(one.errors), 0.6), one.measuring)
            for one in fits
        ]
    )


def invent(rng: np.random.Generator) -> tuple[list[AgentFit], np.ndarray]:
    """Draw two agents from what is expected before any pilot is seen, and their pilots."""
    before = Population.before(hinted=False)
    freedom = 4.0
    spread = np.array(EXPECTED) ** 2 * freedom / rng.chisquare(freedom, 4)
    apart = before.apart * freedom / rng.chisquare(freedom)
    # Nearer than the prior says, so that all accuracies are within 0 and 1.
    shift = np.sqrt(before.doubt) * rng.standard_normal(4)
    population = Population(
        before.expected, before.doubt, shift, np.diag(1 / before.doubt), spread, apart
    )
    root = np.linalg.cholesky(population.covariance(5))
    truths = CENTRE + make_design(5) @ shift + rng.standard_normal((2, 5)) @ root.T
    alike = ALIKE * np.sqrt(2 / rng.chisquare(2))
    shared = np.log(TYPICAL) + SCATTER_DOUBT * rng.standard_normal()
    training = np.exp(shared + alike * rng.standard_normal(2))
    agents = []
    for agent, truth in enumerate(truths):
        clean = CurveModel(GIVEN, agent, 400.0).errors(truth[None])[0]
        measuring = np.maximum(clean * (1 - clean), 0.01) / VALIDATION
        errors = clean + np.sqrt(training[agent] ** 2 + measuring) * rng.standard_normal(len(clean))
        agents.append(describe(agent, errors))
    return agents, np.append(truths.ravel(), np.log(training))


@pytest.mark.slow
def test_the_truth_is_anywhere_among_the_draws_with_equal_chances() -> None:
    """Of truths drawn from the prior, the ranks among draws from the posterior are uniform."""
    rng = np.random.default_rng(3)
    ranks = []
    while len(ranks) < 40:
        agents, truth = invent(rng)
        if not all(((agent.errors > 0) & (agent.errors < 1)).all() for agent in agents):
            continue
        fits = fit(agents)
        drawn = draw_posterior(fits, Population.before(hinted=False), split(fits), 100, rng)
        values = np.concatenate([drawn.found.reshape(100, -1), np.log(drawn.training)], axis=1)
        ranks.append((values < truth).mean(axis=0))
    for column in np.array(ranks).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4
    # The spread of ranks: too sure and they are at the ends, too unsure and in the middle.
    assert np.var(ranks) == pytest.approx(1 / 12, rel=0.2)


def test_where_curves_are_well_known_draws_are_those_of_a_straight_problem() -> None:
    """With many points, the posterior is normal, with the inverse curvature for covariance."""
    truth = CENTRE + np.array([0.2, -0.1, 0.3, 0.1, -0.3])
    rng = np.random.default_rng(0)
    given = np.repeat(np.concatenate([GIVEN, GIVEN / 3, GIVEN * 2]), 1000, axis=0)
    clean = CurveModel(given, 0, 400.0).errors(truth[None])[0]
    # Training that scatters by 0.01, and measuring by 0.02, about.
    errors = clean + np.sqrt(0.01**2 + clean * (1 - clean) / VALIDATION) * rng.standard_normal(
        len(clean)
    )
    fits = fit([describe(0, errors, given)])
    drawn = draw_posterior(fits, Population.before(hinted=False), split(fits), 200, rng)
    expected = np.sqrt(np.diag(np.linalg.inv(fits[0].information + fits[0].prior.precision)))
    assert drawn.found[:, 0].std(axis=0) == pytest.approx(expected, rel=0.4)
    assert np.abs(drawn.centres[0] - fits[0].found).max() < 0.5 * expected.max()
    assert drawn.training.mean() == pytest.approx(0.01, abs=0.0015)


def test_pilots_with_the_same_contributions_count_as_their_mean() -> None:
    rng = np.random.default_rng(0)
    given = np.repeat(GIVEN, 3, axis=0)
    agent = describe(0, 0.2 + 0.02 * rng.standard_normal(len(given)), given)
    groups = Grouped.of(agent)
    assert groups.times.tolist() == [3.0] * len(GIVEN)
    fitted = np.full((1, len(GIVEN)), 0.19)
    total = ((agent.errors - 0.19) ** 2).sum()
    assert groups.find_squares(fitted).sum() == pytest.approx(total)
    scatter = np.sqrt((0.01**2 + agent.measuring) / 3)
    by_row = dict(zip(map(tuple, given), scatter, strict=True))
    wanted = [by_row[tuple(row)] for row in groups.model.contributions]
    assert groups.scatter(np.array([0.01]))[0] == pytest.approx(wanted)


def test_an_agent_that_is_not_pooled_has_its_own_prior() -> None:
    """Where it was measured once, its draws are as wide as what is expected beforehand."""
    rng = np.random.default_rng(1)
    model = CurveModel(GIVEN, 0, 400.0)
    errors = model.errors(CENTRE[None])[0] + 0.01 * rng.standard_normal(len(GIVEN))
    agents = [describe(0, errors), describe(1, errors[:1], GIVEN[:1])]
    widths = []
    for pooled in (True, False):
        fits = fit(agents)
        fits[1] = AgentFit(**{**vars_of(fits[1]), "pooled": pooled})
        drawn = draw_posterior(fits, Population.before(hinted=False), split(fits), 200, rng)
        widths.append(drawn.found[:, 1, 3].std())
    assert widths[0] < widths[1] == pytest.approx(0.7, rel=0.3)


def vars_of(agent: AgentFit) -> dict:
    return {name: getattr(agent, name) for name in AgentFit.__dataclass_fields__}


def test_the_worth_of_others_comes_after_the_curve() -> None:
    assert len(CENTRE) - 1 == CURVE
