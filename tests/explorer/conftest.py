"""A real browser, where there is one: `make browser` installs it."""

from __future__ import annotations

import io
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

MODES = {
    "cpu": ["--disable-gpu"],
    "gpu": ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
}
"""How a browser draws; a machine without a graphics card imitates one."""


def chromium() -> str | None:
    """Find a browser: HOCKET_CHROMIUM, one that is installed, or Playwright's own."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("HOCKET_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        own = Path.home() / ".cache" / "ms-playwright"
        found = next((str(path) for path in sorted(own.glob("chromium-*/chrome-*/chrome"))), None)
    return found


class Tab:
    """A page that is open; every message, error and request of it is kept."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on(
            "console", lambda message: self.complaints.append(f"{message.type}: {message.text}")
        )
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", self._asked)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.complaints.append(f"request: {request.url}")

    def open(self, path: Path, hash_: str = "") -> Tab:
        self.page.goto(f"file://{path}{hash_}")
        return self.until("window.ready && window.loaded")

    def until(self, condition: str, seconds: float = 60.0) -> Tab:
        """Wait until something holds; the page itself forbids that texts are run in it."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(f"!!({condition})"):
            wrong = self.page.evaluate("window.err || ''")
            assert not wrong, wrong
            assert time.monotonic() < end, f"{condition}: not within {seconds} s; {self.complaints}"
            time.sleep(0.02)
        return self

    def __call__(self, script: str, argument: Any = None) -> Any:
        return self.page.evaluate(script, argument)

    def pixels(self, script: str) -> np.ndarray:
        """Give a canvas as an array of colours, without reading it in the page."""
        import base64

        from PIL import Image

        url = self(f"({script}).toDataURL('image/png')")
        image = Image.open(io.BytesIO(base64.b64decode(url.split(",")[1])))
        return np.asarray(image.convert("RGB"))

    @property
    def hash(self) -> str:
        return str(self("location.hash"))


@pytest.fixture(scope="session", params=list(MODES))
def browser(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A browser that draws by the processor, and one that draws as with a graphics card."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no playwright: `make browser` installs it"
    )
    path = chromium()
    if path is None:
        pytest.skip("no Chromium: `make browser` installs it")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox", *MODES[request.param]]
        )
        yield opened
        opened.close()


@pytest.fixture
def tab(browser: Any) -> Iterator[Callable[..., Tab]]:
    """Open tabs; when a test ends, none may have complained or asked for anything."""
    contexts, tabs = [], []

    def make(**options: Any) -> Tab:
        context = browser.new_context(
            viewport={"width": 1440, "height": 900}, offline=True, accept_downloads=True, **options
        )
        contexts.append(context)
        tabs.append(Tab(context.new_page()))
        return tabs[-1]

    yield make
    for context in contexts:
        context.close()
    assert [each.complaints for each in tabs] == [[] for _ in tabs]
