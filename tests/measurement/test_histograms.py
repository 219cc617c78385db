"""Label histograms: read, what samples are worth by them, and the game they make."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedaccord import DiscoveryGame, solve_stable
from fedaccord._io.kinds import HISTOGRAMS, PILOTS, PROPOSAL
from fedaccord._io.numbers import Suspicion
from fedaccord._io.table import read_rows
from fedaccord.errors import InputError
from fedaccord.measurement.histograms import Histograms
from fedaccord.measurement.label_counts import refuse_turned

WIDE = """agent,clear,pneumonia,fracture,need,limit
City,600,300,100,1500,2000
Rural,50,50,,,
"""
LONG = """agent,label,count,need,limit
City,clear,600,1500,2000
City,pneumonia,300,,
Rural,clear,50,,
Rural,pneumonia,50,,
City,fracture,100,,
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "histograms.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("text", [WIDE, LONG, "\ufeff" + WIDE, LONG.replace(",", ";")])
def test_wide_and_long_files_say_the_same(tmp_path: Path, text: str) -> None:
    found = Histograms.load(written(tmp_path, text))
    assert found.agents == ("City", "Rural")
    assert found.labels == ("clear", "pneumonia", "fracture")
    assert found.counts.tolist() == [[600, 300, 100], [50, 50, 0]]
    assert found.needs[0] == 1500
    assert np.isnan(found.needs[1])
    assert found.limits.tolist() == [2000, np.inf]


def test_benefits_are_overlaps_in_own_samples(tmp_path: Path) -> None:
    found = Histograms.load(written(tmp_path, WIDE))
    # q = (.6, .3, .1) and (.5, .5, 0): q q' = .46 and .5, across .45.
    assert found.benefits == pytest.approx(np.array([[1, 0.45 / 0.46], [0.9, 1]]))


def test_the_game_is_the_discovery_game_in_other_units() -> None:
    rng = np.random.default_rng(3)
    found = Histograms("abcd", "uvwxyz", rng.integers(1, 100, (4, 6)), needs=[300, 500, 200, 400])
    shares = found.distributions
    plain = DiscoveryGame(shares, found.needs * (shares**2).sum(axis=1))
    assert found.game().alone == pytest.approx(plain.alone)
    assert solve_stable(found.game()).total == pytest.approx(solve_stable(plain).total, rel=1e-6)


def test_needs_that_nobody_gave_are_assumed_and_said(tmp_path: Path) -> None:
    found = Histograms.load(written(tmp_path, WIDE))
    needs, said = found.assumed_needs()
    assert needs.tolist() == [1500, 100]
    assert len(said) == 1
    assert "Rural" in said[0]
    assert "City" not in said[0]
    assert "The plan assumes that" in said[0]
    assert found.assumed_needs(700)[0].tolist() == [700, 700]
    assert found.assumed_needs({"Rural": 40})[1] == ()
    assert found.game({"Rural": 40}).requirements.tolist() == [1500, 40]
    assert found.assumed_needs([1, 2])[0].tolist() == [1, 2]


def test_hints_follow_the_order_of_the_pilots(tmp_path: Path) -> None:
    found = Histograms.load(written(tmp_path, WIDE))
    assert found.hints_for(["Rural", "City"]) == pytest.approx(
        np.array([[1, 0.9], [0.45 / 0.46, 1]])
    )
    with pytest.raises(InputError, match="Ruhral has pilots and no histogram; is it Rural"):
        found.hints_for(["City", "Ruhral"])


def test_histograms_are_told_by_their_first_line(tmp_path: Path) -> None:
    kinds = {
        WIDE: HISTOGRAMS,
        LONG: HISTOGRAMS,
        "Hospital,class,n\n": HISTOGRAMS,
        "pilot,agent,contribution,accuracy\n": PILOTS,
        "agent,contribution\n": PROPOSAL,
        "who,what\n": None,
    }
    for text, kind in kinds.items():
        assert read_rows(written(tmp_path, text)).kind is kind


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("agent,a\n", "nothing below"),
        ("who,a\nx,1\n", "no column 'agent'"),
        ("agent,need\nx,1\n", "counts of a label"),
        ("agent,a,b\nx,2,-1400\n", r"count of b of x in line 2 of .* is negative \(-1400\): give"),
        ("agent,label,count\nx,b,-1\n", r"count of b of x in line 2 of .* is negative \(-1\)"),
        ("agent,a,need\nx,2,-3\n", r"need of x in line 2 of .* is negative \(-3\)"),
        (
            "agent,a\nx,1-10\n",
            "of x in line 2 .*1-10.: write <11 if the count is withheld because it is small, or",
        ),
        ("agent,label,count\nx,a,2\nx,,3\n", "line 3 .* names no label"),
        ("agent,a\nx,many\n", "count of a of x in line 2.*many"),
        ("agent,a,b\nx,0,\n", "no agent has samples"),
        ("agent,a\nx,2.5\n", "count of a of x in line 2 .* is 2.5: write a whole number"),
        ("agent,a\nx,1.000\n", "can be 1000 or 1: write 1000"),
        (f"agent,a,b\nx,{10**20},2\n", "count of a of x in line 2 .* more than anyone has: write"),
        ("agent,a,b\nx,unter 11,2\n", 'reads "unter 11": write <11, without the word'),
        ("agent,a,b\nx,<11 cases,2\n", 'reads "<11 cases": write <11, without the words'),
        ("agent,a,b\nx,at most 10,2\n", 'reads "at most 10": write ≤10, without the word'),
        ("agent,a,Notiz\nx,2,ok\n", "reads \"ok\": .* If 'Notiz' is no label, delete the column$"),
        ("agent,a,Hausnummer\nx,2,3\n", "'Hausnummer' .* no counts of samples: delete it"),
        ("agent,a,b,total\nx,1,2,4\n", "line 2 .* 4 in the column 'total', .* sum to 3"),
        ("agent,a,count\nx,1,2\n", "column for the count and none for the label"),
        ("agent,contribution\nx,5\n", "is a table of contributions, .*fedaccord check"),
        ("agent,a\nx,1\nx,2\n", "line 3 .* second of x"),
        ("agent,a\n,1\n", "line 2 .* names no agent"),
        ("agent,label,count\nx,a,1\nx,a,2\n", "line 3 .* second of x for the label 'a'"),
        ("agent,label,count,need\nx,a,1,5\nx,b,2,6\n", "need of x is 5 .* 6 in line 3"),
        ("agent,a\nx,1,2\n", "line 2 .* has 3 cells"),
        *(
            (f"agent,flu,ok,{name}\nA,5,4,7\nB,4,1,5\n", f"column '{name}' .* have no counts of")
            for name in ("No.", "#", "PLZ", "Betten", "Phone")
        ),
        (
            "agent,No,flu,ok\nA,1,4,7\nB,2,1,5\nC,3,9,9\nD,4,2,8\n",
            "column 'No' of .* numbers its lines from 1 to 4: delete it, or change the order of",
        ),
        (
            "agent,flu,Contact\nA,5,030123456\nB,4,0891\n",
            'Contact of A in line 2 .* reads "030123456", with a zero in front, like a telephone '
            "number or a postcode and unlike a count: delete the column 'Contact', or write the",
        ),
        ("agent,label,count\nA,flu,05\n", 'reads "05", .*: write the count without such zeros'),
        ("agent,flu,ok,Nr\nA,5,4,1\nB,4,1,2\n", "the column 'Nr' of .* seems to have no counts"),
        ("agent,flu,Flu\nA,5,4\nB,4,1\n", "has the labels 'flu' and 'Flu': use the same spelling"),
    ],
)
def test_every_fault_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Histograms.load(written(tmp_path, text))


def test_who_is_not_there_has_no_need(tmp_path: Path) -> None:
    found = Histograms.load(written(tmp_path, WIDE))
    with pytest.raises(InputError, match="did you mean City"):
        found.game({"Citty": 5})
    with pytest.raises(InputError, match="2 numbers"):
        found.game([1, 2, 3])


def test_a_limit_above_the_counts_is_a_doubt_of_the_plan(tmp_path: Path) -> None:
    text = "agent,a,b,need,limit\nx,100,100,50,200\ny,50,200,900,900\n"
    _, said = Histograms.load(written(tmp_path, text)).planning_game()
    assert [one for one in said if "limit of y" in one and "is 900, above its counts" in one]
    assert not [one for one in said if "limit of x" in one]


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (900, None),
        (901, "is 901, above its counts, which add up to 900 at most: if all samples are counted"),
    ],
)
def test_a_limit_may_be_what_withheld_counts_can_add_up_to(
    tmp_path: Path, limit: int, said: str | None
) -> None:
    text = f"agent,a,b,c,d,need,limit\nx,400,250,240,<11,500,{limit}\ny,5,6,7,8,20,\n"
    notes = [note for note in Histograms.load(written(tmp_path, text)).notes if "limit of" in note]
    assert len(notes) == (said is not None) and all(said in note for note in notes)


def list_doubts(found: Histograms) -> list[str]:
    return [note for note in found.notes if isinstance(note, Suspicion)]


# Lines, columns and labels that sum up others.

NETWORK = "hospital,flu,ill,well\nA,5,4,1\nB,7,1,2\nC,1,3,9\n"


@pytest.mark.parametrize(
    "name", ["Network", "All hospitals", "Total (3 hospitals)", "Verbund gesamt"]
)
@pytest.mark.parametrize("last", [True, False])
def test_a_line_that_sums_up_the_others_is_no_agent_by_any_name(
    tmp_path: Path, name: str, last: bool
) -> None:
    line = f"{name},13,8,12\n"
    text = NETWORK + line if last else NETWORK.replace("A,", line + "A,", 1)
    with pytest.raises(InputError) as caught:
        Histograms.load(written(tmp_path, text))
    said = f"line {5 if last else 2} of {tmp_path / 'histograms.csv'}, {name!r}, is the sum of "
    assert str(caught.value) == said + "the others for every label: delete the line"


@pytest.mark.parametrize("name", ["Σ", "Total:", "Grand Total", "Insgesamt"])
def test_a_last_line_with_a_known_name_is_left_out(tmp_path: Path, name: str) -> None:
    found = Histograms.load(written(tmp_path, NETWORK + f"{name},13,8,12\n"))
    assert found.agents == ("A", "B", "C")


@pytest.mark.parametrize(
    "text",
    [
        # Of three agents one may have what two others have, and so may one with a single label.
        "hospital,flu,ill\nA,5,4\nB,7,1\nC,12,5\n",
        "hospital,flu,ill\nA,5,0\nB,7,0\nC,1,0\nD,13,0\n",
        NETWORK + "D,13,8,11\n",
    ],
)
def test_an_agent_may_be_as_large_as_some_others(tmp_path: Path, text: str) -> None:
    assert len(Histograms.load(written(tmp_path, text)).agents) == text.count("\n") - 1


def test_the_sum_of_two_hospitals_is_refused_and_in_examples_doubted(tmp_path: Path) -> None:
    text = "agent,flu,ill\nA,150,400\nB,700,120\nVerbund,850,520\n"
    with pytest.raises(InputError, match=r"^line 4 of .*, 'Verbund', is the sum of the others"):
        Histograms.load(written(tmp_path, text))
    for chance in (
        "agent,flu,ill\nA,5,4\nB,7,1\nC,12,5\n",
        "agent,flu,ill\nA,100,300\nB,200,600\nC,300,900\n",
    ):
        [doubt] = (
            note
            for note in Histograms.load(written(tmp_path, chance)).notes
            if isinstance(note, Suspicion)
        )
        assert doubt.endswith(
            "'C', is the sum of the others for every label: delete the line if it is a total"
        )


@pytest.mark.parametrize(
    ("heading", "meant"),
    [
        *(("Limt", "limit"), ("neeed", "need"), ("Requirment", "need"), ("nead", "need")),
        *(("nede", "need"), ("ned", "need"), ("neet", "need"), ("gaol", "goal"), ("cozt", "cost")),
        *(("county", "count"), ("prince", "cost")),
    ],
)
def test_a_label_like_a_heading_is_a_doubt(tmp_path: Path, heading: str, meant: str) -> None:
    text = f"agent,clear,ill,{heading}\nA,5,4,300\nB,7,1,200\n"
    found = Histograms.load(written(tmp_path, text))
    assert found.labels == ("clear", "ill", heading)
    [doubt] = list_doubts(found)
    assert doubt.endswith(
        f"is read as a label: call it {meant!r} if it is the {meant}, or '{heading} cases' if it "
        "is a label"
    )
    other = Histograms.load(written(tmp_path, text.replace(heading, f"{heading} cases")))
    assert not list_doubts(other)


@pytest.mark.parametrize(
    "label",
    [
        *("goat", "cyst", "seed", "neck", "cut", "Coat", "weed", "mint", "mine", "boat", "lime"),
        *("coast", "chest cases"),
    ],
)
def test_a_label_may_be_like_a_heading(tmp_path: Path, label: str) -> None:
    found = Histograms.load(written(tmp_path, f"agent,clear,{label}\nA,5,4\nB,7,1\n"))
    assert found.labels == ("clear", label)
    assert not list_doubts(found)


def test_a_label_stands_next_to_the_others(tmp_path: Path) -> None:
    text = "agent,clear,ill,need,Deckel\nA,5,4,9,300\nB,7,1,9,200\n"
    said = (
        "^the column 'Deckel' of .* stands apart from the labels: delete it, or call it 'limit', "
        "or move it next to 'ill' if it is a label$"
    )
    with pytest.raises(InputError, match=said):
        Histograms.load(written(tmp_path, text))
    apart = text.replace("Deckel", "total").replace(",300", ",9").replace(",200", ",8")
    assert Histograms.load(written(tmp_path, apart)).labels == ("clear", "ill")
    first = "agent,limit,clear,ill,need\nA,9,5,4,9\nB,8,7,1,9\n"
    assert Histograms.load(written(tmp_path, first)).labels == ("clear", "ill")


def suspicions(folder: Path, text: str) -> list[str]:
    return [n for n in Histograms.load(written(folder, text)).notes if isinstance(n, Suspicion)]


@pytest.mark.parametrize(
    "cells",
    [
        # Numbers of telephones with and without an area code, of institutions, and dates.
        (2211234, 8912345, 3099887),
        (2211234567, 891234567, 309988776),
        (260530103, 260911234, 261100033),
        (45964, 45964, 45965),
    ],
)
def test_numbers_far_above_all_counts_are_doubted(tmp_path: Path, cells: tuple[int, ...]) -> None:
    counts = ("1500,500", "350,1950", "150,120")
    lines = (f"{n},{few},{many}\n" for n, few, many in zip("ABC", counts, cells, strict=True))
    text = "agent,clear,ill,IKX\n" + "".join(lines)
    assert any("'IKX' of" in note and "far above" in note for note in suspicions(tmp_path, text))
    assert not suspicions(tmp_path, text.replace("IKX", "IKX cases"))


def test_dates_are_doubted_though_a_count_is_missing(tmp_path: Path) -> None:
    text = "agent,clear,ill,rare,IKX\nA,1500,500,,45964\nB,350,1950,4,45964\nC,150,120,3,45965\n"
    assert any("'IKX' of" in note and "far above" in note for note in suspicions(tmp_path, text))


@settings(max_examples=60)
@given(st.data())
def test_unlike_hospitals_are_never_refused(tmp_path_factory: Any, data: st.DataObject) -> None:
    """Most samples may be of one label, as in screening, and hospitals differ a thousandfold."""
    agents, labels = data.draw(st.integers(2, 6)), data.draw(st.integers(2, 5))
    usual = [data.draw(st.sampled_from([5, 90, 9_000, 200_000])) for _ in range(labels)]
    sizes = [data.draw(st.sampled_from([0.2, 1, 1, 4])) for _ in range(agents)]
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    counts = rng.poisson(np.outer(sizes, usual) * rng.lognormal(0, 0.5, (agents, labels))) + 1
    lines = [",".join(["agent", *(f"label {n}" for n in range(labels))])]
    lines += [",".join([f"H{n}", *map(str, row)]) for n, row in enumerate(counts.tolist())]
    path = written(tmp_path_factory.mktemp("drawn"), "\n".join(lines) + "\n")
    assert Histograms.load(path).counts.tolist() == counts.tolist()


@pytest.mark.parametrize("most", [(100_000, 99_000, 101_000), (5_000, 5_001, 5_002)])
def test_a_common_label_may_be_as_common_everywhere(tmp_path: Path, most: tuple[int, ...]) -> None:
    few = (20, 300, 45)
    lines = (f"{n},{one},{other}\n" for n, one, other in zip("ABC", most, few, strict=True))
    text = "agent,clear,ill\n" + "".join(lines)
    assert Histograms.load(written(tmp_path, text)).size == 3


def test_withheld_counts_leave_a_sum_some_room(tmp_path: Path) -> None:
    text = NETWORK.replace("B,7,1,2", "B,7,<5,2")
    with pytest.raises(InputError, match="'Network', is the sum of the others"):
        Histograms.load(written(tmp_path, text + "Network,13,8,12\n"))
    assert Histograms.load(written(tmp_path, text + "D,13,20,12\n")).size == 4


LONG_SUMS = """agent,label,count
A,flu,5
A,ill,4
A,{0},9
B,flu,7
B,{0},7
"""


@pytest.mark.parametrize("name", ["total", "All", "Summe", "Σ"])
def test_a_label_of_totals_is_left_out_and_noted(tmp_path: Path, name: str) -> None:
    found = Histograms.load(written(tmp_path, LONG_SUMS.format(name)))
    assert found.labels == ("flu", "ill")
    assert found.counts.tolist() == [[5, 4], [7, 0]]
    assert any(f"the label {name!r} of" in note and "left out" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            LONG_SUMS.format("total").replace("9", "11"),
            "^line 4 of .* has 11 in the label 'total', and the other labels sum to 9: leave the "
            "label out, or rename it if it is no total$",
        ),
        (
            "agent,label,count\nA,flu,10\nA,ill,21\nB,flu,32\nB,ill,43\nC,flu,54\nC,ill,65\n"
            "Network,flu,96\nNetwork,ill,129\n",
            "^line 8 of .*, 'Network', is the sum of .*: delete all lines of 'Network'$",
        ),
    ],
)
def test_sums_in_a_long_table_are_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Histograms.load(written(tmp_path, text))


# Names that are likely misspelt.


def test_a_label_that_is_likely_misspelt_is_a_doubt_of_the_plan(tmp_path: Path) -> None:
    text = LONG.replace("Rural,pneumonia", "Rural,pnuemonia")
    _, said = Histograms.load(written(tmp_path, text)).planning_game()
    assert any(
        "Rural alone has the label 'pnuemonia', in line 5 of" in one
        and one.endswith("and has no 'pneumonia': correct the label if 'pneumonia' is meant.")
        for one in said
    )


@pytest.mark.parametrize("names", [("type A", "type B"), ("grade 12", "grade 21"), ("ill", "well")])
def test_labels_that_are_alike_may_be_two(tmp_path: Path, names: tuple[str, str]) -> None:
    text = "agent,label,count\nA,{},5\nB,{},7\nA,ok,7\nB,ok,7\n".format(*names)
    notes = Histograms.load(written(tmp_path, text)).notes
    assert not [note for note in notes if "correct" in note]


def test_an_agent_that_is_likely_misspelt_is_a_doubt_of_the_plan(tmp_path: Path) -> None:
    text = LONG.replace("City,fracture", "Ciyt,fracture")
    _, said = Histograms.load(written(tmp_path, text)).planning_game()
    assert any(one.startswith("Ciyt, in line 6 of") and "if City is meant" in one for one in said)
    assert not [one for one in said if one.startswith("City")]


def test_a_histogram_without_pilots_is_not_a_misspelt_one(tmp_path: Path) -> None:
    found = Histograms.load(written(tmp_path, WIDE + "Citty,1,2,3,,\nSpa,1,2,3,,\n"))
    with pytest.raises(
        InputError, match=r"^Citty has a histogram and no pilots; did you mean City"
    ):
        found.hints_for(["City", "Rural"])
    found = Histograms.load(written(tmp_path, WIDE + "Spa,1,2,3,,\n"))
    assert found.hints_for(["City", "Rural"]).shape == (2, 2)


def test_a_label_may_be_called_no_or_count_up_in_two_lines(tmp_path: Path) -> None:
    found = Histograms.load(written(tmp_path, "agent,yes,No\nA,4,1\nB,5,2\n"))
    assert found.labels == ("yes", "No")


@pytest.mark.parametrize(
    ("heading", "field"),
    [
        ("Bedarf", "needs"),
        ("Cases needed", "needs"),
        ("Cases available", "limits"),
        ("available cases", "limits"),
        ("max_cases", "limits"),
        ("Limit (cases)", "limits"),
        ("min. samples", "minimums"),
        ("Max. Fälle", "limits"),
        ("Min samples", "minimums"),
        ("Kosten pro Fall (€)", "costs"),
        ("cost per case [EUR]", "costs"),
        ("max. tumour", None),
    ],
)
def test_a_heading_may_say_what_is_counted(tmp_path: Path, heading: str, field: str | None) -> None:
    found = Histograms.load(written(tmp_path, f"agent,flu,ok,{heading}\nA,4,7,9\nB,5,2,9\n"))
    if field is None:
        assert found.labels == ("flu", "ok", heading)
    else:
        assert found.labels == ("flu", "ok")
        assert getattr(found, field).tolist() == [9, 9]
        assert any(f"the column {heading!r} is read as" in note for note in found.notes)


def test_what_was_read_is_noted(tmp_path: Path) -> None:
    path = written(tmp_path, WIDE)
    said = (
        f"read 2 agents and 3 labels from {path}: the agents City and Rural, and the labels clear, "
        "pneumonia and fracture"
    )
    assert Histograms.load(path).notes[0] == said
    [said] = Histograms.load(written(tmp_path, "agent,clear\nCity,5\n")).notes[:1]
    assert said.endswith(": the agent City, and the label clear")
    heads = ",".join(f"L{n}" for n in range(1, 15))
    found = Histograms.load(written(tmp_path, f"agent,{heads}\nA,1{',' * 13}\n"))
    assert found.notes[0].endswith("L11, L12 and 2 more")


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        ("agent,flu,ok\nA,40,60\nB,30,70\nC,0,0\n", True),
        ("agent,flu,ill,ok\nA,33,33,33\nB,10,20,70\n", True),
        ("agent,flu,ok\nA,40,60\nB,30,75\n", False),
        ("agent,flu,ok,limit\nA,40,60,50\nB,30,70,\n", False),
        ("agent,flu,ok\nA,40,60\n", False),
    ],
)
def test_counts_that_look_like_per_cent_are_noted(tmp_path: Path, text: str, noted: bool) -> None:
    notes = Histograms.load(written(tmp_path, text)).notes
    assert any("add up to 100, as shares in per cent do" in note for note in notes) == noted


# Tables whose rows are labels.

TURNED = "hospital,City,Rural\nflu,5,9\nok,3,7\n"


def test_a_table_with_agents_as_columns_is_refused_if_their_names_are_known(tmp_path: Path) -> None:
    path = written(tmp_path, TURNED)
    said = "City has pilots, and is a label of the histograms: swap rows and columns, so that each"
    with pytest.raises(InputError, match=said):
        Histograms.load(path).hints_for(["City", "Rural"])
    with pytest.raises(InputError, match=r"Rural is an agent, and a column of .*: swap rows and"):
        refuse_turned(read_rows(path), ["Rural"])
    refuse_turned(read_rows(path), ["flu"])
    refuse_turned(read_rows(written(tmp_path, WIDE)), ["Rural", "Elsewhere"])


def test_labels_with_names_of_agents_are_a_doubt_of_the_plan(tmp_path: Path) -> None:
    text = TURNED.replace("City", "City Hospital").replace("Rural", "Rural clinic")
    _, said = Histograms.load(written(tmp_path, text)).planning_game()
    assert any("labels 'City Hospital' and 'Rural clinic'" in one for one in said)
    text = text.replace("flu", "Site A")
    assert not any(
        "names of agents" in note for note in Histograms.load(written(tmp_path, text)).notes
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agent,ok,ill %\nA,5,4\nB,7,1\n", "^the label 'ill %' in .* is in per cent: delete"),
        ("agent,ok,ill (%)\nA,5,4\nB,7,1\n", "^the label 'ill \\(%\\)' in .* is in per cent"),
        ("agent,label,count\nA,ok,5\nA,ok %,9\n", "^the label 'ok %' in .* is in per cent"),
        ("agent,ok,ill\nA,5,4\nA %,50,40\n", "^the lines of 'A %' in .* are in per cent: delete"),
        ("Unnamed: 0,agent,ok\n0,A,5\n1,B,7\n", "'Unnamed: 0' of .* no counts of samples: del"),
        ("x,agent,ok\n0,A,5\n1,B,7\n2,C,8\n", "'x' of .* numbers its lines from 0 to 2: delete"),
        ("agent,ok,of which flu\nA,5,4\n", "'of which flu' of .* that another column counts too"),
        ("agent,ok,davon Frauen\nA,5,4\n", "'davon Frauen' of .* that another column counts too"),
        ("agent,ok,unlabelled\nA,5,4\n", "'unlabelled' of .* counts samples that have no label"),
    ],
)
def test_what_is_no_count_of_a_label_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Histograms.load(written(tmp_path, text))


@pytest.mark.parametrize("label", [">50 % stenosis", "unlabelled cases", "dontae", "gender"])
def test_a_label_may_have_a_sign_of_per_cent_in_it(tmp_path: Path, label: str) -> None:
    text = f"agent,ok,{label}\nA,5,0\nB,7,1\nC,8,2\n"
    assert Histograms.load(written(tmp_path, text)).labels == ("ok", label)


PARTS = """agent,ok,flu,burn,break,{0}
A,1500,500,250,150,{1}
B,350,950,400,100,{2}
C,150,100,250,700,{3}
"""


@pytest.mark.parametrize(
    ("name", "cells", "said"),
    [
        ("ill", (900, 1450, 1050), "the sum of 'flu', 'burn' and 'break' for every agent"),
        ("studies", (2390, 1800, 1205), "the sum of the others but for 1 % for every agent"),
    ],
)
def test_a_label_that_is_the_sum_of_some_is_a_doubt(
    tmp_path: Path, name: str, cells: tuple[int, ...], said: str
) -> None:
    path = written(tmp_path, PARTS.format(name, *cells))
    [doubt] = list_doubts(Histograms.load(path))
    assert doubt == (
        f"the column {name!r} of {path} is {said}: delete it if it is a total, or call it "
        f"'{name} cases' if it is a label"
    )
    path = written(tmp_path, PARTS.format(f"{name} cases", *cells))
    assert not list_doubts(Histograms.load(path))
    path = written(tmp_path, PARTS.format(name, *cells[:2], cells[2] * 3))
    assert not list_doubts(Histograms.load(path))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "agent,flu,ok,all cases\nA,5,4,9\nB,4,1,5\n",
            "the column 'all cases' of {} is the sum of the others in every line: call it 'limit' "
            "if it is the limit, and delete it if it is a total",
        ),
        # As many controls as cases.
        (
            "agent,none,flu,cold,limit\nA,500,300,200,\nB,812,401,411,\nC,640,320,320,\n",
            "the column 'none' of {} is the sum of the others in every line: delete it if it is a "
            "total",
        ),
        (
            LONG_SUMS.format("everyone") + "B,ill,0\n",
            "the label 'everyone' of {} is the sum of the others for every agent: delete its lines "
            "if it is a total",
        ),
        (
            "agent,flu,ok,cold\nA,1,4,7\nB,2,1,5\nC,3,9,9\n",
            "the column 'flu' of {} numbers its lines from 1 to 3: delete it unless it is a label",
        ),
        (
            "agent,flu,ok,cold\nA,3,5,2\nB,0,0,1\nC,0,4,0\nD,3,1,1\n",
            "line 2 of {}, 'A', is the sum of the others for every label: delete the line if it is "
            "a total",
        ),
    ],
)
def test_sums_that_can_be_honest_are_doubts(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    found = Histograms.load(path)
    assert list_doubts(found) == [said.format(path)]


def test_labels_that_nobody_has_are_compared_without_a_warning(tmp_path: Path) -> None:
    text = "agent,a,b,c\nA,5,0,0\nB,7,0,0\nC,9,0,0\n"
    assert not list_doubts(Histograms.load(written(tmp_path, text)))


@pytest.mark.parametrize(
    "text",
    [
        # Few samples, the same mix, and two agents only.
        "agent,a,b,c,d\nA,1,2,3,4\nB,2,1,3,5\nC,0,2,2,9\n",
        "agent,a,b,c,d\nA,100,200,300,40\nB,200,400,600,80\nC,300,600,900,120\n",
        "agent,a,b,c,d\nA,150,230,380,40\nB,220,410,630,80\n",
    ],
)
def test_a_label_may_be_as_common_as_some_others(tmp_path: Path, text: str) -> None:
    assert len(Histograms.load(written(tmp_path, text)).labels) == 4


def test_many_labels_are_compared_in_little_time(tmp_path: Path) -> None:
    counts = np.random.default_rng(1).integers(100, 5_000, (30, 60))
    counts[:, 59] = counts[:, 4:9].sum(axis=1)
    lines = [",".join(["agent", *(f"type {n}" for n in range(60))])]
    lines += [",".join([f"H{n}", *map(str, row)]) for n, row in enumerate(counts.tolist())]
    [doubt] = list_doubts(Histograms.load(written(tmp_path, "\n".join(lines) + "\n")))
    assert "'type 59'" in doubt and "is the sum of 'type 4', 'type 5', 'type 6'" in doubt


def test_a_total_that_is_off_by_a_hundredth_is_refused_or_doubted(tmp_path: Path) -> None:
    text = "agent,ok,flu,burn\nA,1500,500,250\nB,350,950,400\nC,150,100,250\n"
    said = "^line 5 of .*, 'Network', is the sum of the others for every label, but for 1 %: delete"
    with pytest.raises(InputError, match=said):
        Histograms.load(written(tmp_path, text + "Network,2001,1550,900\n"))
    assert Histograms.load(written(tmp_path, text + "Network,2001,1550,800\n")).size == 4
    of_two = text.replace("C,150,100,250", "Network,1860,1450,650")
    [doubt] = [
        note
        for note in Histograms.load(written(tmp_path, of_two)).notes
        if isinstance(note, Suspicion)
    ]
    assert "but for 1 %: delete it if it is a total" in doubt


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("1-10", "write <11 if the count is withheld because it is small"),
        ("0–10", "write <11 if the count is withheld because it is small"),
        ("few", "0 where there is none, or a bound such as <11 where the count is withheld"),
        ("*", "0 where there is none, or a bound such as <11 where the count is withheld"),
        ("suppressed", "0 where there is none, or a bound such as <11 where the count is"),
        (">240", "a bound cannot be used; write the number itself$"),
        ("(240)", "it can mean -240; write 240 if that is meant"),
        ("240-", "it can mean -240; write 240 if that is meant"),
        ("600-800", "a range cannot be used; write one number"),
    ],
)
def test_a_count_has_a_remedy_that_is_read(tmp_path: Path, cell: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Histograms.load(written(tmp_path, f"agent,ok,ill\nA,{cell},4\nB,7,1\n"))


@pytest.mark.parametrize("name", ["n", "cases"])
def test_a_total_may_be_headed_like_counts(tmp_path: Path, name: str) -> None:
    text = f"agent,ok,ill,{name}\nA,5,4,9\nB,7,1,8\n"
    with pytest.raises(InputError, match=f"^the column '{name}' of .* is the sum of the others: d"):
        Histograms.load(written(tmp_path, text))


@pytest.mark.parametrize("kind", [HISTOGRAMS, PILOTS])
def test_a_turned_table_is_named(tmp_path: Path, kind: Any) -> None:
    text = "label,North,Hill\nok,5,4\nill,7,1\n"
    with pytest.raises(InputError, match="is turned, if 'North' is an agent: write one line for e"):
        read_rows(written(tmp_path, text)).to_sheet(kind)


def test_an_agent_that_comes_twice_is_named_before_its_limits(tmp_path: Path) -> None:
    text = "agent,ok,limit\nA,5,9\nHill,4,8\nHill,3,7\n"
    with pytest.raises(InputError, match=r"^line 4 of .* is the second of Hill; join"):
        Histograms.load(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "agent,A,B\nflu,90,50\ncold,8,9\nneed,40,30\n",
            "^line 4 of .* names 'need', a column, as agent: swap rows and columns",
        ),
        ("agent,flu,cold\nA,90,8\nB,9,40\nMax,90,40\n", "^line 4 of .* 'Max', .*: delete it$"),
        (
            "agent,flu,cold,limit,minimum\nA,90,8,,\nB,9,4,10,12\n",
            "^the minimum of B in line 3 of .* is 12, above its limit of 10: lower one or raise",
        ),
        ("agent,label,count,ned\nA,flu,9,8\nA,cold,4,\n", "^the column 'ned' of .* the need"),
    ],
)
def test_what_is_no_agent_is_refused_with_its_line(tmp_path, text, said):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        Histograms.load(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agent,flu,cold\nA,90,8\nB,9,40\nMax,9,80\n", "is called 'Max', .*delete it if it is$"),
        ("agent,label,count,cap\nA,flu,9,8\nA,cold,4,\n", "^the column 'cap' of .* is not read$"),
        (
            "agent,label,count\nMill,flu,9\nMill,cold,4\nMi1l,flu,8\n",
            "^Mi1l, in line 4 of .*, has fewer labels than Mill: correct the name if Mill is meant",
        ),
        (
            "agent,label,count\nHarbour,flu,9\nHarbour,cold,4\nHarbor,flu,8\n",
            "^Harbor, in line 4 of .*, has fewer labels than Harbour: correct the name if",
        ),
    ],
)
def test_what_may_be_no_agent_is_noted_with_its_line(tmp_path, text, said):
    path = tmp_path / "table.csv"
    path.write_text(text)
    assert any(re.search(said, note) for note in Histograms.load(path).notes)


OFF = "agent,a,b,c,{}\nA,190,62,24,276\nB,80,90,31,201\nC,30,15,90,135\nD,42,61,26,146\n"


@pytest.mark.parametrize("name", ["Total 2024", "n total", "Total (all)"])
def test_a_label_named_like_a_total_is_a_doubt_though_one_line_is_wrong(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "h.csv"
    path.write_text(OFF.format(name))
    assert any(
        f"{name!r} of {path} is the sum of the others but for 1 % for all agents but one" in note
        for note in Histograms.load(path).notes
    )
    path.write_text(OFF.format(name).replace("146", "130"))
    assert any("but for 1 % for every agent" in note for note in Histograms.load(path).notes)
    path.write_text(OFF.format("flu"))
    assert not any("sum of the others" in note for note in Histograms.load(path).notes)
