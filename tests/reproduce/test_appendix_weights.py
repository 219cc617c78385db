"""What the appendix on weights is checked with."""

import pytest

from fedaccord.reproduce.appendix_weights import bound_by_power


@pytest.mark.parametrize(
    ("value", "bound"), [(0.0, 1e-9), (7e-16, 1e-9), (8.8e-6, 1e-5), (1e-5, 1e-5), (0.0036, 0.01)]
)
def test_a_bound_is_the_least_power_of_ten_that_is_no_smaller(value, bound):
    assert bound_by_power(value) == pytest.approx(bound, rel=1e-12)
