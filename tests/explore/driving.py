"""An app that runs, a browser that opens it, and a proxy that lets nothing through."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

from processes import free_port
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

TOKEN = "abcdefgh12345678"
PATIENCE = 40


class Refusing:
    """A proxy that takes note of what it is asked for, and refuses it."""

    def __init__(self):
        self.asked = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._refuse, daemon=True).start()

    def _refuse(self):
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                self.asked.append(connection.recv(4096).split(b"\r\n")[0].decode("latin-1"))
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    def close(self):
        self._server.close()


class App:
    """An app in a process of its own, as a user starts it.

    arguments: of the command.
    port: where it listens; a free port where left out.
    """

    def __init__(self, *arguments, port=None):
        self.port = port or free_port()
        command = [sys.executable, "-m", "fedaccord", "explore", *map(str, arguments)]
        command += ["--no-browser", "--port", str(self.port), "--token", TOKEN]
        # No network but this machine's own; and NiceGUI is to run as it does for users.
        nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
        own = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
        self.process = subprocess.Popen(
            command, env={**own, **nowhere}, stderr=subprocess.PIPE, text=True
        )
        self.said = []
        while not (line := self.process.stderr.readline()).startswith("fedaccord: open "):
            self.said.append(line)
            if not line:
                self.kill()
                self.process.stderr.close()
                raise AssertionError("".join(self.said))
        threading.Thread(target=self._read, daemon=True).start()
        self.address = re.search(r"http://\S+", line)[0]

    def _read(self):
        with self.process.stderr:
            self.said.extend(self.process.stderr)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()


class Tab:
    """What somebody does in the browser's window, and sees.

    browser: the browser.
    app: the app that it opens.
    """

    def __init__(self, browser, app):
        self.browser, self.app, self.driver = browser, app, browser.driver

    def open(self, query="", **looks):
        self.browser.show(**looks)
        # A page whose server has ended would go on asking for it, and fill the logs.
        self.driver.get("about:blank")
        self.browser.log("browser")
        self.browser.log("performance")
        self.driver.get(f"{self.app.address}&{query}".rstrip("&"))
        self.settle()
        return self

    def until(self, true, what=""):
        """Wait until something is so, and return it."""
        end = time.monotonic() + PATIENCE
        while not (found := true()):
            assert time.monotonic() < end, f"{what or true}: {self.text()[:2000]}"
            time.sleep(0.03)
        return found

    def settle(self):
        """Wait until nothing is under way, and what is shown stays."""

        def stays():
            seen = self.browser.run(SETTLED)
            time.sleep(0.15)
            return seen and seen == self.browser.run(SETTLED)

        self.until(stays, "settled")

    def text(self):
        return self.browser.run("return document.body.innerText")

    def see(self, *texts):
        for text in texts:
            self.until(lambda text=text: text in self.text(), f"see {text!r}")

    @property
    def verdict(self):
        """The verdict with its details, warnings and doubts."""
        return self.browser.run(
            "document.querySelectorAll('.answer details').forEach(e => { e.open = true });"
            "return document.querySelector('.answer').innerText"
        )

    @property
    def headline(self):
        """The verdict alone, in large type."""
        return self.browser.run("return document.querySelector('.answer .verdict p').innerText")

    @property
    def query(self):
        return urlsplit(self.driver.current_url).query.partition("&")[2]

    def find(self, selector):
        return self.until(
            lambda: next(iter(self.driver.find_elements(By.CSS_SELECTOR, selector)), None), selector
        )

    def touch(self, selector, act):
        """Do something to an element; one that is drawn again meanwhile is found again."""

        def touched():
            try:
                act(self.find(selector))
            except StaleElementReferenceException:
                return False
            return True

        self.until(touched, selector)

    def click(self, selector):
        self.touch(selector, lambda element: element.click())

    def press(self, label):
        """Press what has a text or a name."""
        named = f"[aria-label='{label}']"
        # Found and pressed at once: what is drawn again meanwhile is another element.
        script = f"""const found = [...document.querySelectorAll("button,.q-item,.q-tab,{named}")]
            .filter(e => !e.disabled).find(e => e.matches("{named}") ||
                e.innerText.trim().split("\\n").pop() === arguments[0]);
            found?.click(); return Boolean(found)"""
        self.until(lambda: self.browser.run(script, label), f"press {label}")

    def go(self, label):
        """Press what leads to another address, and wait until all of it is shown."""
        before = self.query
        self.press(label)
        self.until(lambda: self.query != before, f"go {label}")
        self.settle()

    def adjust(self, label):
        """Choose what the sliders change, and wait until they do."""
        self.go(label)
        self.find(f".rows [aria-label^='{label.lower()} of ']")

    def numbers(self):
        """Return what the fields of all agents show."""
        script = "return [...document.querySelectorAll('.rows input')].map(e => e.value)"
        return [float(n) for n in self.browser.run(script) if n not in ("", "on")]

    def write(self, agent, number):
        """Write a number into the field of an agent, as on a keyboard."""
        before = self.query

        def type_it(field):
            self.browser.run("arguments[0].scrollIntoView({block: 'center'})", field)
            field.send_keys(Keys.CONTROL, "a")
            field.send_keys(str(number), Keys.ENTER, Keys.TAB)

        self.touch(f".rows [data-agent='{agent}'] input[type=number]", type_it)
        self.until(lambda: self.query != before, f"write {number}")
        self.settle()

    def slide(self, agent, key=Keys.ARROW_RIGHT, times=1):
        """Move the slider of an agent with the keyboard."""
        thumb = f".rows [data-agent='{agent}'] .q-slider__track-container"
        self.touch(thumb, lambda found: self.browser.run("arguments[0].focus()", found))
        for _ in range(times):
            self.driver.switch_to.active_element.send_keys(key)

    def lock(self, agent):
        before = self.query
        self.click(f".rows [data-agent='{agent}'] .q-checkbox")
        self.until(lambda: self.query != before, f"lock {agent}")
        self.settle()

    def download(self, label, folder):
        """Take a file away, and return its content."""
        self.browser.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        known = set(folder.iterdir())
        # A menu that is still closing has the same entries, and takes no press.
        menu = "return document.querySelector('.q-menu') === null"
        self.until(lambda: self.browser.run(menu), "the last menu to close")
        self.press("Take away")
        self.press(label)

        def arrived():
            new = [
                p for p in set(folder.iterdir()) - known if p.suffix not in (".crdownload", ".tmp")
            ]
            return new[0] if new and new[0].stat().st_size else None

        return self.until(arrived, f"download {label}")


SETTLED = """const busy = document.querySelector('.busy'), said = document.querySelector('.answer');
const fields = [...document.querySelectorAll('.rows input')].map(e => e.value);
const settled = busy && said && said.innerText.length > 5 && !busy.innerText.includes('…');
return settled ? said.innerText + fields : null"""
