"""The README's hospitals in a real browser: every feature of the meeting."""

import csv
import json

from selenium.webdriver.common.keys import Keys


def test_what_if_a_hospital_gives_less(hospitals):
    tab = hospitals.open()
    assert tab.numbers() == [300, 1200, 600]
    tab.see("The plan holds", "2,100", "45 %", "University gives 300")
    tab.write(0, 100)
    assert "University" in tab.verdict and "200" in tab.verdict
    assert tab.query == "give=0%3A100"


def test_a_slider_follows_the_keyboard(hospitals):
    tab = hospitals.open()
    tab.slide(0, Keys.ARROW_LEFT, times=3)
    tab.until(lambda: tab.numbers()[0] < 300)
    tab.see("does not hold")
    tab.until(lambda: "give=0" in tab.query)


def test_lock_and_solve_for_the_rest(hospitals):
    tab = hospitals.open()
    tab.write(0, 500)
    assert tab.numbers()[1:] == [1200, 600]
    tab.lock(0)
    # By hand: City and Rural have exactly what they need when University gives 500,
    #   0.6 * 500 + c + 0.1 r = 1440  and  0.7 * 500 + 0.1 c + r = 930.
    city, rural = (1140 - 0.1 * 580) / 0.99, (580 - 0.1 * 1140) / 0.99
    wanted = [500, round(city, 2), round(rural, 2)]
    tab.until(lambda: tab.numbers() == wanted)
    tab.see("The plan holds")


def test_plans_at_one_click(hospitals):
    tab = hospitals.open()
    totals = {}
    for label in ("Optimal", "Envy-free", "Stable"):
        tab.press(label)
        tab.until(lambda label=label: label.lower() in tab.query or label == "Stable")
        tab.settle()
        totals[label] = sum(tab.numbers())
    assert abs(totals["Optimal"] - 1931.25) < 0.01
    assert totals["Optimal"] < totals["Envy-free"] < totals["Stable"] == 2100
    tab.press("With payments")
    tab.see("Who pays whom", "University gives 1,228 and is paid 1,228")


def test_goals_limits_and_costs(hospitals):
    tab = hospitals.open()
    tab.adjust("Goals")
    tab.until(lambda: tab.numbers() == [1440, 1440, 930])
    tab.write(0, 2000)
    tab.adjust("Contributions")
    tab.until(lambda: tab.numbers() == [1775, 375, 0])
    tab.adjust("Limits")
    tab.write(0, 400)
    tab.see("There is no stable plan", "Single changes that would make a plan possible")
    tab.open("adjust=cost&plan=optimal")
    tab.write(0, 9)
    tab.adjust("Contributions")
    # University's cases are too dear: the others give what it needs.
    tab.until(lambda: tab.numbers()[0] < 1)


def test_a_number_below_zero_is_refused(hospitals):
    tab = hospitals.open()
    tab.touch(".rows [data-agent='0'] input", lambda field: field.send_keys(Keys.CONTROL, "a"))
    tab.touch(".rows [data-agent='0'] input", lambda field: field.send_keys("-50", Keys.ENTER))
    tab.see("-50 is no number from 0 to 1e15")
    assert tab.query == ""


def test_what_fails_saves_nothing(hospitals):
    tab = hospitals.open("view=members&cut=0%3A0.25,1%3A0.25")
    tab.see("does not hold", "but not all hospitals reach their goals")
    assert "saved" not in tab.text() and "All is well" not in tab.text()
    tab.open("view=payments")
    tab.see("These payments go with the optimal plan")


def test_undo_redo_and_back(hospitals):
    tab = hospitals.open()
    tab.write(0, 100)
    tab.write(1, 700)
    tab.press("Undo")
    tab.until(lambda: tab.numbers()[:2] == [100, 1200])
    tab.driver.back()
    tab.until(lambda: tab.numbers()[:2] == [300, 1200])
    tab.press("Redo")
    tab.until(lambda: tab.numbers()[:2] == [100, 1200])
    tab.find("body").send_keys(Keys.CONTROL, "z")
    tab.until(lambda: tab.numbers()[:2] == [300, 1200])


def test_every_state_is_an_address(hospitals):
    tab = hospitals.open("lock=0%3A500&goal=2%3A1000&plan=optimal")
    shown = tab.numbers()
    tab.driver.refresh()
    tab.settle()
    tab.until(lambda: tab.numbers() == shown)
    tab.open("plan=nonsense")
    tab.see("this address cannot be read", "The plan holds")


def test_two_tabs_have_their_own_states(hospitals):
    tab = hospitals.open("give=0%3A100")
    first = tab.driver.current_window_handle
    tab.driver.switch_to.new_window("tab")
    try:
        tab.open("plan=optimal")
        tab.write(2, 5)
        assert tab.numbers()[2] == 5
        tab.driver.switch_to.window(first)
        assert tab.numbers() == [100, 1200, 600]
        tab.write(1, 1300)
        assert tab.numbers() == [100, 1300, 600]
    finally:
        second = next(h for h in tab.driver.window_handles if h != first)
        tab.driver.switch_to.window(second)
        tab.driver.close()
        tab.driver.switch_to.window(first)


def test_members_leave_join_and_defect_together(hospitals):
    tab = hospitals.open("view=members")
    tab.press("Leaves")
    tab.until(lambda: len(tab.numbers()) == 2)
    tab.press("Comes back")
    tab.until(lambda: len(tab.numbers()) == 3)
    tab.press("Another like it joins")
    tab.see("University 2")
    tab.open("view=members&cut=0%3A0.25,1%3A0.25")
    assert tab.numbers() == [75, 300, 600]
    tab.see("does not hold", "gives 25 %")
    tab.open("view=members&keep=0%3A1")
    tab.see("University would give 0 instead of 300")


def test_the_choice_of_members_works_by_hand(hospitals):
    tab = hospitals.open("view=members")
    tab.click(".member[data-agent='0'] .q-checkbox")
    tab.see("The plan does not hold if hospitals keep what they withhold")
    tab.click(".member[data-agent='1'] .q-select")
    tab.press("gives 25 %")
    tab.until(lambda: tab.numbers()[1] == 300)


def test_other_views(hospitals):
    tab = hospitals.open()
    for label, seen in {
        "Plans and prices": "price of stability: 1.08738",
        "Other stable plans": "This is the only stable plan.",
        "Coalitions": "Which groupings hold",
    }.items():
        tab.press(label)
        tab.see(seen)
    # Only pilots tell what certainty costs.
    assert "Price of certainty" not in tab.text()


def test_compare_two_states(hospitals):
    tab = hospitals.open()
    tab.press("Compare with this")
    tab.see("This proposal: The plan holds")
    tab.press("Optimal")
    tab.see("The one kept: The plan holds", "This proposal: The plan does not hold")
    assert "1,228" in tab.text() and "2,100" in tab.text()


def test_take_it_away(hospitals, tmp_path):
    tab = hospitals.open("give=0%3A123&cost=1%3A2")
    plan = tab.download("The contributions, plan.csv", tmp_path)
    rows = list(csv.DictReader(plan.read_text().splitlines()))
    assert {row["agent"]: float(row["contribution"]) for row in rows}["University"] == 123
    game = json.loads(tab.download("The game, game.json", tmp_path).read_text())
    assert game["costs"] == [1, 2, 1]
    page = tab.download("The page of this state, report.html", tmp_path).read_text("utf-8")
    assert "University gives 123" in page and "hospital" in page
    book = tab.download("The contributions, plan.xlsx", tmp_path)
    import openpyxl

    cells = [[c.value for c in row] for row in openpyxl.load_workbook(book).active]
    assert ["University", 123] in [row[:2] for row in cells]
