"""Numbers, counts, lists and units as people read them."""

import math

import pytest

from fedaccord import wording


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 agents"), (1, "1 agent"), (2, "2 agents"), (2000, "2,000 agents")]
)
def test_counts_have_their_noun_in_the_right_form(number: int, said: str) -> None:
    assert wording.count(number, "agent") == said


def test_irregular_plurals_are_given() -> None:
    assert wording.count(2, "batch", "batches") == "2 batches"
    assert wording.pluralize(1, "is", "are") == "is"
    assert wording.pluralize(0, "is", "are") == "are"


@pytest.mark.parametrize(
    ("words", "said"),
    [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")],
)
def test_words_are_joined_with_and(words: list[str], said: str) -> None:
    assert wording.join_with_and(words) == said


def test_the_first_of_many_are_joined_and_the_others_counted() -> None:
    assert wording.join_first(iter("abc"), 3, most=5) == "a; b; c"
    assert wording.join_first(iter("abc"), 1200, most=2) == "a; b; and 1,198 more"
    assert wording.join_first(iter("abc"), 3, most=2) == "a; b; c"


def test_nobody_is_left_out_of_a_list_to_save_one_name() -> None:
    assert wording.name_few(list("abcd")) == "a, b, c and d"
    assert wording.name_few(list("abcde")) == "a, b, c and 2 more"
    assert wording.name_few(list("abc")) == "a, b and c"
    assert [wording.count_named(n, 2) for n in range(5)] == [0, 1, 2, 3, 2]


def test_sentences_begin_with_a_large_or_a_small_letter() -> None:
    assert wording.capitalize_first("a McNair") == "A McNair"
    assert wording.lower_first("Nobody. At all") == "nobody. At all"
    assert wording.capitalize_first("") == wording.lower_first("") == ""


def test_long_texts_are_cut() -> None:
    assert wording.shorten("abcdef", 6) == "abcdef"
    assert wording.shorten("abcdefg", 6) == "abcde…"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (2 / 3, "0.666667"),
        (300.0, "300"),
        (123456.7, "123,457"),
        (1e6, "1,000,000"),
        (1e20, "1e+20"),
        (1e-9, "1e−09"),
        (-1234.5, "−1,234.5"),
        (math.inf, "-"),
        (math.nan, "-"),
        (None, "-"),
    ],
)
def test_numbers_have_six_digits_or_all_before_the_point(value: float | None, text: str) -> None:
    assert wording.format_number(value) == text


@pytest.mark.parametrize(
    ("value", "said", "precise"),
    [
        (2100, "2,100", "2,100"),
        (1931.34, "1,931.3", "1,931.3"),
        (1931.04, "1,931", "1,931.0"),
        (123456.7, "123,457", "123,456.7"),
        (2 / 3, "0.6667", "0.6667"),
        (math.inf, "no finite number", "no finite number"),
        (1e15, "1e+15", "1e+15"),
    ],
)
def test_amounts_are_whole_or_rounded(value: float, said: str, precise: str) -> None:
    assert wording.format_amount(value) == said
    assert wording.format_amount_with_digits(value) == precise


def test_a_half_a_hair_below_is_rounded_up() -> None:
    assert wording.format_amount(1000.45 - 1e-12) == "1,000.5"


def test_more_digits_tell_near_amounts_apart() -> None:
    assert wording.format_amount_with_digits(1000.123, more=2) == "1,000.123"
    assert wording.format_amount_with_digits(2 / 3, more=2) == "0.666667"


def test_samples_are_counted_as_they_are_written() -> None:
    assert wording.count_samples(1) == "1 sample"
    assert wording.count_samples(1 + 1e-12) == "1 sample"
    assert wording.count_samples(0.5) == "0.5 samples"


@pytest.mark.parametrize(
    ("value", "said"), [(math.inf, "no end of"), (1234.5, "1,235"), (3.14159, "3"), (-0.2, "0")]
)
def test_fitted_samples_are_whole_a_half_rounded_up(value: float, said: str) -> None:
    assert wording.format_samples(value) == said


def test_means_of_counts_drop_a_decimal_of_zero() -> None:
    assert wording.format_mean(1234.0) == "1,234"
    assert wording.format_mean(1234.56) == "1,234.6"


def test_numbers_of_a_column_share_their_places() -> None:
    assert wording.format_places(-1234.5, 2) == "−1,234.50"
    assert wording.format_places(1e-9, 2) == "1e−09"
    assert wording.format_places(-0.0, 0) == "0"
    assert wording.format_places(-0.0, 2) == "0.00"
    assert wording.format_places(math.nan, 2) == "–"
    assert wording.format_places(-math.inf, 2) == "−∞"


def test_ticks_become_powers_of_ten_where_they_would_be_long() -> None:
    assert wording.format_tick(0) == "0"
    assert wording.format_tick(-1500) == "−1,500"
    assert wording.format_tick(1e6) == "10⁶"
    assert wording.format_tick(2.5e-7) == "2.5·10⁻⁷"
    assert wording.format_percent_tick(0.125) == "12.5 %"


@pytest.mark.parametrize(
    ("share", "plain", "hedged", "low"),
    [
        (0.0, "0 %", "0 %", "0 %"),
        (0.004, "0 %", "less than 1 %", "less than 1 %"),
        (0.257, "26 %", "26 %", "26 %"),
        (0.996, "100 %", "more than 99 %", "100 %"),
        (1.0, "100 %", "100 %", "100 %"),
    ],
)
def test_shares_near_the_ends_need_not_read_like_them(
    share: float, plain: str, hedged: str, low: str
) -> None:
    assert wording.format_percent(share) == plain
    assert wording.format_part(share) == hedged
    assert wording.format_low_part(share) == low


def test_levels_keep_their_decimals() -> None:
    assert wording.format_level(0.025) == "2.5 %"
    assert wording.format_level(1) == "100 %"


@pytest.mark.parametrize(
    ("value", "said", "short"),
    [
        (0.0, "0.00", "0.00"),
        (0.001, "below 0.01", "< 0.01"),
        (0.5, "0.50", "0.50"),
        (0.999, "above 0.99", "> 0.99"),
        (1.0, "1.00", "1.00"),
    ],
)
def test_probabilities_never_read_as_certain(value: float, said: str, short: str) -> None:
    assert wording.format_probability(value) == said
    assert wording.format_short_probability(value) == short


def test_an_unknown_probability_is_a_dash() -> None:
    assert wording.format_short_probability(None) == "-"


def test_accuracies_have_two_digits_or_three() -> None:
    assert wording.format_accuracy(0.8) == "0.80"
    assert wording.format_accuracy(0.825) == "0.825"
    assert wording.format_accuracy_down(0.82999) == "0.829"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (math.inf, math.inf, "none"),
        (math.nan, math.nan, "unknown"),
        (2, math.inf, "at least 2"),
        (2, 2.0000001, "2"),
        (2, 3.5, "from 2 to 3.5"),
    ],
)
def test_ranges_say_what_is_known(low: float, high: float, said: str) -> None:
    assert wording.format_range(low, high, wording.format_number) == said


def test_intervals_stand_in_brackets_and_may_have_no_end() -> None:
    assert wording.format_interval(20, 10, 30, wording.format_samples) == "20 [10, 30]"
    assert wording.format_interval(20, 10, math.inf, wording.format_samples) == "20 [10, ∞]"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "0 s"), (59.4, "59 s"), (75, "1 min 15 s"), (7500, "2 h 05 min")],
)
def test_durations_grow_from_seconds_to_hours(seconds: float, said: str) -> None:
    assert wording.format_duration(seconds) == said


def test_nothing_takes_no_time_at_all() -> None:
    assert wording.format_duration(0.2, hedge=True) == "less than 1 s"
    assert wording.format_duration(2, hedge=True) == "2 s"


# The user's own words.

HOSPITALS = wording.Words("hospital", "image", "", "images")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("an agent gives a sample", "a hospital gives an image"),
        ("Agents give samples.", "Hospitals give images."),
        ("An agent's samples", "A hospital's images"),
        ("2 agents; 1 sample", "2 hospitals; 1 image"),
        ("agent 3", "hospital 3"),
        # Not the words, or not as words.
        ("200 resamples", "200 resamples"),
        ("more than agents have", "more than hospitals have"),
        ("--agent-word x", "--agent-word x"),
        ("agents.csv and data/agent", "agents.csv and data/agent"),
        ("pilot,agent,accuracy (agent,label)", "pilot,agent,accuracy (agent,label)"),
        ("the columns agent and limit; 'agent'", "the columns agent and limit; 'agent'"),
        ('"samples" in [agents]', '"samples" in [agents]'),
        ("agents, samples", "hospitals, images"),
    ],
)
def test_agents_and_samples_take_the_users_words(text: str, said: str) -> None:
    assert HOSPITALS.rename(text) == said


def test_names_of_agents_stay_as_they_are() -> None:
    text = "Agent Smith and Sample City Agent are agents."
    kept = HOSPITALS.rename(text, ["Agent Smith", "Sample City", "Sample City Agent"])
    assert kept == "Agent Smith and Sample City Agent are hospitals."
    # Without the names they are taken for the words.
    assert HOSPITALS.rename(text) != kept


def test_irregular_plurals_are_used_and_the_usual_words_change_nothing() -> None:
    countries = wording.Words("country", agents="countries")
    assert countries.rename("all agents and each agent") == "all countries and each country"
    assert wording.Words().rename("an agent, a sample") == "an agent, a sample"


@pytest.mark.parametrize("word", ["image", "X-ray", "MRI scan", "hour", "ECG", "outpatient"])
def test_these_take_an(word: str) -> None:
    assert wording.takes_an(word)


@pytest.mark.parametrize("word", ["case", "unit", "university", "CT scan", "hospital", "one-off"])
def test_these_take_a(word: str) -> None:
    assert not wording.takes_an(word)


@pytest.mark.parametrize(
    ("value", "requested", "written"),
    [
        (0.9487, 0.95, "0.948"),
        (0.949999, 0.95, "0.949"),
        (0.95 - 1e-12, 0.95, "0.949"),
        (0.80, 0.95, "0.80"),
        (0.95, 0.95, "0.95"),
        (0.996, 0.95, "above 0.99"),
        (1.0, 0.95, "above 0.99"),
        (0.0, 0.95, "below 0.01"),
        (0.9899, 0.99, "0.989"),
        (0.9946, 0.999, "0.99"),
        (0.9985, 0.999, "0.998"),
        (0.999 - 1e-12, 0.999, "0.998"),
        (0.999, 0.999, "0.999"),
        (0.99905, 0.999, "0.999"),
        (0.9972, 0.9999, "0.9972"),
        (0.9995, 0.9999, "0.9995"),
        (1.0, 0.9999, "above 0.9999"),
        (0.722, 0.722, "0.722"),
        (0.7224, 0.722, "0.722"),
        (0.7219, 0.722, "0.72"),
        (0.7281, 0.722, "0.73"),
        (0.7257, 0.7261, "0.7257"),
        (0.01, 0.0102, "0.01"),
        (None, 0.95, "unknown"),
    ],
)
def test_a_probability_can_be_told_from_the_requested_one(value, requested, written):
    assert wording.format_beside(value, requested) == written


def test_a_requested_probability_has_all_its_digits():
    requested = (0.9, 0.95, 0.925, 0.999, 0.9999, 0.9999999)
    written = ["0.90", "0.95", "0.925", "0.999", "0.9999", "0.9999999"]
    assert list(map(wording.format_requested, requested)) == written


def test_an_interval_whose_ends_read_alike_says_so_once():
    assert wording.format_range(0.67, 1.0, wording.format_uncertain) == "from 0.67 to above 0.99"
    assert wording.format_range(0.0, 0.001, wording.format_uncertain) == "below 0.01"
