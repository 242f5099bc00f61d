"""The page of a report in a real browser, without a network."""

import csv
import io
from datetime import UTC, datetime

import numpy as np
import pytest

from abut.coordination.pictures.clash_pictures import clash_pictures
from abut.coordination.report.compare import Acceptance, compare, read_accepted
from abut.coordination.report.report_columns import columns_of
from abut.coordination.report.report_page import write_page
from clash_house import HOSTILE, house_clashes
from clash_rows import facts_of, make_clashes

DATE = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
SIZE = {"width": 1280, "height": 900}
PATIENCE = 60e3


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    from browser import start_browser

    with api.sync_playwright() as playwright:
        browser = start_browser(playwright)
        yield browser
        browser.close()


class Report:
    """A page of a report, its errors and its requests."""

    def __init__(self, browser, path, **options):
        self.context = browser.new_context(viewport=SIZE, offline=True, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.errors, self.requests = [], []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-state=ready]")

    def evaluate(self, expression):
        """The value of an expression; the policy of the page forbids Playwright's own way."""
        session = self.context.new_cdp_session(self.page)
        answer = session.send("Runtime.evaluate", {"expression": expression, "returnByValue": True})
        return answer["result"].get("value")

    def rows(self):
        """Rows of the report in sight, in their order on the page."""
        lines = self.page.locator("#body .row")
        return [int(line.get_attribute("data-row")) for line in lines.all()]

    def pixels(self, selector):
        from PIL import Image

        shot = self.page.locator(selector).screenshot()
        return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)

    def saved(self, selector):
        with self.page.expect_download() as download:
            self.page.locator(selector).click()
        return download.value.path()


@pytest.fixture(scope="module")
def house():
    return house_clashes()


@pytest.fixture(scope="module")
def path(house, tmp_path_factory):
    clashes, columns = house
    name = str(columns["id"][0])
    columns = compare(columns, columns, {name: Acceptance(name, "Ann", "as built")})
    pictures = clash_pictures(clashes, size=(120, 90), device="cpu")
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_page(clashes, columns, path, pictures=pictures, created=DATE, title=HOSTILE)


@pytest.fixture(scope="module")
def shared(browser, path):
    report = Report(browser, path)
    yield report
    report.context.close()


@pytest.fixture
def report(shared):
    """The page without filters, ungrouped, in the order of verdicts."""
    shared.page.reload()
    shared.page.wait_for_selector("html[data-state=ready]")
    shared.page.locator("#grouped").uncheck()
    shared.errors.clear()
    return shared


def test_opens_offline_without_errors(report, house, path):
    clashes, _ = house
    report.page.wait_for_selector(".stage.ready")
    assert report.errors == []
    assert all(url.startswith((path.as_uri(), "data:", "blob:")) for url in report.requests)
    shown = dict(line.inner_text().split("\n")[::-1] for line in report.page.locator(".tile").all())
    assert {name: int(count) for name, count in shown.items()} == clashes.counts()
    assert len(report.rows()) == len(clashes)


def test_hostile_texts_are_inert(report):
    report.page.wait_for_selector(".stage.ready")
    assert report.evaluate("typeof window.hurt") == "undefined"
    assert report.evaluate("document.querySelectorAll('img[src=x]').length") == 0
    assert report.evaluate("document.scripts.length") == report.evaluate(
        "document.querySelectorAll('[id^=block-]').length + 1"
    )
    assert report.page.locator("#title").text_content() == HOSTILE
    names = report.page.locator("#body .text").all_text_contents()
    assert HOSTILE in names
    assert report.evaluate("document.title").startswith("<script>")


def test_sorting(report, house):
    _, columns = house
    depth = columns["depth"]
    head = report.page.get_by_role("columnheader", name="Size")
    head.click()
    assert depth[report.rows()].tolist() == sorted(depth, reverse=True)
    assert head.get_attribute("aria-sort") == "ascending"
    head.click()
    assert depth[report.rows()].tolist() == sorted(depth)
    report.page.get_by_role("columnheader", name="Part a").click()
    names = columns["a_name"][report.rows()].tolist()
    assert names == sorted(names, key=lambda name: (name.lstrip("<").casefold(), name))


def test_a_bound_of_a_depth_keeps_its_unit(browser, house, tmp_path):
    clashes, columns = house
    wide = np.where(np.arange(len(columns["depth"])) == 0, 0.0, columns["depth_error"])
    columns = columns | {"depth": columns["depth"].copy(), "depth_error": wide}
    columns["depth"][0], columns["depth_error"][0] = 0.001, 0.00866
    page = Report(browser, write_page(clashes, columns, tmp_path / "bound.html", created=DATE))
    page.page.locator("#grouped").uncheck()
    assert "≤\u00a09.66 mmdeep" in page.page.locator("#body .number").all_text_contents()
    page.context.close()


def test_filters(report, house):
    _, columns = house
    verdicts, page = columns["verdict"], report.page
    page.locator(".tile", has_text="pierce").click()
    assert {*verdicts[report.rows()]} == {"pierce"}
    page.locator("#filters .chip", has_text="pierce").click()
    assert len(report.rows()) == len(verdicts)
    page.locator("#search").fill("duct 7 IFCDUCT")
    found = report.rows()
    assert 0 < len(found) < len(verdicts)
    assert all("Duct 7" in (columns["a_name"][k], columns["b_name"][k]) for k in found)
    page.locator("#search").fill("no such part")
    assert report.rows() == []
    assert page.get_by_text("No clash passes the filter").is_visible()
    page.locator("#search").fill("")
    page.locator("#statuses .chip", has_text="accepted").click()
    assert report.rows() == [0]
    page.locator("#statuses .chip", has_text="accepted").click()


def test_the_matrix_counts_and_filters(report, house):
    _, columns = house
    page = report.page
    cell = page.locator(
        "button.cell[title^='IfcWall / IfcBeam'], button.cell[title^='IfcBeam / IfcWall']"
    )
    pairs = [{a, b} for a, b in zip(columns["a_type"], columns["b_type"], strict=True)]
    wanted = [k for k, pair in enumerate(pairs) if pair == {"IfcWall", "IfcBeam"}]
    assert int(cell.inner_text()) == len(wanted) > 0
    cell.click()
    assert sorted(report.rows()) == wanted
    total = sum(int(text) for text in page.locator("button.cell").all_inner_texts())
    assert total == len(pairs)  # the matrix shows all pairs, whichever is chosen
    page.locator("#axes button", has_text="Files").click()
    total = sum(int(text) for text in page.locator("button.cell").all_inner_texts())
    assert total == len(pairs) == len(report.rows())


def test_groups_are_one_row_until_they_are_opened(report, house):
    _, columns = house
    groups = columns["group"]
    report.page.locator("#grouped").check()
    assert sorted(groups[report.rows()]) == sorted({*groups})
    first = report.page.locator("#body .more").first
    assert first.inner_text() == "▸ +1"
    first.click()
    assert len(report.rows()) == len({*groups}) + 1


def test_a_click_shows_the_clash(report, house):
    clashes, columns = house
    page = report.page
    row = int(np.flatnonzero(clashes.verdict == "pierce")[0])
    page.locator(f"#body [data-row='{row}']").click()
    page.wait_for_selector(".stage.ready")
    about = page.locator("#detail").inner_text()
    for text in (columns["a_name"][row], columns["b_id"][row], "150 mm", columns["id"][row]):
        assert str(text) in about
    assert columns["id"][row] in page.url
    page.wait_for_timeout(300)
    before = report.pixels("#stage")
    assert shares(before) > (0.05, 0.01, 0.005)
    box = page.locator("#stage").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 180, box["y"] + 120, steps=3)
    page.mouse.up()
    page.wait_for_timeout(300)
    turned = report.pixels("#stage")
    assert (np.abs(turned - before).max(axis=2) > 20).mean() > 0.05
    page.mouse.wheel(0, 1500)
    page.wait_for_timeout(300)
    assert (np.abs(report.pixels("#stage") - turned).max(axis=2) > 20).mean() > 0.05
    page.get_by_role("button", name="Reset view").click()
    page.wait_for_timeout(300)
    assert (np.abs(report.pixels("#stage") - before).max(axis=2) > 20).mean() < 0.01
    assert report.errors == []


def shares(pixels):
    """Shares of the picture in the colours of a, b and the clash, light or dark."""
    r, g, b = np.moveaxis(pixels, 2, 0)
    teal, amber = (b > r + 20) & (g > r + 10), (r > b + 40) & (g > b + 15)
    red = (r > 2 * g) & (r > 2 * b)
    return tuple(float(part.mean()) for part in (teal, amber, red))


def test_every_view_can_be_shown(report, house):
    """Down the list with the keyboard: each view is drawn, none is blank."""
    _, columns = house
    page = report.page
    page.locator("#body .row").first.click()
    for k in range(len(columns["id"])):
        if k:
            page.locator("#scroll").press("ArrowDown")
        page.wait_for_selector(".stage.ready canvas")
        page.wait_for_timeout(150)
        assert report.pixels("#stage").std() > 12
    assert report.errors == []


def test_rows_are_saved(report, house, tmp_path):
    _, columns = house
    text = report.saved("#csv").read_text("utf-8-sig")
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    assert {line["id"] for line in lines} == {*columns["id"]}
    assert {line["verdict"] for line in lines} == {*map(str, columns["verdict"])}


def test_accepted_clashes_are_saved(report, house, tmp_path):
    _, columns = house
    page = report.page
    page.locator("#body [data-row='3']").click()
    page.locator(".accept input").fill("=agreed, on site")
    page.locator(".accept button").click()
    path = report.saved("#filters .chip:has-text('Save 1 accepted')")
    accepted = read_accepted(path)
    assert list(accepted) == [columns["id"][3]]
    assert "agreed, on site" in accepted[columns["id"][3]].reason
    assert accepted[columns["id"][3]].depth == pytest.approx(columns["depth"][3])


def test_on_paper(report, house):
    page = report.page
    page.emulate_media(media="print")
    report.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".printed tbody tr").count() == len(house[0])
    assert page.locator(".printed img").first.is_visible()
    assert not page.locator(".workspace").is_visible()
    page.emulate_media(media="screen")


def test_a_link_opens_a_clash_in_the_dark(browser, path, house):
    _, columns = house
    report = Report(browser, path, color_scheme="dark")
    assert report.evaluate("document.documentElement.dataset.theme") == "dark"
    report.page.goto(f"{path.as_uri()}#clash={columns['id'][2]}")
    report.page.reload()
    report.page.wait_for_selector("html[data-state=ready]")
    assert report.page.locator("#body .chosen").get_attribute("data-row") == "2"
    report.page.wait_for_selector(".stage.ready")
    assert report.errors == []
    report.context.close()


def test_thousands_of_rows(browser, tmp_path):
    """Only the rows in sight are elements."""
    clashes = make_clashes(20_000)
    path = write_page(clashes, columns_of(clashes, facts_of), tmp_path / "r.html", created=DATE)
    report = Report(browser, path)
    report.page.locator("#grouped").uncheck()
    assert "20,000 clashes" in report.page.locator("#shown").inner_text()
    assert len(report.rows()) < 60
    first = report.rows()
    report.evaluate("document.getElementById('scroll').scrollTop = 500000")
    report.page.wait_for_timeout(300)
    later = report.rows()
    assert len(later) < 60
    assert {*first}.isdisjoint(later)
    assert report.page.locator("#stage p").is_visible()  # no parts, no view
    assert report.errors == []
    report.context.close()
