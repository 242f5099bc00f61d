"""A browser for the tests of a file."""

import pytest


@pytest.fixture(scope="module")
def browser():
    """Chromium; without it, or without Playwright or viser, the test is skipped."""
    pytest.importorskip("viser")
    api = pytest.importorskip("playwright.sync_api")
    from browser import start_browser

    with api.sync_playwright() as playwright:
        browser = start_browser(playwright)
        yield browser
        browser.close()
