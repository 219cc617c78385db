"""Pages as HTML: escaped, allowed nothing from elsewhere, the same each time; files of pictures."""

import re
import subprocess
import sys
from html import unescape
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import pytest
from browser import example_pages
from page_elements import Elements, hash_of, policy

from fedaccord.charts import Chart, Line
from fedaccord.errors import InputError
from fedaccord.report import Listing, Mark, Page, Picture, Section, Table, picture_of
from fedaccord.report.html import page_html, picture_csv, picture_png, picture_svg
from fedaccord.report.style import COLOURS, Drawing, write_rules


def simple(*parts, **options):
    options = {"title": "t", "verdict": "v", "tone": "plain", **options}
    return Page(sections=(Section("heading", parts),), **options)


@pytest.fixture(scope="module")
def hostile():
    return example_pages.hostile().html()


def test_every_place_that_takes_a_name_escapes_it():
    name = '<b onclick="x">&\'</script>'
    table = Table(name, (name, name), ((name, Mark(name, "bad")),), ((name, name),))
    draw = lambda ax: ax.plot([1, 2], [1, 2])  # noqa: E731
    picture = Picture("p", name, name, draw, table, note=name)
    parts = (name, Mark(name, "good"), Listing((name,)), table, picture, Section(name, (name,)))
    sections = tuple(Section(f"{name} {n}", parts if n == 0 else ()) for n in range(5))
    page = Page(name, name, "bad", sections, ((name, name),), command=name)
    read = Elements(page.html())
    assert read.all("b") == []
    assert len(read.all("script")) == 1
    assert not any(key.startswith("on") for _, attributes in read.found for key in attributes)
    # title, verdict, each heading twice, and all the rest: nothing is lost either
    assert "".join(read.text).count(name) >= 25


def test_a_template_in_a_name_is_not_run(hostile):
    assert "{{ 7 * 7 }} {% raw %}" in hostile
    assert "49 {%" not in hostile


def test_signs_that_would_hide_or_reverse_text_are_shown(hostile):
    assert "\x00" not in hostile and "\x1b" not in hostile and "\u202e" not in hostile
    assert "\\x1b[31m" in hostile and "\\u202egnp" in hostile


def test_names_written_from_right_to_left_are_kept_apart():
    page = simple("Of בית חולים 3 gives 5, and بيت gives 7.").html()
    assert "Of <bdi>בית חולים</bdi> 3 gives 5, and <bdi>بيت</bdi> gives 7." in page


def test_a_page_with_lone_surrogates_is_written(tmp_path):
    page = simple("a \ud800 b", Table("c", ("n",), (("\udfff",),)), title="\ud800")
    page.save(tmp_path / "page.html")
    assert "a \\ud800 b" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_policy_allows_this_style_and_script_and_nothing_from_elsewhere(hostile):
    allowed = policy(hostile)
    (style,) = re.findall("<style>(.*?)</style>", hostile, re.S)
    (script,) = re.findall("<script>(.*?)</script>", hostile, re.S)
    assert allowed["default-src"] == "'none'"
    assert allowed["style-src"] == hash_of(style)
    assert allowed["script-src"] == hash_of(script)
    others = {"img-src": "data:", "base-uri": "'none'", "form-action": "'none'"}
    assert allowed.items() >= others.items()
    assert set(allowed) == {"default-src", "style-src", "script-src", *others}


def test_nothing_on_a_page_leads_elsewhere(hostile):
    for tag, attributes in Elements(hostile).found:
        for key in ("src", "href", "action", "srcset", "data", "xlink:href"):
            assert attributes.get(key, "#").startswith(("#", "data:")), (tag, attributes)
        assert "style" not in attributes, tag
    assert "http://" not in re.sub("<code>.*?</code>", "", hostile)
    assert "https://" not in hostile


def test_the_same_page_is_the_same_text_twice():
    table = example_pages.plan_table(example_pages.FOUR)
    first, second = (
        simple(picture_of(example_pages.training()), table, example_pages.allocations(("a", "b")))
        for _ in range(2)
    )
    assert first.html() == second.html()


def test_the_parts_of_several_figures_share_no_names(hostile):
    ids = [attributes["id"] for _, attributes in Elements(hostile).found if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert len([name for name in ids if name.startswith(("p-", "n-"))]) > 20


def test_headings_go_down_one_level_at_a_time_and_no_deeper_than_six():
    part = Section("deepest", ("text",))
    for n in range(7, 0, -1):
        part = Section(f"level {n}", (part,))
    read = Elements(Page("t", "v", "good", (part,), (("a", "b"),)).html())
    levels = [int(tag[1]) for tag, _ in read.found if re.fullmatch("h[1-6]", tag)]
    assert levels == [1, 2, 3, 4, 5, 6, 6, 6, 6, 2]


@pytest.mark.parametrize(
    ("tone", "word"),
    [("good", "All is well"), ("bad", "Beware"), ("unsure", "Not certain"), ("plain", "In short")],
)
def test_a_verdict_says_its_tone_in_a_word(tone, word):
    read = Elements(simple(tone=tone).html())
    assert word in read.text
    assert read.all("main") and read.all("h1")


def test_a_page_lists_its_sections_when_there_are_many():
    def listed(count, inner):
        sections = tuple(
            Section(f"top {n}", tuple(Section(f"in {n}-{m}", ()) for m in range(inner)))
            for n in range(count)
        )
        text = Page("t", "v", "good", sections).html()
        nav = re.findall("<nav.*?</nav>", text, re.S)
        return nav[0].count("<li>") if nav else 0

    assert listed(3, 1) == 0
    assert listed(4, 2) == 12
    assert listed(30, 2) == 30


def test_no_line_ends_between_a_number_and_its_per_cent():
    made = simple("in 100 % of runs, % alone", command="echo 5 %").html()
    assert "<p>in 100\u00a0% of runs, % alone</p>" in made
    # What is to be copied stays as it was typed.
    assert "<span>5</span> <span>%</span>" in made


def test_no_line_ends_within_an_option():
    html = Page("t", "Run fedaccord pilots --next again.", "plain", ()).html()
    assert 'pilots <span class="option">--next</span> again' in html
    assert 'class="option"' not in Page("t", "A range -- or a--b, -->.", "plain", ()).html()


def test_a_heading_is_not_said_again_above_the_figure_or_table_below_it():
    table = Table("Who gives", ("agent",), (("a",),))
    other = Table("Who takes", ("agent",), (("a",),))
    html = Page("t", "v", "plain", (Section("Who gives", (table, other)),)).html()
    assert '<caption id="t1" class="unseen">' in html
    assert '<caption id="t2"><span>Who takes' in html


def test_the_heads_of_stacked_cells_end_like_a_question_or_with_a_colon():
    table = Table("t", ("agent", "Is it \u05d0?", "gives"), (("a", "words " * 8, "nothing"),))
    html = Page("t", "v", "plain", (Section("s", (table,)),)).html()
    assert re.findall('data-head="([^"]*)"', html) == ["Is it \u05d0?", "gives:"]


def test_a_command_of_several_lines_keeps_them():
    made = simple("text", command="make demo\nfedaccord solve a.json").html()
    shown = made.partition("<code>")[2].partition("</code>")[0]
    assert re.sub("</?span>", "", shown) == "make demo\nfedaccord solve a.json"
    # A word, which is not to be broken, never runs on over the end of a line.
    assert "<span>demo</span>\n<span>fedaccord</span>" in shown


def test_without_facts_and_command_nothing_is_said_of_how_it_was_made():
    assert ">How this was made<" not in simple("text").html()
    made = simple("text", facts=(("Seed", "7"),), command="fedaccord solve 'a  b'").html()
    assert ">How this was made<" in made
    code = re.search("<code>(.*?)</code>", made)[1]
    assert unescape(re.sub("<.*?>", "", code)) == "fedaccord solve 'a  b'"


def test_tables_have_captions_and_heads_of_rows_and_columns():
    read = Elements(simple(Table("sums", ("a", "b"), (("x", 1), ("y", 2)))).html())
    scopes = [attributes.get("scope") for attributes in read.all("th")]
    assert scopes == ["col", "col", "row", "row"]
    assert len(read.all("caption")) == 1


def test_an_empty_page_and_an_empty_table_are_pages():
    assert Elements(Page("t", "v", "good", ()).html()).all("h1")
    assert Elements(simple(Table("nothing", ("a",), ())).html()).all("table")


def test_a_page_of_four_hundred_agents_and_six_pictures_stays_small():
    agents = tuple(f"Hospital number {n} of the county" for n in range(400))
    lines = tuple(Line(agent, (0, 1), (n, n / 2)) for n, agent in enumerate(agents))
    bars = example_pages.allocations(agents)
    curves = picture_of(Chart("c", "t", "x", "y", "alt", lines))
    # Of either kind a page may have three, and a table of all.
    pictures = simple(bars, curves).html()
    table = simple(example_pages.plan_table(agents)).html()
    assert 3 * len(pictures.encode()) + len(table.encode()) < 2_600_000


# Files.


def test_the_files_of_a_picture_are_what_their_names_say(tmp_path):
    page = simple(picture_of(example_pages.prices()))
    written = page.save_pictures(tmp_path / "new" / "folder")
    assert sorted(path.name for path in written) == ["prices.csv", "prices.png", "prices.svg"]
    contents = {path.suffix: path.read_bytes() for path in written}
    assert contents[".png"].startswith(b"\x89PNG")
    assert ElementTree.fromstring(contents[".svg"]).tag.endswith("svg")
    assert contents[".csv"].decode("utf-8-sig").startswith("line,agents k,price\r\n")


def test_a_picture_alone_is_light_whole_and_described():
    picture = picture_of(example_pages.defection(("<&>", "b")))
    svg = picture_svg(picture)
    root = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    assert root.find(f"{space}title").text == picture.title
    assert root.find(f"{space}desc").text == picture.alt
    assert "var(" not in svg
    assert COLOURS["series-1"][0] in svg
    assert "<&>" in [text.text for text in root.iter(f"{space}text")]
    assert picture_svg(picture) == svg
    assert picture_png(picture) == picture_png(picture)
    assert picture_csv(picture).startswith("line,")


def test_text_that_xml_cannot_hold_does_not_break_a_figure():
    def draw(ax):
        # Not shown by its escapes first, as a careful figure would.
        ax.set_title("a\x00b\x1b\ufffe")

    svg = picture_svg(Picture("p", "t\x00", "alt", draw, Table("c", ("a",), ())))
    assert ElementTree.fromstring(svg) is not None


SOURCE = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
 viewBox="0 0 10 5"><metadata>x</metadata><defs><style>*{a:b}</style>
<clipPath id="p1"><rect x="0" y="0" width="10" height="5"/></clipPath>
<pattern id="h1"><rect fill="#ffffff"/></pattern><path id="m1" d="M 0 0"/></defs>
<g id="figure_1"><g id="empty"/><g clip-path="url(#p1)">
<use xlink:href="#m1" x="1.23456" y="2.0000001" style="fill: #0f5662; stroke: url(#h1)"/></g>
<text id="text_1" style="font-family: 'DejaVu Sans'; fill: #54616e"
 transform="rotate(-0 1 2)">a &lt; b</text><path d="M 1 2
L 3.001 2
L 3 4
z
" clip-path="url(#p1)"/><path d="M 1 2 L 0 0" clip-path="url(#p1)"/>
</g></svg>"""


def test_a_drawing_is_rewritten_with_names_and_classes_of_its_own():
    classes = {}
    drawing = Drawing(SOURCE, prefix="p-x", classes=classes)
    assert (drawing.width, drawing.height) == (10, 5)
    body = drawing.body
    assert '<g clip-path="url(#p-x-0)">' in body and '<clipPath id="p-x-0">' in body
    assert 'href="#p-x-1" x="1.23" y="2"' in body
    assert '<g clip-path="url(#p-x-0)"><path d="M1 2H3V4z"/><path d="M1 2L0 0"/></g>' in body
    assert "figure_1" not in body and "empty" not in body and "style=" not in body
    assert "rotate" not in body and "metadata" not in body
    assert "a &lt; b</text>" in body
    css = write_rules(classes, themed=True)
    assert "fill:var(--series-1,#0f5662);stroke:url(#p-x-2)" in css
    assert "fill:var(--muted,#54616e)" in css and "fill:var(--paper,#ffffff)" in css
    assert "DejaVu Sans'}" not in css.split("\n", 1)[1]
    again = Drawing(SOURCE, prefix="p-y", classes=classes)
    assert "p-x" not in again.body
    assert len(classes) == 4


def test_every_colour_of_a_figure_follows_the_theme(hostile):
    (style,) = re.findall("<style>(.*?)</style>", hostile, re.S)
    drawn = style[style.index(".drawing{fill") :]
    assert re.sub(r"var\(--[\w-]+,#[0-9a-f]{6}\)", "", drawn).count("#") == drawn.count("url(#")


# What is installed.


def test_the_files_a_page_is_made_of_are_in_the_package():
    for name in ("page.html", "page.css", "page.js"):
        text = files("fedaccord.report").joinpath(name).read_text(encoding="utf-8")
        assert text and "\r" not in text
    assert "</script" not in files("fedaccord.report").joinpath("page.js").read_text()
    assert "</style" not in files("fedaccord.report").joinpath("page.css").read_text()


@pytest.mark.parametrize("missing", ["matplotlib", "jinja2"])
def test_without_the_extra_a_page_says_what_to_install(missing):
    code = f"""
import sys
sys.modules[{missing!r}] = None
from fedaccord.errors import MissingExtraError
from fedaccord.report import Page
try:
    Page("t", "v", "good", ()).html()
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == (
        f"this needs {missing}; install it with: pip install 'fedaccord[report]'"
    )


def test_the_names_of_the_reports_are_there_without_drawing_anything():
    code = """
import sys
import fedaccord.report
assert "matplotlib" not in sys.modules and "jinja2" not in sys.modules
from fedaccord.report import Listing, Mark, Page, Picture, Section, Table, joined
assert "matplotlib" not in sys.modules and "jinja2" not in sys.modules
for name in fedaccord.report.__all__:
    getattr(fedaccord.report, name)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_page_that_cannot_be_drawn_leaves_the_old_one(tmp_path):
    path = tmp_path / "page.html"
    simple("old").save(path)
    before = path.read_text()

    def draw(ax):
        raise InputError("no")

    with pytest.raises(InputError):
        simple(Picture("p", "t", "a", draw, Table("c", ("a",), ()))).save(path)
    assert path.read_text() == before
    assert list(Path(tmp_path).iterdir()) == [path]
    assert page_html(simple("old")) == before
