"""What the site adds to the pages of docs/, so that they stay as they are read in the repository.

- The navigation is the list of pages in docs/README.md.
- A link that leaves docs/ brings its target along: a page becomes a page of the site, under
  repository/, and any other file is copied there.
- A notebook is a page, with the outputs that it was stored with.
- Every name on reference/names.md is explained on a page under reference/api/, from its docstring.
"""

import ast
import json
import os.path
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)\s]*)?\)")
ENTRY = re.compile(r"^- \[([^\]]+)\]\(([^)]+)\)")
NAMES = "reference/names.md"
# The group of names in a package without groups.
ALL = "All names"


class SiteFiles(Files):
    """The files of the site, which pages outside docs/ find by their path in the repository."""

    def get_file_from_path(self, path: str) -> File | None:
        return super().get_file_from_path(path.removeprefix("../docs/"))


class Notebook(File):
    """A notebook, which is a page like those in Markdown."""

    def is_documentation_page(self) -> bool:
        return True


def on_config(config: MkDocsConfig) -> None:
    """Set the navigation: that of docs/README.md, with the docstrings in its reference."""
    docs = Path(config.docs_dir)
    config.nav = navigation((docs / "README.md").read_text(encoding="utf-8"))
    (reference,) = (part["Reference"] for part in config.nav if "Reference" in part)
    reference += [
        {package: [{group: api_uri(package, group)} for group in groups]}
        for package, groups in public_names(docs).items()
    ]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add notebooks, the reference of names, and what pages link to outside docs/."""
    docs = Path(config.docs_dir)
    where = (config.docs_dir, config.site_dir, config.use_directory_urls)
    found = [Notebook(f.src_uri, *where) if f.src_uri.endswith(".ipynb") else f for f in files]
    for package, groups in public_names(docs).items():
        for group, names in groups.items():
            text = api_page(package, group, names)
            found.append(File.generated(config, api_uri(package, group), content=text))
    for path in linked_outside(docs):
        source, target = Path(os.path.relpath(path, docs)), path.relative_to(docs.parent)
        if target.suffix == ".md":
            target = target.with_stem(target.stem.replace("README", "index")).with_suffix(".html")
        address = f"repository/{target.as_posix()}"
        kind = InclusionLevel.NOT_IN_NAV
        found.append(File(source.as_posix(), *where, dest_uri=address, inclusion=kind))
    return SiteFiles(found)


def on_page_read_source(page: Page, config: MkDocsConfig) -> str | None:
    """Return a notebook as Markdown."""
    if not isinstance(page.file, Notebook):
        return None
    return notebook_page(json.loads(page.file.content_string), page.file.name + ".ipynb")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page with the marks of its blocks, and with names that link to their reference."""
    if page.file.src_uri == NAMES:
        markdown = link_names(markdown, Path(config.docs_dir))
    if page.is_homepage:
        # It lists all pages itself.
        page.meta["hide"] = ["navigation"]
    return FENCE.sub(site_block, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Copy the notebooks, which their pages offer."""
    for path in Path(config.docs_dir).rglob("*.ipynb"):
        target = Path(config.site_dir) / path.relative_to(config.docs_dir)
        target.write_bytes(path.read_bytes())


def navigation(index: str) -> list[dict[str, Any]]:
    """Return the navigation that an index has: its headings, and the lists of pages under them.

    A paragraph right before a list names it by the words before its colon. What stands before the
    first heading is no part of it.
    """
    parts: list[dict[str, Any]] = [{"Home": "README.md"}]
    pages: list[Any] = []
    group, name = pages, ""
    for block in index.split("\n\n"):
        if block.startswith("## "):
            pages = group = []
            parts.append({block.removeprefix("## ").strip(): pages})
            name = ""
        elif block.startswith("- "):
            if name:
                group = []
                pages.append({name: group})
            entries = map(ENTRY.match, block.splitlines())
            group += [{entry[1]: entry[2]} for entry in entries if entry]
        else:
            name = block.partition(":")[0].strip()
    return parts


def public_names(docs: Path) -> dict[str, dict[str, dict[str, str]]]:
    """Return the names on reference/names.md by package and group, each with its full path.

    The stub of a package says where a name is from: `fedaccord.check` alone would be the module.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for part in (docs / NAMES).read_text(encoding="utf-8").split("\n## ")[1:]:
        package, _, text = part.partition("\n")
        paths, groups = stub_paths(docs.parent / "src", package), found.setdefault(package, {})
        group = ALL
        for line in text.splitlines():
            if title := re.match(r"\*\*([^*]+?)\.?\*\*", line):
                group = title[1]
            elif line.startswith("| `"):
                names = re.findall(r"`(\w+)`", line.split("|")[1])
                groups.setdefault(group, {}).update({name: paths[name] for name in names})
    return found


def stub_paths(source: Path, package: str) -> dict[str, str]:
    """Return where the names of a package's stub are from."""
    stub = source.joinpath(*package.split("."), "__init__.pyi").read_text(encoding="utf-8")
    imports = (node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom))
    return {
        name.name: ".".join(filter(None, [package, node.module, name.name]))
        for node in imports
        for name in node.names
    }


def api_uri(package: str, group: str) -> str:
    return f"reference/api/{package}/{re.sub('[^a-z]+', '-', group.lower())}.md"


def api_page(package: str, group: str, names: dict[str, str]) -> str:
    entries = "\n\n".join(f"::: {path}" for path in names.values())
    title = package if group == ALL else group
    return f"# {title}\n\nImport these from `{package}`.\n\n{entries}\n"


def link_names(page: str, docs: Path) -> str:
    """Return reference/names.md with every name linked to its docstring."""
    paths = {
        package: {name: path for group in groups.values() for name, path in group.items()}
        for package, groups in public_names(docs).items()
    }
    lines, package = [], ""
    for line in page.splitlines():
        if line.startswith("## "):
            package = line.removeprefix("## ")
        elif line.startswith("| `"):
            _, names, rest = line.split("|", 2)
            for name in re.findall(r"`(\w+)`", names):
                names = names.replace(f"`{name}`", f"[`{name}`][{paths[package][name]}]")
            line = f"|{names}|{rest}"
        lines.append(line)
    return "\n".join(lines)


def linked_outside(docs: Path) -> Iterator[Path]:
    """Yield the files outside docs/ that its pages link to, and those that these link to."""
    waiting, seen = sorted(docs.rglob("*.md")), set()
    while waiting:
        page = waiting.pop()
        for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
            target = Path(os.path.normpath(page.parent / link))
            if target in seen or target.is_relative_to(docs) or not target.is_file():
                continue
            seen.add(target)
            yield target
            if target.suffix == ".md":
                waiting.append(target)


def site_block(block: re.Match[str]) -> str:
    """Return a block with its file's name as a title, and a Python session as what it is."""
    language, *words = block["info"].split() or [""]
    if language == "python" and block["body"].startswith(">>> "):
        language = "pycon"
    title = "".join(f' title="{word}"' for word in words if word != "measured")
    return f"```{language}{title}\n{block['body']}```"


def notebook_page(notebook: dict[str, Any], file: str) -> str:
    """Return a notebook as Markdown, with the outputs that it was stored with."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
        else:
            parts += [f"```python\n{text}\n```", *map(output_block, cell["outputs"])]
    title, *rest = parts
    download = f'<p><a href="{file}" download>Download this notebook</a> to run it.</p>'
    head, _, body = title.partition("\n\n")
    return "\n\n".join([head, body, download, *rest])


def output_block(output: dict[str, Any]) -> str:
    """Return an output of a notebook: its picture, its table, or its text."""
    data = output.get("data", {})
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
    if "text/html" in data:
        return f"<div>{''.join(data['text/html'])}</div>"
    text = data.get("text/plain", output.get("text", output.get("traceback", "")))
    return f"<pre>{escape(''.join(text))}</pre>"
