"""A headless Chromium that opens pages and says what is wrong with them."""

import json
import os
import shutil
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-quic", "--disable-dev-shm-usage", "--force-color-profile=srgb",
)  # fmt: skip
# What a page may ask for: itself, and what it holds.
OWN = ("file:", "data:", "about:", "blob:")
SCRIPTS = Path(__file__).with_name("checks.js").read_text(encoding="utf-8")


class Browser:
    """A browser with one window.

    folder: where it keeps what belongs to it.
    flags: further ones than FLAGS.
    """

    def __init__(self, folder, flags=()):
        # Never to look for a driver elsewhere.
        os.environ["SE_OFFLINE"] = "true"
        os.environ["SE_AVOID_STATS"] = "true"
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, *flags, f"--user-data-dir={tempfile.mkdtemp(dir=folder)}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        options.set_capability("unhandledPromptBehavior", "ignore")
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        self.folder = Path(folder)
        self.count = 0
        self.blank = self.folder / "blank.html"
        self.blank.write_text("<!doctype html><title>blank</title>", encoding="utf-8")

    def close(self):
        self.driver.quit()

    def cdp(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def open(self, page, *, width=1280, height=900, theme="light", media="screen", scripts=True):
        """Open a page, a file or a text, as somebody would who has set things so."""
        if isinstance(page, str):
            self.count += 1
            path = self.folder / f"page-{self.count}.html"
            path.write_text(page, encoding="utf-8", errors="surrogatepass")
            page = path
        # From a file to a file: settings for the next page hold within a process, and another kind
        # of address may start another.
        self.driver.get(self.blank.as_uri())
        # A theme that another test chose is kept for all files; this page starts anew.
        self.run("localStorage.clear()")
        self.show(width=width, height=height, theme=theme, media=media)
        self.cdp("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.log("browser")
        self.log("performance")
        self.driver.get(page.as_uri())
        # Without scripts the driver may come back before there is anything to see.
        there = "return [document.URL, document.readyState]"
        address = page.as_uri()
        WebDriverWait(self.driver, 30).until(lambda _: self.run(there) == [address, "complete"])

    def show(self, *, width=1280, height=900, theme="light", media="screen"):
        """Change the window, the colours the reader likes, or from screen to paper."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.cdp("Emulation.setDeviceMetricsOverride", **size)
        likes = [
            {"name": "prefers-color-scheme", "value": theme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.cdp("Emulation.setEmulatedMedia", media=media, features=likes)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def check(self, name, *arguments):
        """Run one of the checks of checks.js."""
        return self.run(f"{SCRIPTS}\nreturn {name}(...arguments)", *arguments)

    def log(self, kind):
        return self.driver.get_log(kind)

    def errors(self):
        """List what stands on the console since the page was opened."""
        return [entry["message"] for entry in self.log("browser")]

    def strange_requests(self):
        """List what the page asked for since it was opened, apart from itself."""
        found = []
        for entry in self.log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
            elif message["method"] == "Network.webSocketCreated":
                found.append(message["params"]["url"])
        return [address for address in found if not address.startswith(OWN)]

    def faults(self):
        """List everything that is wrong with the page as it is shown now."""
        return [
            *(f"console: {text}" for text in self.errors()),
            *(f"request: {address}" for address in self.strange_requests()),
            *self.check("everything"),
        ]
