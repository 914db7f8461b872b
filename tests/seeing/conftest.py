"""A browser for the tests of pages: Debian's chromium through selenium. Without one the tests skip and say why."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# A browser that stays at home: nothing is fetched, nothing is updated.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1400,900",
)  # fmt: skip


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not binary or not driver:
        pytest.skip("no chromium with chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    try:
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    except Exception as error:
        pytest.skip(f"{binary} does not start: {str(error).splitlines()[0]}")
    yield browser
    browser.quit()


class Page:
    """A page in the browser, and what it takes to ask it something."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.browser = browser
        browser.get(path.as_uri())

    def run(self, script: str) -> Any:
        return self.browser.execute_script(script)

    def all(self, css: str) -> list[Any]:
        return list(self.browser.find_elements("css selector", css))

    def one(self, css: str) -> Any:
        return self.browser.find_element("css selector", css)

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.fixture
def open_page(chromium: Any) -> Any:
    return lambda path: Page(chromium, path)
