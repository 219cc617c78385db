"""The checks of pages object to planted faults."""

import pytest

POLICY = '<meta http-equiv="Content-Security-Policy"'
OPEN = '<meta name="nothing"'


@pytest.fixture(scope="module")
def good(page_file):
    return page_file("four").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def hostile(page_file):
    return page_file("hostile").read_text(encoding="utf-8")


def planted(text, old, new, count=1):
    assert old in text
    return text.replace(old, new, count)


def faults(browser, text, **options):
    browser.open(text, **options)
    return [fault.partition(":")[0] for fault in browser.faults()]


def test_a_picture_from_elsewhere_is_a_fault_twice_over(browser, good):
    image = '<img src="http://127.0.0.1:9/x.png" alt="">'
    # The page's own policy stops it, and says so.
    text = planted(good, "</main>", f"{image}</main>")
    assert {"console", "foreign"} <= set(faults(browser, text))
    # Without the policy it is asked for, and that is seen.
    assert "request" in faults(browser, planted(text, POLICY, OPEN))


def test_an_unescaped_name_is_a_fault(browser, hostile):
    text = planted(
        hostile, "&lt;script&gt;alert(1)&lt;/script&gt; gives", "<script>1</script> gives"
    )
    found = faults(browser, text)
    assert "foreign" in found
    assert "console" in found
    image = planted(hostile, "&lt;img src=x onerror=alert(2)&gt;", "<img src=x onerror=alert(2)>")
    assert "foreign" in faults(browser, image)


def test_an_error_on_the_console_is_a_fault(browser, good):
    script = "<script>missing.thing()</script>"
    text = planted(planted(good, POLICY, OPEN), "</main>", f"{script}</main>")
    assert "console" in faults(browser, text)
    assert "console" in faults(browser, planted(good, "<main", '<main style="color:red"'))


def test_text_beyond_the_edge_of_a_figure_is_a_fault(browser, good):
    label = good.index(">University</text>")
    start = good.rindex("<text", 0, label)
    moved = good[start:label].replace(' x="', ' x="-').replace('x="--', 'x="-')
    assert "clipped" in faults(browser, good[:start] + moved + good[label:])


def test_labels_on_top_of_each_other_are_a_fault(browser, good):
    label = good.index(">University</text>")
    start = good.rindex("<text", 0, label)
    end = label + len(">University</text>")
    again = good[start:label] + ">Other</text>"
    assert "overlap" in faults(browser, good[:end] + again + good[end:])


def test_a_figure_without_marks_is_a_fault(browser, good):
    start = good.index('<g aria-hidden="true">')
    end = good.index("</svg>", start)
    assert "figure" in faults(browser, good[:start] + good[end:])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_faint_text_is_a_fault(browser, good, theme):
    ground, faint = {"light": ("#54616e", "#9aa5b0"), "dark": ("#a3b0bd", "#5c6670")}[theme]
    text = good.replace(f"--muted:{ground}", f"--muted:{faint}")
    assert text != good
    assert "faint" in faults(browser, planted(text, POLICY, OPEN), theme=theme)


def test_faint_text_in_a_figure_is_a_fault(browser, good):
    text = planted(good, "fill:var(--ink,", "fill:var(--grid,", count=-1)
    assert "faint" in faults(browser, planted(text, POLICY, OPEN))


def test_a_page_wider_than_the_screen_is_a_fault(browser, good):
    wide = "<p>" + "&nbsp;".join(["word"] * 200) + "</p>"
    text = planted(good, "</main>", f"<pre>{wide}</pre></main>")
    text = planted(planted(text, "white-space:pre-wrap;overflow-wrap:anywhere", ""), POLICY, OPEN)
    text = planted(text, "overflow-wrap:anywhere", "", count=-1)
    assert "overflow" in faults(browser, text, width=360)


def test_letters_too_small_to_read_are_a_fault(browser, good):
    text = planted(planted(good, ".only .drawing{min-width:32rem}", ""), POLICY, OPEN)
    text = planted(text, ".only .drawing{min-width:34rem}", "")
    assert "tiny" in faults(browser, text, width=360)


def test_names_used_twice_and_references_to_nowhere_are_faults(browser, good):
    assert "twice" in faults(browser, planted(good, 'id="s2"', 'id="s1"'))
    assert "nowhere" in faults(browser, planted(good, 'href="#s1"', 'href="#s99"'))
    assert "nowhere" in faults(browser, planted(good, 'id="p-defection-', 'id="q-defection-'))


def test_a_heading_that_leaves_out_a_level_is_a_fault(browser, good):
    text = planted(planted(good, "<h3 ", "<h4 ", count=-1), "</h3>", "</h4>", count=-1)
    assert "heading" in faults(browser, text)
