"""Numbers from users: read exactly, or refused with a sentence."""

import math
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fedaccord._checks import (
    as_numbers,
    check_finite,
    exact_numbers,
    frozen,
    read_fraction,
    simplest_fraction,
)
from fedaccord._io import files as _files
from fedaccord._io.files import read_text, replace_file
from fedaccord.errors import InputError

finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("value", "fraction"),
    [
        (0.1, Fraction(1, 10)),
        (0.7, Fraction(7, 10)),
        (1 / 9, Fraction(1, 9)),
        (1 / 3, Fraction(1, 3)),
        (-2 / 3, Fraction(-2, 3)),
        (0.0, Fraction(0)),
        (-0.0, Fraction(0)),
        (7.0, Fraction(7)),
        (-3.0, Fraction(-3)),
        (2.5, Fraction(5, 2)),
        (99999.99, Fraction(9999999, 100)),
        (2.0**60, Fraction(2**60)),
        (1e300, Fraction(int(1e300))),
        (0.001, Fraction(1, 1000)),
    ],
)
def test_a_float_is_read_as_what_a_person_wrote(value, fraction):
    assert simplest_fraction(value) == fraction


def test_a_sum_of_roundings_is_not_taken_for_what_it_rounds():
    assert simplest_fraction(0.1 + 0.2) != Fraction(3, 10)


def plainly_simplest(value):
    """Try denominators one after the other."""
    for denominator in range(1, 2000):
        nearest = Fraction(round(Fraction(value) * denominator), denominator)
        if float(nearest) == value:
            return nearest
    return None


@given(finite)
@example(2**-0.5)
@example(5e-324)
@example(2.0**-60)
@example(math.nextafter(1.0, 0.0))
@example(1.7976931348623157e308)
def test_the_fraction_rounds_back_to_the_float(value):
    found = simplest_fraction(value)
    assert float(found) == value
    assert found.denominator <= Fraction(value).denominator


@given(st.integers(-5000, 5000), st.integers(1, 1999))
def test_no_simpler_fraction_rounds_to_the_float(numerator, denominator):
    value = numerator / denominator
    assert simplest_fraction(value) == plainly_simplest(value) == Fraction(numerator, denominator)


@given(finite.filter(lambda x: x != int(x)))
def test_no_denominator_below_the_one_found_would_do(value):
    found = simplest_fraction(value)
    half = Fraction(math.ulp(value)) * Fraction(49, 100)
    for smaller in range(max(1, found.denominator - 50), found.denominator):
        nearest = Fraction(round(Fraction(value) * smaller), smaller)
        assert abs(nearest - Fraction(value)) > half


def test_the_plain_search_objects_to_a_neighbour():
    assert plainly_simplest(math.nextafter(0.1, 1)) != Fraction(1, 10)


def test_arrays_are_read_one_by_one():
    assert exact_numbers(np.array([[0.1, 0.5], [1, 0]])) == [
        Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(0),
    ]  # fmt: skip


def test_numbers_fractions_and_strings_become_floats():
    assert as_numbers([1, 0.5, True], "x").tolist() == [1.0, 0.5, 1.0]
    assert as_numbers([Fraction(1, 3), 2], "x").tolist() == [1 / 3, 2.0]
    assert as_numbers(["1/3", "0.7", "2e-5"], "x").tolist() == [1 / 3, 0.7, 2e-5]
    assert as_numbers([["1"], ["2"]], "x").shape == (2, 1)
    assert as_numbers([], "x").shape == (0,)


def test_what_comes_back_is_a_copy():
    values = np.array([1.0, 2.0])
    frozen(as_numbers(values, "x"))
    values[0] = 5.0
    assert values.flags.writeable


@pytest.mark.parametrize(
    "values",
    [
        [1, [2, 3]], ["a"], [None], [1j], [object()], ["1/0"], [10**400], {"a": 1}, "abc", [b"x"],
        ["1e999999999"], ["1" * 5000], ["nan"], [[1], [2, 3]], np.array(["2020"], dtype="M8[Y]"),
    ],
)  # fmt: skip
def test_what_is_no_number_is_refused_by_name(values):
    with pytest.raises(InputError, match=r"^prices must be numbers in a regular list; got ."):
        as_numbers(values, "prices")


def test_a_fraction_of_a_billion_digits_is_never_written_down():
    with pytest.raises(ValueError, match="out of range"):
        read_fraction("1e1000000000")
    assert read_fraction("1e-99") == Fraction(1, 10**99)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "is not a number"),
        (np.inf, "is infinite"),
        (-np.inf, "is infinite"),
        (-1.0, "is negative"),
        (1e101, "is too large"),
        (1e-101, "is too small"),
        (5e-324, "is too small"),
    ],
)
def test_bad_numbers_are_named_with_their_agent_and_a_remedy(value, words):
    name = "site {}".format
    with pytest.raises(InputError, match=f"the need of site 1 {words} .*: (fill|give|rescale)"):
        check_finite(np.array([1.0, value]), "the need", name)
    with pytest.raises(InputError, match=f"the need of site 0, column 1 {words}"):
        check_finite(np.array([[0.0, value], [1, 1]]), "the need", name)
    check_finite(np.array([0.0, -0.0, 1e100, 1e-100]), "the need", name)


def test_replacing_a_file_writes_it_whole(tmp_path):
    target = tmp_path / "a.txt"
    replace_file(target, "one\n")
    replace_file(target, "zwei ü\n")
    assert target.read_bytes() == "zwei ü\n".encode()
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    umask = os.umask(0)
    os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize("fault", ["fsync", "replace", "chmod"])
def test_a_fault_in_the_middle_leaves_the_old_file(tmp_path, monkeypatch, fault):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(_files.os, fault, fail)
    with pytest.raises(OSError, match="the disk is full"):
        replace_file(target, "new and long " * 1000)
    monkeypatch.undo()
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_an_interruption_leaves_the_old_file_too(tmp_path, monkeypatch):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_files.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        replace_file(target, "new")
    monkeypatch.undo()
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def test_reading_says_why_not(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*missing: No such file"):
        read_text(tmp_path / "missing")
    with pytest.raises(InputError, match="it is a directory; name a file"):
        read_text(tmp_path)
    with pytest.raises(InputError, match="it is a device; name a file"):
        read_text(Path("/dev/zero"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file in UTF-8"):
        read_text(tmp_path / "binary")
    with pytest.raises(InputError, match="cannot read"):
        read_text("a\0b")
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbf{}")
    assert read_text(tmp_path / "marked") == "{}"
