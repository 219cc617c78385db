"""One check per kind of value: what passes, and the sentence that what fails gets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedaccord._checks import (
    check_choice,
    check_known,
    check_real,
    check_whole,
    fill_in,
    find_closest,
    suggest,
)
from fedaccord.errors import InputError


@pytest.mark.parametrize("value", [True, 2.0, "2", None, np.float64(2), np.int64(0), 0, 10**400])
def test_a_whole_number_is_an_int_within_bounds(value: object) -> None:
    with pytest.raises(InputError, match=r"^trials must be a whole number from 1 to 9; got "):
        check_whole("trials", value, most=9)


def test_whole_numbers_say_their_bounds() -> None:
    assert check_whole("trials", 1) == 1
    for number in (np.int64(3), np.uint8(3)):
        assert type(check_whole("trials", number)) is int and check_whole("trials", number) == 3
    with pytest.raises(InputError, match=r"^seed must be a whole number of 0 or more; got -1$"):
        check_whole("seed", -1, least=0)
    with pytest.raises(InputError, match=r"^seed must be a whole number, zero or more; got -1$"):
        check_whole("seed", -1, least=0, expected="a whole number, zero or more")


@pytest.mark.parametrize("value", [True, "1", None, math.nan, math.inf, 10**400, 0, 1, 2])
def test_a_number_is_finite_and_within_bounds(value: object) -> None:
    with pytest.raises(InputError, match=r"^rate must be a number above 0 and below 1; got "):
        check_real("rate", value, above=0, below=1)


def test_numbers_say_their_bounds() -> None:
    assert check_real("rate", 1) == check_real("rate", np.float32(1)) == 1.0
    assert check_real("rate", 1, least=1, most=1) == 1.0
    with pytest.raises(InputError, match=r"^rate must be a number; got 'x'$"):
        check_real("rate", "x")
    with pytest.raises(InputError, match=r"^rate must be a number at least 1 and at most 2; got 3"):
        check_real("rate", 3, least=1, most=2)
    with pytest.raises(InputError, match=r"^rate must be a number of 1 or more; got 0$"):
        check_real("rate", 0, least=1, expected="a number of 1 or more")


def test_a_choice_lists_what_there_is() -> None:
    assert check_choice("form", "pooled", ("pooled", "local")) == "pooled"
    with pytest.raises(InputError, match=r"^form must be one of pooled, local; got 'Pool'$"):
        check_choice("form", "Pool", ("pooled", "local"))
    with pytest.raises(InputError, match=r"got 'Pool'; did you mean pooled\?$"):
        check_choice("form", "Pool", ("pooled", "local"), hint=True)
    with pytest.raises(InputError, match=r"got \['pooled'\]$"):
        check_choice("form", ["pooled"], ("pooled", "local"))


def test_a_name_that_is_not_known_gets_the_closest_or_all() -> None:
    check_known(["a"], ["a", "b"], "there is no")
    with pytest.raises(InputError, match=r"^there is no 'ratt'; did you mean rate\?$"):
        check_known(["ratt"], ["rate", "seed"], "there is no")
    with pytest.raises(InputError, match=r"^there is no 'xyz'; there are rate, seed$"):
        check_known(["xyz"], ["rate", "seed"], "there is no")


def test_capitals_do_not_count_in_what_is_close() -> None:
    assert find_closest("CITY", ["Rural", "City"]) == "City"
    assert find_closest("xyz", ["Rural", "City"]) is None
    assert find_closest("Sued", ["Öst", "Süd"]) == "Süd"
    assert find_closest("Koln-Muhlheim", ["Nord", "Köln-Mühlheim"]) == "Köln-Mühlheim"
    assert suggest("citty", ["Rural", "City"]) == "; did you mean City?"
    assert suggest("xyz", ["Rural", "City"]) == ""


def test_numbers_by_name_are_filled_in_and_strangers_named() -> None:
    assert fill_in({"b": 5}, ["a", "b"], [1, 2], "the agents").tolist() == [1, 5]
    # An accent may be a sign of its own.
    assert fill_in({"Z\u00fcrich": 5}, ["Zu\u0308rich"], [1], "the agents").tolist() == [5]
    with pytest.raises(InputError, match=r"^Citty is not among the agents; did you mean City\?$"):
        fill_in({"Citty": 5}, ["City"], [1], "the agents")
    with pytest.raises(InputError, match=r"they are: 0, 1, .*, 19\.\.\.$"):
        fill_in({"x": 5}, [str(n) for n in range(30)], [1] * 30, "the agents")
