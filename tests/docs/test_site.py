"""The site of docs/: it builds in strict mode, loads nothing from elsewhere, and is searched."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

for package in ("mkdocs", "material", "mkdocstrings_handlers.python"):
    pytest.importorskip(package, reason="the extra docs is not installed")

ROOT = Path(__file__).parents[2]
OUTSIDE = re.compile(r"(?:https?:)?//", re.IGNORECASE)
STYLE = re.compile(r"url\(\s*[\"']?((?:https?:)?//[^)\"']*)|@import\s+[\"']([^\"']*)")
# The element that loads, and the attribute with the address.
LOADS = {
    "script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src",
    "video": "src", "audio": "src", "object": "data", "embed": "src",
}  # fmt: skip


def build(folder, target):
    """Build the site of a checkout: return whether it succeeded, and what was said."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(target)]
    silent = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=folder, env=silent, capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr


class Reader(HTMLParser):
    """What a page loads, links to and can be linked to."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.links, self.ids = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[key] for key in ("id", "name") if found.get(key)}
        address = found.get(LOADS.get(tag))
        if address:
            self.loads.append(address)
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])


def outside_loads(folder):
    """Return what pages and styles of a site load from elsewhere."""
    found = []
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        found += [(page.name, address) for address in Reader(text).loads if OUTSIDE.match(address)]
    for style in (*folder.rglob("*.css"), *folder.rglob("*.html")):
        for addresses in STYLE.findall(style.read_text(encoding="utf-8")):
            found.append((style.name, "".join(addresses)))
    return found


def dead_links(folder):
    """Return links and loads of a site's pages whose file or heading is not there."""
    pages = {p: Reader(p.read_text(encoding="utf-8")) for p in folder.rglob("*.html")}
    dead = []
    for page, read in pages.items():
        # Addresses on the page for files that are not there start at the root of a server.
        if page.name == "404.html":
            continue
        for link in (*read.links, *read.loads):
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:|//", path):
                continue
            target = Path(os.path.normpath(page.parent / unquote(path))) if path else page
            target = target / "index.html" if target.is_dir() else target
            known = pages[target].ids if target in pages else ()
            if not target.is_file() or (anchor and unquote(anchor) not in known):
                dead.append((str(page.relative_to(folder)), link))
    return dead


def found_by(word, folder):
    """Return the pages whose text in the search index has a word."""
    index = json.loads((folder / "search" / "search_index.json").read_text(encoding="utf-8"))
    return {entry["location"].partition("#")[0] for entry in index["docs"] if word in entry["text"]}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    built, said = build(ROOT, target)
    assert built and "WARNING" not in said, said
    return target


@pytest.mark.slow
def test_the_site_has_every_page_and_loads_nothing_from_elsewhere(site):
    for page in (ROOT / "docs").rglob("*"):
        if page.suffix in (".md", ".ipynb"):
            place = page.relative_to(ROOT / "docs").with_suffix(".html")
            assert (site / str(place).replace("README", "index")).is_file(), page
    assert (site / "repository" / "experiments" / "digits" / "index.html").is_file()
    assert (site / "repository" / "experiments" / "digits" / "results" / "audit.json").is_file()
    assert outside_loads(site) == []
    assert dead_links(site) == []


@pytest.mark.slow
def test_the_site_explains_every_public_name_and_finds_words(site):
    ids = set()
    for page in (site / "reference" / "api").rglob("*.html"):
        ids |= Reader(page.read_text(encoding="utf-8")).ids
    import fedaccord
    import fedaccord.federation as federation

    headings = {name.rpartition(".")[2] for name in ids}
    assert set(fedaccord.__all__) | set(federation.__all__) <= headings
    assert "explanation/payments.html" in found_by("nucleolus", site)
    assert "notebooks/plan-a-network.html" in found_by("pandas frame", site)
    assert "reference/api/fedaccord/solvers.html" in found_by("cheapest stable equilibrium", site)


@pytest.mark.slow
def test_search_works_on_pages_that_are_opened_as_files(site, tmp_path):
    pytest.importorskip("selenium")
    from browser.driving import CHROMIUM, DRIVER, Browser
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    if CHROMIUM is None or DRIVER is None:
        pytest.skip("Chromium and its driver are not installed: make browser")
    browser = Browser(tmp_path)
    try:
        browser.open(site / "tutorial" / "first-audit.html")
        field = browser.driver.find_element(By.CSS_SELECTOR, "[data-md-component=search-query]")
        field.click()
        field.send_keys("nucleolus")
        links = (
            "return [...document.querySelectorAll('.md-search-result__link')].map((a) => a.href)"
        )
        WebDriverWait(browser.driver, 30).until(lambda _: browser.run(links))
        assert "/explanation/payments.html" in browser.run(links)[0]
        assert browser.errors() == []
        assert browser.strange_requests() == []
    finally:
        browser.close()


def notebook():
    """Return a notebook that was stored with its outputs."""
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["1 < 2\n"]},
        {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo=\n"}},
        {"output_type": "execute_result", "data": {"text/html": ["<b>bold</b>"]}},
    ]
    head = {"cell_type": "markdown", "source": ["# A notebook\n", "\n", "See [a page](page.md)."]}
    code = {"cell_type": "code", "source": ["print('1 < 2')"], "outputs": outputs}
    return json.dumps({"cells": [head, code]})


# A small checkout, honest first, and then with a fault.

SMALL = {
    "docs/README.md": "# Index\n\n- [First](page.md).\n\n"
    "## Tutorials\n\n- [A page](page.md): to read.\n\n"
    "Some words.\n\nTo run: or to read.\n\n- [A notebook](notebook.ipynb).\n\n"
    "## Reference\n\n- [Names](reference/names.md).\n",
    "docs/page.md": "# A page\n\n## Part\n\nSee [names](reference/names.md#small), [a part](#part),"
    " [outside](../outside/README.md#further) and [data](../outside/data.json).\n",
    "docs/reference/names.md": "# Names\n\n## small\n\n| name | meaning |\n|-|-|\n| `go` | go |\n",
    "docs/notebook.ipynb": notebook(),
    "outside/README.md": "# Outside\n\n## Further\n\nBack to [the page](../docs/page.md#part), and"
    " [more](more.md).\n",
    "outside/more.md": "# More\n\nSee [data](data.json).\n",
    "outside/data.json": "{}\n",
    "src/small/__init__.py": '"""A small package."""\n',
    "src/small/__init__.pyi": "from .motion import go as go\n",
    "src/small/motion.py": 'def go(far: int) -> None:\n    """Go.\n\n    far: how far.\n    """\n',
}


def small_checkout(folder, **changes):
    shutil.copy(ROOT / "mkdocs.yml", folder)
    shutil.copytree(ROOT / "docs" / "site", folder / "docs" / "site")
    for name, text in {**SMALL, **changes}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.mark.slow
def test_a_small_checkout_becomes_a_site(tmp_path):
    small_checkout(tmp_path)
    target = tmp_path / "site"
    built, said = build(tmp_path, target)
    assert built and "WARNING" not in said, said
    assert outside_loads(target) == dead_links(target) == []

    def links(page):
        return set(Reader((target / page).read_text(encoding="utf-8")).links)

    assert {"page.html", "notebook.html"} <= links("index.html")
    outside = {"repository/outside/index.html#further", "repository/outside/data.json"}
    assert outside <= links("page.html")
    assert {"../../page.html#part", "more.html"} <= links("repository/outside/index.html")
    assert {"page.html", "notebook.ipynb"} <= links("notebook.html")
    read = (target / "notebook.html").read_text(encoding="utf-8")
    for output in ("<pre>1 &lt; 2", '<img alt="" src="data:image/png;base64,iVBORw', "<b>bold</b>"):
        assert output in read
    reference = (target / "reference/api/small/all-names.html").read_text(encoding="utf-8")
    assert "<li><code>far</code>: how far.</li>" in re.sub(r"</?p>|\n", "", reference)


def test_the_navigation_is_that_of_the_index():
    """A list is named by the words before the colon of the paragraph above it."""
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "site" / "hooks.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    to_run = {"To run": [{"A notebook": "notebook.ipynb"}]}
    assert hooks.navigation(SMALL["docs/README.md"]) == [
        {"Home": "README.md"},
        {"Tutorials": [{"A page": "page.md"}, to_run]},
        {"Reference": [{"Names": "reference/names.md"}]},
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault", "said"),
    [
        ("docs/page.md", "# A page\n\n[gone](gone.md)\n", "gone.md"),
        ("docs/page.md", "# A page\n\n[gone](README.md#gone)\n", "#gone"),
        ("docs/page.md", "# A page\n\n[gone](../gone.json)\n", "gone.json"),
        ("docs/page.md", "# A page\n\n![gone](gone.svg)\n", "gone.svg"),
        ("outside/more.md", "# More\n\n[gone](../docs/gone.md)\n", "gone.md"),
        ("docs/unlisted.md", "# A page that the index does not have\n", "unlisted.md"),
        ("docs/README.md", SMALL["docs/README.md"].replace("page.md", "gone.md"), "gone.md"),
        ("src/small/motion.py", "", "small.motion.go"),
    ],
)
def test_a_fault_fails_the_build_and_is_named(name, fault, said, tmp_path):
    small_checkout(tmp_path, **{name: fault})
    built, message = build(tmp_path, tmp_path / "site")
    assert not built
    assert said in message


# The checkers of built pages are first shown pages that are wrong.


@pytest.mark.parametrize(
    "fault",
    [
        '<script src="https://cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        '<img src="HTTP://example.org/a.png">',
        "<style>body { background: url('https://example.org/a.png') }</style>",
        '<style>@import "https://fonts.example/css";</style>',
    ],
)
def test_a_page_that_loads_from_elsewhere_is_caught(fault, tmp_path):
    page = tmp_path / "index.html"
    page.write_text('<a href="https://example.org">a link is no load</a><img src="data:,">')
    assert outside_loads(tmp_path) == []
    page.write_text(fault)
    assert len(outside_loads(tmp_path)) == 1


@pytest.mark.parametrize("link", ["gone.html", "#gone", "other.html#gone", "../gone.csv", "gone/"])
def test_a_dead_link_on_a_built_page_is_caught(link, tmp_path):
    page = tmp_path / "index.html"
    (tmp_path / "other.html").write_text('<h1 id="here">Other</h1>')
    page.write_text('<a href="other.html#here">there</a><a href="https://example.org/gone">out</a>')
    assert dead_links(tmp_path) == []
    page.write_text(f'<a href="{link}">dead</a>')
    assert dead_links(tmp_path) == [("index.html", link)]
