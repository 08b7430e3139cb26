"""A real browser without a window: Chromium, driven the way that the W3C's WebDriver says."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.waiting import wait_until

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    # Containers lack what its sandbox rests on and have little shared memory. Only pages of this machine are opened.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--no-proxy-server",
)


class NoBrowser(RuntimeError):
    """The programs are not on this machine. The message says what to do."""


class Browser:
    """What a person does in front of it: go somewhere, look, type, press."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self._driver = driver

    def open(self, url: str) -> None:
        """Go there."""
        self._driver.get(url)

    def sees(self, selector: str, text: str = "") -> WebElement:
        """The first thing of that CSS selector, with that text in it, once it is there to be seen."""
        found = wait_until(lambda: self._visible(selector, text), what=f"{selector} {text!r} at {self.url}")
        assert found is not None
        return found

    def type(self, selector: str, text: str) -> None:
        """Type into a field."""
        field = self.sees(selector)
        field.clear()
        field.send_keys(text)

    def press(self, selector: str, text: str = "") -> None:
        """Press a button once it can be pressed."""
        button = self.sees(selector, text)
        wait_until(button.is_enabled, what=f"{selector} {text!r} to be possible")
        button.click()

    def forget(self) -> None:
        """Forget whom it knows: every cookie, of every site."""
        self._driver.execute_cdp_cmd("Network.clearBrowserCookies", {})

    @property
    def text(self) -> str:
        """All that the page says."""
        return self._driver.find_element(By.TAG_NAME, "body").text

    @property
    def url(self) -> str:
        """Where it is."""
        return self._driver.current_url

    def style(self, selector: str, name: str) -> str:
        """How something looks, as the browser works it out."""
        return self._driver.find_element(By.CSS_SELECTOR, selector).value_of_css_property(name)

    def complaints(self) -> list[str]:
        """What it wrote to its console of this page, such as that a policy forbids what the page asks for; that the
        page itself came with a status of failure is none."""
        said = [str(entry["message"]) for entry in self._driver.get_log("browser")]
        return [text for text in said if self.url in text and not text.startswith(f"{self.url} - Failed to load")]

    def prefers(self, scheme: str) -> None:
        """From now on the person prefers ``light`` or ``dark`` pages."""
        features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", features)

    def _visible(self, selector: str, text: str) -> WebElement | None:
        found = self._driver.find_elements(By.CSS_SELECTOR, selector)
        try:
            return next((one for one in found if one.is_displayed() and text in one.text), None)
        except StaleElementReferenceException:  # the page is being drawn anew
            return None


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser that knows nothing of any other, for the block."""
    options = webdriver.ChromeOptions()
    options.binary_location = _found(*PROGRAMS)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in FLAGS:
        options.add_argument(flag)
    # The driver is named, so that nothing is looked for in the network.
    driver = webdriver.Chrome(options, webdriver.ChromeService(_found("chromedriver")))
    try:
        driver.set_window_size(1000, 760)
        yield Browser(driver)
    finally:
        driver.quit()


def _found(*names: str) -> str:
    path = next((path for name in names if (path := shutil.which(name))), None)
    if path is None:
        raise NoBrowser(f"these tests need {names[0]}, which is not on the PATH; `make programs` installs Debian's")
    return path
