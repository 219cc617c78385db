"""Pages in a real browser: they open alone, are drawn, are readable, and do what they offer."""

import base64
import csv
import io
import json
import struct
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from browser import example_pages
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from fedaccord.report.model import Mark, Page, Section, Table

PAGES = ("four", "many", "hostile", "algorithms")
WIDTHS = (1280, 768, 360)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_without_faults_on_screens_of_any_width_and_colour(browser, page_file, name):
    for width in WIDTHS:
        for theme in ("light", "dark"):
            browser.open(page_file(name), width=width, theme=theme)
            assert browser.faults() == [], (width, theme)


def test_names_that_mean_harm_do_none(browser, page_file):
    browser.open(page_file("hostile"))
    with pytest.raises(NoAlertPresentException):
        _ = browser.driver.switch_to.alert
    said = browser.run("return document.body.innerText")
    for name in example_pages.HOSTILE[:4]:
        assert name in said
    assert "tab\\there\\x00\\x1b[31m" in said
    assert example_pages.HOSTILE[0] in browser.driver.title
    # In figures names are text too, and dollars are dollars.
    drawn = browser.run(
        "return [...document.querySelectorAll('.drawing text')].map((text) => text.textContent)"
    )
    assert any(text.startswith("<script>alert(1)") for text in drawn)
    assert "$x_1$ and $\\frac{" in drawn
    assert browser.errors() == []


def test_a_page_without_scripts_shows_everything_but_controls(browser, page_file):
    browser.open(page_file("many"), scripts=False)
    shown = """
        return [...document.querySelectorAll("section > .table tbody tr")].filter(
          (row) => row.getBoundingClientRect().height > 0).length;
    """
    assert browser.run(shown) == 402
    seen = "return [...document.querySelectorAll('button:not([hidden])')].map((b) => b.outerHTML)"
    assert browser.run(seen) == []
    assert browser.check("everything") == []


def test_a_page_for_paper_is_light_and_without_controls_and_folded_parts(browser, page_file):
    browser.open(page_file("four"), theme="dark")
    browser.show(width=720, theme="dark", media="print")
    shown = browser.run(
        """
        const shown = (selector) => [...document.querySelectorAll(selector)].filter(
          (element) => element.checkVisibility()).length;
        return {
          folded: shown("details, summary, details tbody tr"),
          lost: document.querySelectorAll(":not(details *)>tbody tr").length - shown("tbody tr"),
          pictures: shown(".drawing"),
          controls: shown(".theme, .copy, .downloads, .find, .contents"),
          bare: [...document.querySelectorAll("section")].filter((part) =>
            part.checkVisibility() && ![...part.children].slice(1).some(
              (child) => child.checkVisibility())).length,
          ground: getComputedStyle(document.documentElement).getPropertyValue("--paper"),
          cut: [...document.querySelectorAll(".scroll, .canvas")].filter((part) =>
            part.checkVisibility() && getComputedStyle(part).overflowX !== "visible").length,
        };
        """
    )
    assert shown["folded"] == shown["controls"] == 0
    # Every table and figure that is in sight on a screen is on the paper.
    assert shown["lost"] == 0 and shown["pictures"] > 0
    # A heading with nothing below it is left out too.
    assert shown["bare"] == 0
    assert shown["ground"] == "#ffffff"
    assert shown["cut"] == 0
    assert browser.check("overflow") == []
    assert browser.check("clipped") == []
    assert browser.check("faint") == []


def test_paper_is_light_after_a_choice_of_dark_and_leaves_folded_parts_out(browser, page_file):
    browser.open(page_file("four"))
    browser.driver.find_element(By.CLASS_NAME, "theme").click()
    browser.show(media="print")
    paper = "return getComputedStyle(document.documentElement).getPropertyValue('--paper')"
    assert browser.run(paper) == "#ffffff"
    shown = "return document.querySelector('details tbody tr').checkVisibility()"
    assert not browser.run(shown)
    browser.run("document.querySelector('details').open = true")
    assert browser.run(shown)


LOOK = """
const text = document.querySelector(".drawing text");
return [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
        getComputedStyle(text).fill];
"""


def test_the_button_changes_the_colours_of_text_and_figures_and_is_remembered(browser, page_file):
    browser.open(page_file("four"))
    light = browser.run(LOOK)
    button = browser.driver.find_element(By.CLASS_NAME, "theme")
    assert button.text == "Dark colours"
    button.click()
    dark = browser.run(LOOK)
    assert button.text == "Light colours"
    assert all(a != b for a, b in zip(light, dark, strict=True))
    assert browser.check("faint") == []
    browser.driver.refresh()
    assert browser.run(LOOK) == dark
    browser.driver.find_element(By.CLASS_NAME, "theme").click()
    assert browser.run(LOOK) == light
    # What the reader chose goes before what the system likes.
    browser.show(theme="dark")
    assert browser.run(LOOK) == light


def test_the_button_works_where_nothing_may_be_kept(browser, page_file):
    browser.open("")
    source = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('denied') }})"
    added = browser.cdp("Page.addScriptToEvaluateOnNewDocument", source=source)
    try:
        browser.log("browser")
        browser.driver.get(page_file("four").as_uri())
        light = browser.run(LOOK)
        browser.driver.find_element(By.CLASS_NAME, "theme").click()
        assert browser.run(LOOK) != light
        assert browser.errors() == []
    finally:
        browser.cdp("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])


def test_the_keyboard_reaches_everything_in_order_and_focus_is_seen(browser, page_file):
    browser.open(page_file("four"))
    stops = []
    for _ in range(90):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        stop = browser.run(
            """
            const here = document.activeElement;
            if (here === document.body) return null;
            const look = getComputedStyle(here);
            return {kind: here.className || here.tagName, text: here.textContent.trim(),
                    seen: look.outlineStyle !== "none" && parseFloat(look.outlineWidth) > 1,
                    download: here.getAttribute("download")};
            """
        )
        if stop is None:
            break
        stops.append(stop)
    kinds = [stop["kind"] for stop in stops]
    assert kinds[0] == "skip"
    assert kinds[1] == "theme"
    assert kinds[-1] == "copy"
    assert {stop["download"] for stop in stops} >= {"defection.png", "defection.svg", "prices.csv"}
    assert kinds.count("SUMMARY") == 4
    assert [stop for stop in stops if not stop["seen"]] == []


def test_the_skip_link_leads_to_the_content(browser, page_file):
    browser.open(page_file("four"))
    browser.driver.switch_to.active_element.send_keys(Keys.TAB)
    link = browser.driver.switch_to.active_element
    assert link.rect["y"] >= 0
    link.send_keys(Keys.ENTER)
    assert browser.run("return document.activeElement.id") == "main"


def column(browser, table, place):
    script = (
        "return [...arguments[0].tBodies[0].rows].map((row) => row.cells[arguments[1]].innerText)"
    )
    return browser.run(script, table, place)


def test_columns_are_sorted_by_real_buttons_up_down_and_back(browser, page_file):
    browser.open(page_file("many"))
    table = browser.driver.find_element(By.CSS_SELECTOR, "section > .table table")
    heads = table.find_elements(By.CSS_SELECTOR, "thead th")
    original = column(browser, table, 2)
    states = []
    for _ in range(3):
        heads[2].find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
        values = [float(text.replace(",", "")) for text in column(browser, table, 2)]
        states.append((heads[2].get_attribute("aria-sort"), values))
    assert [state for state, _ in states] == ["ascending", "descending", "none"]
    assert states[0][1] == sorted(states[0][1])
    assert states[1][1] == sorted(states[1][1], reverse=True)
    assert len(set(states[0][1])) > 5
    assert column(browser, table, 2) == original
    heads[4].find_element(By.TAG_NAME, "button").click()
    assert [head.get_attribute("aria-sort") for head in heads].count("ascending") == 1
    marks = column(browser, table, 4)
    assert marks == sorted(marks)
    # Sums stay where they are.
    assert table.find_element(By.CSS_SELECTOR, "tfoot th").text == "all"


def test_tables_of_a_few_rows_have_no_buttons_to_sort_them(browser):
    tables = tuple(
        Table("c", ("name", "value"), tuple((f"row {n}", n) for n in range(rows)))
        for rows in (7, 8)
    )
    browser.open(Page("t", "v", "plain", (Section("s", tables),)).html())
    found = browser.driver.find_elements(By.TAG_NAME, "table")
    assert [len(table.find_elements(By.TAG_NAME, "button")) for table in found] == [0, 2]


def test_captions_of_wide_tables_are_seen_whole_on_a_phone_also_while_they_scroll(browser):
    heads = tuple(f"a long head of column {n}" for n in range(9))
    table = Table("What each of the agents gives, needs and reaches " * 2, heads, (heads,))
    page = Page("t", "v", "plain", (Section("s", (table,)),))
    browser.open(page.html(), width=360)
    for left in (0, 400):
        edges = browser.run(
            """
            const region = document.querySelector(".scroll");
            region.scrollLeft = arguments[0];
            const caption = region.querySelector("caption span").getBoundingClientRect();
            const seen = region.getBoundingClientRect();
            return [region.scrollLeft, caption.left - seen.left, seen.right - caption.right];
            """,
            left,
        )
        assert edges[0] == left
        assert edges[1] >= -1 and edges[2] >= -1


def test_numbers_are_sorted_by_what_they_are_not_by_what_is_shown(browser):
    # To five digits the first three look alike; words and gaps come after numbers.
    cells = (1.000004, 12.0, 1.000002, 1.000003, None, -3.5, float("inf"), 1e20, "none", 9)
    rows = tuple((f"row {n}", cell) for n, cell in enumerate(cells))
    page = Page("t", "v", "plain", (Section("s", (Table("c", ("name", "value"), rows),)),))
    browser.open(page.html())
    table = browser.driver.find_element(By.TAG_NAME, "table")
    table.find_elements(By.TAG_NAME, "button")[1].click()
    order = [int(name.removeprefix("row ")) for name in column(browser, table, 0)]
    assert order == [5, 2, 3, 0, 9, 1, 7, 6, 8, 4]
    table.find_elements(By.TAG_NAME, "button")[1].click()
    order = [int(name.removeprefix("row ")) for name in column(browser, table, 0)]
    assert order == [6, 7, 1, 9, 0, 3, 2, 5, 8, 4]


def test_long_tables_can_be_searched_and_short_ones_need_not(browser, page_file):
    browser.open(page_file("many"))
    holder = browser.driver.find_element(By.CSS_SELECTOR, "section > .long-table")
    box, count = (holder.find_element(By.TAG_NAME, tag) for tag in ("input", "output"))
    label = holder.find_element(By.TAG_NAME, "label")
    assert label.get_attribute("for") == box.get_attribute("id")
    assert count.text == "400 rows"
    box.send_keys("HOSPITAL 07")
    assert count.text == "10 of 400 rows"
    shown = holder.find_elements(By.CSS_SELECTOR, "tbody tr:not([hidden]) th")
    assert [cell.text for cell in shown] == list(example_pages.MANY[69:79])
    box.send_keys("no such")
    assert count.text == "0 of 400 rows"
    box.send_keys(Keys.CONTROL + "a", Keys.BACKSPACE)
    assert count.text == "400 rows"
    browser.open(page_file("four"))
    assert browser.driver.find_elements(By.CSS_SELECTOR, "section > .table input") == []


def downloads(browser):
    script = (
        "return [...document.querySelectorAll('.downloads a')].map((a) => [a.download, a.href])"
    )
    return dict(browser.run(script))


def content(address):
    head, _, body = address.partition(",")
    return base64.b64decode(unquote(body)) if head.endswith(";base64") else unquote(body).encode()


def test_downloads_are_real_files_with_the_numbers_in_full(browser, page_file):
    browser.open(page_file("hostile"))
    found = downloads(browser)
    names = ("allocations", "defection", "training", "prices")
    assert set(found) == {f"{name}.{kind}" for name in names for kind in ("png", "svg", "csv")}
    for name in names:
        png = content(found[f"{name}.png"])
        assert png.startswith(b"\x89PNG\r\n\x1a\n") and png.endswith(b"IEND\xaeB`\x82")
        width, height = struct.unpack(">II", png[16:24])
        assert width == 1216 and height > 500
        svg = ElementTree.fromstring(content(found[f"{name}.svg"]))
        assert svg.tag == "{http://www.w3.org/2000/svg}svg"
        assert svg.findall(".//{http://www.w3.org/2000/svg}script") == []
        assert b"var(" not in content(found[f"{name}.svg"])
    text = content(found["allocations.csv"]).decode("utf-8-sig")
    rows = list(csv.reader(io.StringIO(text)))
    given = example_pages.contributions(example_pages.HOSTILE)
    assert rows[0] == ["agent", *given]
    assert [float(row[2]) for row in rows[1:]] == given["optimal"]
    assert rows[11][0] == "'=HYPERLINK(1)"
    assert rows[3][0] == "x" * 200


def test_a_download_is_saved_from_a_page_that_is_a_file(browser, page_file, tmp_path):
    browser.open(page_file("four"))
    browser.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    for suffix in ("png", "svg", "csv"):
        link = browser.driver.find_element(By.CSS_SELECTOR, f"a[download='prices.{suffix}']")
        browser.run("arguments[0].click()", link)
        wanted = tmp_path / f"prices.{suffix}"
        WebDriverWait(browser.driver, 20).until(lambda _, wanted=wanted: wanted.exists())
        assert wanted.read_bytes() == content(link.get_attribute("href"))
    assert browser.strange_requests() == []
    # The SVG opens by itself, as it would in a program for drawing.
    browser.log("browser")
    browser.driver.get((tmp_path / "prices.svg").as_uri())
    look = browser.run(
        "const texts = [...document.querySelectorAll('text')];"
        "const price = texts.find((text) => text.textContent === 'price');"
        "return [price.getBoundingClientRect().width, getComputedStyle(price).fill]"
    )
    assert look[0] > 10
    assert look[1] == "rgb(84, 97, 110)"
    assert browser.errors() == []


def test_the_command_is_copied(browser, page_file):
    browser.open(page_file("four"))
    browser.run(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) =>"
        " { window.taken = text }}, configurable: true})"
    )
    browser.driver.find_element(By.CLASS_NAME, "copy").click()
    WebDriverWait(browser.driver, 20).until(lambda driver: browser.run("return window.taken"))
    assert browser.run("return window.taken") == example_pages.four().command
    status = browser.driver.find_element(By.CSS_SELECTOR, ".command [role=status]")
    assert status.get_attribute("textContent") == "Copied"


def test_a_screen_reader_meets_landmarks_names_and_no_letters_of_figures(browser, page_file):
    browser.open(page_file("four"))
    nodes = browser.cdp("Accessibility.getFullAXTree")["nodes"]
    told = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"]
    ]
    roles = [role for role, _ in told]
    for role in ("banner", "main", "navigation", "table", "rowheader", "columnheader", "status"):
        assert role in roles, role
    pictures = [name for role, name in told if role in ("image", "img", "graphics-document")]
    assert "How often an agent that holds data back still reaches its goal" in pictures
    described = json.dumps([node.get("description") for node in nodes])
    assert "under MW-FED in 98 of 100 with everything" in described
    # The ticks of figures are not read out one by one; the table below says it in order.
    assert not any(name == "100 %" for role, name in told)
    assert ("columnheader", "agent") in told
    assert browser.run("return document.documentElement.lang") == "en"


def test_a_wide_table_scrolls_by_itself_and_by_keyboard(browser, page_file):
    browser.open(page_file("many"), width=360)
    region = browser.driver.find_element(By.CSS_SELECTOR, "section > .table .scroll")
    assert region.get_attribute("role") == "region"
    assert region.get_attribute("tabindex") == "0"
    assert region.accessible_name == "The plans, agent by agent"
    region.send_keys(Keys.ARROW_RIGHT)
    WebDriverWait(browser.driver, 20).until(
        lambda _: browser.run("return arguments[0].scrollLeft", region) > 0
    )


def test_on_a_phone_tables_of_words_are_stacked_and_wide_tables_say_that_they_scroll(browser):
    answers = (("Do all agents reach their goals?", "with a probability of 0.92, " * 3, "unsure"),)
    words = Table("The three questions", ("question", "answer", "so the plan is"), answers)
    heads = tuple(f"head of column {n}" for n in range(9))
    page = Page("t", "v", "plain", (Section("s", (words, Table("wide", heads, (heads,)))),))
    look = """
        return [...document.querySelectorAll(".table")].map((table) => {
          const box = table.getBoundingClientRect();
          const cells = [...table.querySelectorAll("tbody th, tbody td")];
          const seen = cells.every((cell) => cell.getBoundingClientRect().right <= box.right + 1);
          const said = (cell, what) => getComputedStyle(cell, what).content;
          return [seen, said(cells[1], "::before").includes("answer"),
            said(table, "::after").includes("scroll the table sideways")];
        });
        """
    browser.open(page.html(), width=360)
    assert browser.run(look) == [[True, True, False], [False, False, True]]
    browser.open(page.html(), width=1280)
    assert browser.run(look)[0] == [True, False, False]


def test_while_a_table_scrolls_the_names_of_its_rows_stay_in_sight(browser):
    heads = ("agent", *(f"head of column {n}" for n in range(9)))
    numbers = tuple(range(9))
    narrow, wide = (
        Table("t", heads, ((name, *numbers), ("b", *numbers))) for name in ("City", "C" * 30)
    )
    page = Page("t", "v", "plain", (Section("s", (narrow, wide)),))
    look = """
        return [...document.querySelectorAll(".scroll")].map((region) => {
          region.scrollLeft = 200;
          const place = region.querySelector("tbody th").getBoundingClientRect().left;
          return Math.round(place - region.getBoundingClientRect().left);
        });
        """
    browser.open(page.html(), width=360)
    # A long name would cover what scrolls past it.
    assert browser.run(look) == [0, -200]


def test_no_line_ends_between_a_sign_and_its_word(browser):
    marks = tuple(Mark("1.00\u00a0[0.51,\u00a01.00] met", "unsure") for _ in range(7))
    heads = ("algorithm", *(f"question {n}" for n in range(7)))
    page = Page("t", "v", "plain", (Section("s", (Table("t", heads, (("A", *marks),)),)),))
    browser.open(page.html(), width=768)
    lines = "return [...document.querySelectorAll('.mark')].map((m) => m.getClientRects().length)"
    assert max(browser.run(lines)) <= 2


def test_on_a_phone_a_second_drawing_takes_the_place_of_the_first(browser, page_file):
    shown = (
        "return [...document.querySelectorAll('.canvas')].filter((c) => c.checkVisibility())"
        ".map((c) => c.className)"
    )
    browser.open(page_file("four"))
    assert browser.run(shown) == ["canvas only", *["canvas wide"] * 3]
    browser.open(page_file("four"), width=360)
    assert browser.run(shown) == ["canvas only", *["canvas narrow"] * 3]


def test_a_page_with_few_sections_has_no_list_of_them(browser):
    page = Page("t", "v", "plain", tuple(Section(f"s{n}", ("text",)) for n in range(3)))
    assert "<nav" not in page.html()
    browser.open(page.html())
    assert browser.check("everything") == []
