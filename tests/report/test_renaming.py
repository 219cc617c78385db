"""The words of those who read a page take the place of agent and sample, but for names."""

from fedaccord.report.drawing import new_axes
from fedaccord.report.model import Card, Fold, Listing, Mark, Page, Picture, Section, Table
from fedaccord.report.renaming import Renaming
from fedaccord.wording import Words


def test_a_whole_page_takes_the_users_words_but_for_names_and_its_command():
    table = Table("an agent", ("agent", "samples"), (("Agent A", 3),), (("all agents",),))

    def draw(ax):
        ax.set_xlabel("samples of Agent A")
        ax.set_title("an agent")

    drawn = Picture("p", "agents", "each agent", draw, table, note="a sample")
    inner = Section("agents", ("One agent.", Mark("an agent", "bad"), Listing(("samples",)), drawn))
    whole = Page("2 agents", "Agents agree.", "good", (inner,), (("Game", "2 agents"),), "x")
    found = Renaming(Words("clinic", "case"), ["Agent A"]).page(whole)
    (section,) = found.sections
    text, mark, listing, picture = section.parts
    assert (found.title, found.verdict, found.command) == (
        "2 clinics",
        "Clinics agree.",
        "x",
    )
    assert found.facts == (("Game", "2 clinics"),)
    assert (section.heading, text, mark.text, listing.items) == (
        "clinics",
        "One clinic.",
        "a clinic",
        ("cases",),
    )
    assert (picture.title, picture.alt, picture.note) == ("clinics", "each clinic", "a case")
    assert picture.data.columns == ("clinic", "cases")
    assert picture.data.rows == (("Agent A", 3),)
    assert picture.data.footer == (("all clinics",),)
    ax = new_axes((4, 3))
    picture.draw(ax)
    assert (ax.get_xlabel(), ax.get_title()) == ("cases of Agent A", "a clinic")


def test_cards_folds_and_the_head_of_a_page_take_the_words():
    card = Card("Agent A", (("an agent", "2 samples"),))
    fold = Fold("each agent", ("a sample", card))
    whole = Page("t", "v", "good", (), head=(fold,))
    (found,) = Renaming(Words("clinic", "image"), ["Agent A"]).page(whole).head
    assert found == Fold("each clinic", ("an image", Card("Agent A", (("a clinic", "2 images"),))))
