"""Results in, tables and pages out; nothing is computed here.

Every name is imported when it is first asked for: tables need neither matplotlib nor jinja2.
"""

from typing import TYPE_CHECKING

from fedaccord._lazy import lazily

if TYPE_CHECKING:
    from fedaccord.report.drawing import picture_of, plot_chart
    from fedaccord.report.page import Listing, Mark, Page, Picture, Section, Table, joined

__all__ = [
    "Listing",
    "Mark",
    "Page",
    "Picture",
    "Section",
    "Table",
    "joined",
    "picture_of",
    "plot_chart",
]

_HOMES = {
    name: f"fedaccord.report.{module}"
    for module, names in {
        "page": ("Listing", "Mark", "Page", "Picture", "Section", "Table", "joined"),
        "drawing": ("picture_of", "plot_chart"),
    }.items()
    for name in names
}

__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return __all__
