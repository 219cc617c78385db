"""Results in, tables and pages out; nothing is computed here.

Every name is imported when it is first asked for: tables need neither matplotlib nor jinja2.
"""

from typing import TYPE_CHECKING

from fedaccord._lazy import lazily

if TYPE_CHECKING:
    from fedaccord.report.defection import audit_page, plot_defection
    from fedaccord.report.drawing import picture_of, plot_chart
    from fedaccord.report.figures_games import (
        plot_allocations,
        plot_envy,
        plot_overlap,
        plot_prices,
        plot_spare,
    )
    from fedaccord.report.figures_plans import plot_learning, plot_prospects, plot_tradeoffs
    from fedaccord.report.frontier import frontier_page, plot_frontier, plot_satisfied
    from fedaccord.report.model import Listing, Mark, Page, Picture, Section, Table, joined
    from fedaccord.report.pages_games import catalog_page, check_page, solve_page
    from fedaccord.report.plan_page import plan_page
    from fedaccord.report.pretraining import (
        difficulty_page,
        plot_difficulty,
        plot_pretraining,
        plot_search,
        pretrain_page,
        search_page,
    )
    from fedaccord.report.training import plot_draws, plot_training, train_page

__all__ = [
    "Listing",
    "Mark",
    "Page",
    "Picture",
    "Section",
    "Table",
    "audit_page",
    "catalog_page",
    "check_page",
    "difficulty_page",
    "frontier_page",
    "joined",
    "picture_of",
    "plan_page",
    "plot_allocations",
    "plot_chart",
    "plot_defection",
    "plot_difficulty",
    "plot_draws",
    "plot_envy",
    "plot_frontier",
    "plot_learning",
    "plot_overlap",
    "plot_pretraining",
    "plot_prices",
    "plot_prospects",
    "plot_satisfied",
    "plot_search",
    "plot_spare",
    "plot_tradeoffs",
    "plot_training",
    "pretrain_page",
    "search_page",
    "solve_page",
    "train_page",
]

_HOMES = {
    name: f"fedaccord.report.{module}"
    for module, names in {
        "model": ("Listing", "Mark", "Page", "Picture", "Section", "Table", "joined"),
        "drawing": ("picture_of", "plot_chart"),
        "frontier": ("frontier_page", "plot_frontier", "plot_satisfied"),
        "figures_games": (
            *("plot_allocations", "plot_envy", "plot_overlap", "plot_prices", "plot_spare"),
        ),
        "defection": ("audit_page", "plot_defection"),
        "pretraining": (
            *("difficulty_page", "plot_difficulty", "pretrain_page", "plot_pretraining"),
            *("search_page", "plot_search"),
        ),
        "training": ("plot_draws", "plot_training", "train_page"),
        "figures_plans": ("plot_learning", "plot_prospects", "plot_tradeoffs"),
        "pages_games": ("catalog_page", "check_page", "solve_page"),
        "plan_page": ("plan_page",),
    }.items()
    for name in names
}

__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return __all__
