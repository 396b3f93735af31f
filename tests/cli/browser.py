"""Headless Chromium, as the tests of pages drive it: Debian's chromium, chromium-driver and
python3-selenium. Where one of them is missing, tests are skipped and say so.
"""

import base64
import json
import os
import shutil
import tempfile
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
except ImportError:
    webdriver = None


def missing():
    """What a test of a page needs and is not here; an empty text where all is here."""
    if webdriver is None:
        return "python3-selenium is not installed"
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return ""


class Browser:
    """A browser with a profile of its own, which records what the console says and what is requested."""

    def __init__(self, folder, width=1280, height=900):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
                     f"--user-data-dir={folder}", f"--window-size={width},{height}"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_page_load_timeout(60)

    def close(self):
        self.driver.quit()

    def command(self, name, **parameters):
        return self.driver.execute_cdp_cmd(name, parameters)

    def view(self, width=1280, height=900, scheme="light", media=""):
        """How wide the page is, which scheme the system prefers, and what the page is made for."""
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.command("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, path):
        self.driver.get(path.as_uri())

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def settle(self):
        """Waits until the page has drawn what it was told last."""
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)));")

    def errors(self):
        """What the console has said since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """The addresses that were asked for since the last call, but for blobs and data of the page itself."""
        urls = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                urls.append(message["params"]["request"]["url"])
        return [url for url in urls if not url.startswith(("data:", "blob:"))]

    def screenshot(self, path):
        """The whole page."""
        path.write_bytes(base64.b64decode(self.command("Page.captureScreenshot", captureBeyondViewport=True, format="png")["data"]))

    def printed(self):
        """The page as PDF, as people print it."""
        return base64.b64decode(self.command("Page.printToPDF", preferCSSPageSize=True, printBackground=False)["data"])


class BrowserTest(unittest.TestCase):
    """Tests that share a browser."""

    @classmethod
    def setUpClass(cls):
        if problem := missing():
            raise unittest.SkipTest(f"{problem}: pages are not tried in a browser")
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        cls.addClassCleanup(folder.cleanup)
        # A browser writes below HOME whatever its profile is.
        home, os.environ["HOME"] = os.environ.get("HOME", ""), folder.name
        cls.addClassCleanup(lambda: os.environ.__setitem__("HOME", home))
        cls.browser = Browser(os.path.join(folder.name, "profile"))
        cls.addClassCleanup(cls.browser.close)
