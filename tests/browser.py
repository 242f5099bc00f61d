"""A real browser for tests of pages: Debian's Chromium, driven by Playwright."""

import shutil
import time

import numpy as np
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
ARGS += ["--ignore-gpu-blocklist", "--disable-dev-shm-usage"]
PATIENCE = 90.0  # seconds; a busy machine is slow to draw
SIZE = {"width": 900, "height": 420}


def start_browser(playwright):
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("there is no Chromium; apt-get install chromium brings it")
    return playwright.chromium.launch(executable_path=found, args=ARGS)


def wait_until(question, seconds=PATIENCE):
    """Wait until a question is answered with something true."""
    end = time.monotonic() + seconds
    while not question():
        assert time.monotonic() < end, "nothing changed"
        time.sleep(0.02)


class Tab:
    """A tab of the browser, and the errors of its console."""

    def __init__(self, browser, offline=False):
        self.context = browser.new_context(viewport=SIZE, offline=offline)
        self.tab = self.context.new_page()
        self.tab.set_default_timeout(PATIENCE * 1e3)
        self.errors, self.requests = [], []
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("console", self._heard)
        self.tab.on("request", lambda request: self.requests.append(request.url))

    def _heard(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def open(self, url):
        self.tab.goto(f"{url}?fixedDpr=0.5")  # few pixels: the renderer is software
        self.tab.wait_for_selector("canvas", timeout=PATIENCE * 1e3)
        warning = self.tab.locator(".mantine-Notification-closeButton")
        warning.first.click(timeout=PATIENCE * 1e3)  # that the renderer is software

    def fact(self, name):
        """The value beside a name in the table of numbers."""
        return self.tab.evaluate(
            """name => {
                const cells = [...document.querySelectorAll("td")];
                const cell = cells.find(cell => cell.textContent === name);
                return cell ? cell.nextElementSibling.textContent : null;
            }""",
            name,
        )

    def until(self, question, seconds=PATIENCE):
        """Wait until a question is answered with something true, and return that."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := question():
                return found
            self.tab.wait_for_timeout(50)
        raise AssertionError("the page did not change")

    def pixels(self):
        """The picture without panels, (h, w, 3)."""
        import io

        from PIL import Image

        self.tab.wait_for_timeout(300)
        shot = Image.open(io.BytesIO(self.tab.screenshot())).convert("RGB")
        return np.asarray(shot)[:, 310:570].astype(int)

    def canvas(self):
        """Box of the picture on the tab."""
        boxes = [canvas.bounding_box() for canvas in self.tab.query_selector_all("canvas")]
        return max(filter(None, boxes), key=lambda box: box["width"] * box["height"])

    def close(self):
        self.context.close()


def on_screen(camera, point, canvas):
    """Pixel of a point of the page, seen by a viser camera on a canvas."""
    from viser.transforms import SO3

    seen = SO3(np.array(camera.wxyz)).inverse().as_matrix() @ (point - np.array(camera.position))
    focal = canvas["height"] / 2 / np.tan(camera.fov / 2)
    middle = canvas["x"] + canvas["width"] / 2, canvas["y"] + canvas["height"] / 2
    return middle[0] + focal * seen[0] / seen[2], middle[1] + focal * seen[1] / seen[2]
