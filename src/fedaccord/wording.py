"""Numbers, counts, lists and units as people read them.

Formats the numbers that people read in results. Results that differ in how they write the same
kind of number have a function each.

    count(2000, "agent")                2,000 agents
    pluralize(1, "is", "are")           is
    join_with_and(["a", "b", "c"])      a, b and c
    format_amount(1931.34)              1,931.3
    format_percent(0.257)               26 %
    format_probability(0.999)           above 0.99
    format_duration(75)                 1 min 15 s
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice

# From here on, and below its inverse, a number is written with a power of ten.
HUGE = 1e15
NOTHING = "–"
# What agents need without the others: to reach their goals on average (in a game, their
# requirements), or to reach the targets of the plan, which are goals plus safety margins. A plan
# with safety margins has both needs, so there the first has a longer name.
ALONE, ALONE_FOR_TARGET = "alone", "alone, same target"
ALONE_FOR_GOAL = "alone, for its goal"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# What results call agents and samples, with the article before it; not in options, files or paths,
# nor where it is the name of a column or a key.
OWN_WORDS = (
    r"(?<![\w/.,'\"\[-])(?<!column )(?<!columns )(?:(?P<article>[Aa]n?) )?"
    r"(?P<word>[Aa]gents?|[Ss]amples?)(?![\w/=-]|\.\w|,\S)"
)
# How words begin that sound otherwise than they are spelled; letters that are spelled with a vowel.
SPOKEN_WITH_A = ("uni", "eu", "use", "one", "once")
SPOKEN_WITH_AN = ("hour", "honest", "honor", "honour", "heir")
SPELLED_WITH_AN = "AEFHILMNORSX"


@dataclass(frozen=True)
class Words:
    """What the people who read a page call the members of their federation, and what these give.

    agent, sample: in the singular.
    agents, samples: in the plural; the singular with an s where left out.
    """

    agent: str = "agent"
    sample: str = "sample"
    agents: str = ""
    samples: str = ""

    def __post_init__(self) -> None:
        for one, many in (("agent", "agents"), ("sample", "samples")):
            object.__setattr__(self, many, getattr(self, many) or f"{getattr(self, one)}s")

    def rename(self, text: str, keep: Iterable[str] = ()) -> str:
        """Return a text about agents and samples in these words: "an agent" is "a hospital".

        text: in the package's own words.
        keep: names of agents, which stay as they are.
        """
        if self == Words():
            return text
        own = "|".join(re.escape(name) for name in sorted(keep, key=len, reverse=True))
        pattern = f"(?<!\\w)(?:{own})(?!\\w)|{OWN_WORDS}" if own else OWN_WORDS
        return re.sub(pattern, self._replace, text)

    def _replace(self, found: re.Match[str]) -> str:
        article, word = found["article"], found["word"]
        if word is None:
            return found[0]
        own: str = getattr(self, word.lower())
        if article:
            return f"{article[0]}{'n' * takes_an(own)} {own}"
        return capitalize_first(own) if word[0].isupper() else own


# The words of the user who reads messages now.
SPOKEN: ContextVar[Words] = ContextVar("words", default=Words())  # noqa: B039


def takes_an(word: str) -> bool:
    """Return whether a word is spoken with an before it: an hour, a unit, an X-ray."""
    first = re.split(r"[\s-]", word, maxsplit=1)[0]
    if first.isupper():
        return first[0] in SPELLED_WITH_AN
    low = word.lower()
    if low.startswith(SPOKEN_WITH_A):
        return False
    return low.startswith((*SPOKEN_WITH_AN, *"aeiou"))


# Counts and lists.


def pluralize(number: float, one: str, many: str = "") -> str:
    """Return the form of a word that goes with a number.

    number: how many there are.
    one: the form for exactly one.
    many: the form for any other number; the first with an s where left out.
    """
    return one if number == 1 else many or f"{one}s"


def count(number: int, noun: str, plural: str = "") -> str:
    """Return how many of a thing there are: 1 agent, 2,000 agents."""
    return f"{number:,} {pluralize(number, noun, plural)}"


def join_with_and(words: Sequence[str]) -> str:
    """Return words joined by commas, the last by and; nothing for no words."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def name_few(names: Sequence[str], most: int = 3) -> str:
    """Return names for a sentence, and how many more there are beyond the most that it has."""
    named = count_named(len(names), most)
    more = len(names) - named
    return join_with_and([*names[:named], f"{more:,} more"] if more > 0 else names)


def count_named(total: int, most: int = 3) -> int:
    """Return how many of some names a sentence has: all, if only one would be left out.

    total: how many there are.
    most: how many a sentence has room for.
    """
    return total if total <= most + 1 else most


def write_short_alone(limit: float, aim: str) -> str:
    """Return that an agent could not reach what it wants alone, without a full stop at the end.

    limit: the most samples it can give; infinite if nothing limits it.
    aim: what it wants: goal, target or requirement.
    """
    within = f", within its limit of {format_samples(limit)}," if math.isfinite(limit) else ""
    return f"Alone{within} it could not reach its {aim}"


def name_alone(margin: bool) -> str:
    """Return the name of what agents need without the others.

    margin: whether the need includes a safety margin.
    """
    return ALONE_FOR_TARGET if margin else ALONE


def join_first(words: Iterable[str], total: int, *, most: int) -> str:
    """Return the first of many words joined by semicolons, and how many more there are.

    words: at least as many as are shown.
    total: how many there are.
    most: how many are shown.
    """
    first = list(islice(words, count_named(total, most)))
    more = [f"and {total - len(first):,} more"] if total > len(first) else []
    return "; ".join([*first, *more])


def format_settings(settings: Mapping[str, object]) -> str:
    """Return settings with their names, one after the other, without those that are not used."""
    known = ((name, value) for name, value in settings.items() if value is not None)
    return ", ".join(f"{name} {value}" for name, value in known)


def capitalize_first(sentence: str) -> str:
    """Return a sentence with a capital letter at its start, the rest as it is."""
    return sentence[:1].upper() + sentence[1:]


def lower_first(sentence: str) -> str:
    """Return a sentence with a small letter at its start, the rest as it is."""
    return sentence[:1].lower() + sentence[1:]


def shorten(text: str, longest: int) -> str:
    """Return a text cut to a number of characters, with an ellipsis where it was longer."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


# Numbers.


def format_number(value: float | None) -> str:
    """Return a number with six digits, or all digits before the point: 1,234.5, 1,234,568."""
    if value is None or not math.isfinite(value):
        return "-"
    if 1e5 <= abs(value) < HUGE:
        return _mark_minus(f"{value:,.0f}")
    return _mark_minus(f"{value:,.6g}")


def _mark_minus(number: str) -> str:
    """Return a written number with the true minus sign, which is as wide as a plus sign."""
    return number.replace("-", "−")


def format_amount(value: float) -> str:
    """Return a number of samples: 2,100 or 1,931.3 or 0.6667."""
    value = float(value)
    if not math.isfinite(value):
        return "no finite number"
    if abs(value) < HUGE and abs(value - round(value)) <= 1e-9 * max(1.0, abs(value)):
        return _mark_minus(f"{round(value):,}")
    # A half is rounded up, also where a sum has come out a hair below it.
    value *= 1 + 1e-12
    if 1e5 <= abs(value) < HUGE:
        return _mark_minus(f"{value:,.0f}")
    if 1000 <= abs(value) < HUGE:
        return _mark_minus(f"{value:,.1f}".removesuffix(".0"))
    return _mark_minus(f"{value:.4g}")


def format_amount_with_digits(value: float, *, more: int = 0) -> str:
    """Return a number of samples, with more digits than usual where two would read alike.

    value: the number, of at least 0.
    more: how many digits more.
    """
    # Whole numbers beyond 2**63 are more than numpy's functions take.
    value = float(value)
    if not math.isfinite(value):
        return "no finite number"
    if value < HUGE and abs(value - round(value)) <= 1e-9 * max(1.0, abs(value)):
        return f"{round(value):,}"
    if 1000 <= value < HUGE:
        return f"{value:,.{1 + more}f}"
    return f"{value:.{4 + more}g}"


def format_enough(value: float, *, more: int = 0) -> str:
    """Return a number of samples that is enough, rounded up: 794.15 is 794.2, and not 794.1.

    value: the least that is enough, of at least 0.
    more: how many digits more than usual.
    """
    value = float(value)
    shown = format_amount_with_digits(value, more=more)
    if not 0 < value < HUGE or float(shown.replace(",", "")) >= value * (1 - 1e-9):
        return shown
    places = 1 + more if value >= 1000 else 3 + more - math.floor(math.log10(value))
    step = 10.0**-places
    return format_amount_with_digits(math.ceil(value / step) * step, more=more)


def count_samples(value: float) -> str:
    """Return a number of samples with their name: 1 sample, 0.5 samples."""
    shown = format_amount(value)
    return f"{shown} sample{'' if shown == '1' else 's'}"


def format_samples(value: float) -> str:
    """Return a number of samples of a plan: whole, a half rounded up, never minus nothing."""
    return _mark_minus(f"{math.floor(value + 0.5):,}") if math.isfinite(value) else "no end of"


def count_whole(value: float, noun: str) -> str:
    """Return a whole number of things with their name: 1 sample, 1,200 samples."""
    shown = format_samples(value)
    return f"{shown} {noun}{'' if shown == '1' else 's'}"


def format_difference(value: float) -> str:
    """Return by how many samples two numbers differ: +102, −35, 0."""
    shown = format_samples(abs(value))
    return shown if shown == "0" else f"{'+' if value > 0 else '−'}{shown}"


def format_mean(value: float) -> str:
    """Return a mean of counts: thousands apart, one decimal where there is any."""
    return f"{value:,.1f}".removesuffix(".0")


def choose_places(numbers: Iterable[float], most: int) -> int:
    """Return how many digits behind the point a column has: as many as one of its numbers needs.

    numbers: those of the column; infinite ones need none.
    most: the most digits.
    """
    exact = [round(float(number), most) for number in numbers if math.isfinite(number)]
    return next(n for n in range(most + 1) if [round(number, n) for number in exact] == exact)


def format_places(number: float, places: int) -> str:
    """Return a number of a column whose numbers have the same digits behind the point.

    number: any.
    places: how many digits it has behind the point, if it is neither huge nor tiny.
    """
    if math.isnan(number):
        return NOTHING
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if abs(number) >= HUGE or (number and round(float(number), places) == 0):
        return _mark_minus(f"{number:.3g}")
    # A half is rounded up, as in sentences. Plus nothing makes minus nothing nothing.
    return _mark_minus(f"{float(number) * (1 + 1e-12) + 0.0:,.{places}f}")


def format_cell(value: float, places: int) -> str:
    """Return a number that has to fit into a small cell: 0.25, 0.50, <.01 or 123.

    value: the number.
    places: how many digits it has behind the point, if it is neither tiny nor large.
    """
    if 0 < value < 0.005:
        return "<.01"
    return f"{value:.{places}f}" if value < 100 else f"{value:.3g}"


def format_tick(value: float, _place: float | None = None) -> str:
    """Return the number at a tick in full, or as a power of ten where that would be long."""
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)) + 1e-9)
    if -4 <= exponent < 6:
        return _mark_minus(f"{value:,.6g}")
    first = value / 10.0**exponent
    power = "10" + str(exponent).translate(SUPERSCRIPTS)
    return power if math.isclose(first, 1) else _mark_minus(f"{first:.3g}·{power}")


# Shares, probabilities and accuracies.


def format_percent(share: float) -> str:
    """Return a share in per cent without decimals: those are noise in a few dozen runs.

    It is rounded as the same share with two decimals is: 0.815 is 0.81 and 81 %.
    """
    return f"{100 * round(share, 2):.0f} %"


def format_part(share: float) -> str:
    """Return a share in per cent; one just above 0, or just below 1, does not read like it."""
    return "more than 99 %" if 0.995 < share < 1 else format_low_part(share)


def format_low_part(share: float) -> str:
    """Return a share in per cent; one just above 0 does not read like it."""
    return "less than 1 %" if 0 < share < 0.005 else format_percent(share)


def format_level(level: float) -> str:
    """Return a level in per cent, with the decimals it has."""
    return f"{100 * level:g} %"


def format_percent_tick(value: float, _place: float | None = None) -> str:
    """Return the share at a tick in per cent."""
    return _mark_minus(f"{100 * value:.6g} %")


def format_probability(value: float) -> str:
    """Return a probability; what is not certain never reads as if it were."""
    if 0 < value < 0.005:
        return "below 0.01"
    if 0.995 <= value < 1:
        return "above 0.99"
    return f"{value:.2f}"


def format_uncertain(value: float | None) -> str:
    """Return a probability that rests on pilots: above 0.99 at most, since nothing is certain."""
    return "unknown" if value is None else format_probability(min(max(value, 0.001), 0.999))


def format_requested(probability: float) -> str:
    """Return a requested probability with the digits it has: 0.95 or 0.999."""
    short, full = f"{probability:.2f}", f"{probability:.12g}"
    return short if float(short) == float(full) else full


def format_beside(value: float | None, requested: float) -> str:
    """Return a probability with digits enough to tell it from the requested one.

    value: one that rests on pilots.
    requested: which a plan must have.
    """
    if value is None:
        return "unknown"
    short, is_enough = format_uncertain(value), value >= requested
    is_near_one = value >= 0.995 and requested > 0.99
    if (float(short.split()[-1]) >= requested) == is_enough and not is_near_one:
        return short
    places = len(format_requested(requested)) - 2
    if value >= 1:
        return f"above {1 - 0.1**places:.{places}f}"
    # Rounded down, so what misses a requested 0.999 reads as 0.998 at most.
    places = places if is_enough else max(places, 3)
    return f"{Decimal(repr(float(value))):f}"[: places + 2].ljust(places + 2, "0")


def format_short_probability(value: float | None) -> str:
    """Return a probability for a cell: > 0.99 where a sentence has above 0.99."""
    if value is None:
        return "-"
    return format_probability(value).replace("above ", "> ").replace("below ", "< ")


def format_accuracy(value: float) -> str:
    """Return an accuracy: 0.8 as 0.80, 0.825 in full."""
    return f"{value:.2f}" if abs(100 * value - round(100 * value)) < 1e-9 else f"{value:.3f}"


def format_goal(value: float) -> str:
    """Return a goal, which is an accuracy: 0.8 as 0.80, any other as it is."""
    return f"{value:.2f}" if round(value, 2) == value else f"{value:g}"


def round_accuracy_down(value: float) -> float:
    """Return an accuracy that can be promised, with three digits: rounded down."""
    return math.floor(1000 * value + 1e-6) / 1000


def format_accuracy_down(value: float) -> str:
    """Return an accuracy that can be promised: rounded down."""
    return f"{round_accuracy_down(value):.3f}"


# Ranges and units.


def format_range(low: float, high: float, write: Callable[[float], str]) -> str:
    """Return what is known of a number between two bounds: from 2 to 3, at least 2, none.

    low: what it is at least; infinite where there is no such number, NaN where nothing is known.
    high: what it is at most.
    write: writes a finite number.
    """
    if low == math.inf:
        return "none"
    if not math.isfinite(low):
        return "unknown"
    if not math.isfinite(high):
        return f"at least {write(low)}"
    return write(low) if write(low) == write(high) else f"from {write(low)} to {write(high)}"


def format_interval(value: float, low: float, high: float, write: Callable[[float], str]) -> str:
    """Return a number with its interval: 0.95 [0.78, 0.99].

    value, low, high: the number and the ends; an infinite end is ∞.
    write: writes a finite number.
    """
    return f"{write(value)} [{write(low)}, {write(high) if math.isfinite(high) else '∞'}]"


def format_duration(seconds: float, *, hedge: bool = False) -> str:
    """Return a time in seconds, then minutes, then hours: 4 s, 1 min 15 s, 2 h 05 min.

    seconds: how long.
    hedge: whether what takes less than a second says so.
    """
    if hedge and seconds < 1:
        return "less than 1 s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
