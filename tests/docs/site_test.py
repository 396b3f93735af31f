"""The manual as a site: it builds without a warning, every link in it leads somewhere, and its search
works from disk. Skipped with a message where Sphinx, MyST or Furo is missing.
"""

import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

SOURCE = pathlib.Path(os.environ["PACELINE_SOURCE"])
sys.path.insert(0, str(SOURCE / "tests/cli"))
sys.path.insert(0, str(SOURCE / "docs/site"))
import browser  # noqa: E402
import public_headers  # noqa: E402

HANG_S = 600


def missing():
    """What the site needs and is not here; an empty text where all is here."""
    if shutil.which("sphinx-build") is None:
        return "python3-sphinx is not installed"
    for module, package in (("myst_parser", "python3-myst-parser"), ("furo", "furo")):
        if subprocess.run(["/usr/bin/python3", "-c", f"import {module}"], capture_output=True).returncode != 0:
            return f"{package} is not installed"
    return ""


def build(source, site):
    return subprocess.run(["sphinx-build", "-W", "--keep-going", "-q", "-c", SOURCE / "docs/site", "-d", f"{site}.doctrees", "-b", "html", source, site],
                          capture_output=True, text=True, timeout=HANG_S)


class Page(html.parser.HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.names.add(value)


def dead_links(site):
    """The links of all pages to files and places of the site that are not there."""
    parsed = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    dead = []
    for path, page in parsed.items():
        for link in page.links:
            address = urllib.parse.urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(address.path)).resolve() if address.path else path
            place = urllib.parse.unquote(address.fragment)
            if not target.is_file() or (place and target in parsed and place not in parsed[target].names):
                dead.append(f"{path.relative_to(site.resolve())}: {link}")
    return dead


def outside_links(site):
    """The addresses outside of the site that its pages link to, which no test reaches."""
    return {link for path in site.rglob("*.html") for link in Page(path.read_text(encoding="utf-8")).links if urllib.parse.urlsplit(link).netloc}


def setUpModule():
    """Builds the site once, for all tests."""
    global site, built
    if problem := missing():
        raise unittest.SkipTest(f"{problem}: the site of the manual is not built")
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    site = pathlib.Path(folder.name) / "site"
    built = build(SOURCE, site)


class Site(unittest.TestCase):
    def test_it_builds_without_a_warning(self):
        self.assertEqual((built.returncode, built.stderr), (0, ""))

    def test_every_link_leads_somewhere(self):
        self.assertGreater(len(list(site.rglob("*.html"))), 50)
        self.assertEqual(dead_links(site), [])

    def test_all_links_out_of_the_site_are_known(self):
        self.assertEqual(outside_links(site), {"https://ui.perfetto.dev", "https://github.com/pradyunsg/furo"})  # the second is the theme's footer

    def test_a_dead_link_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            pages = pathlib.Path(folder)
            (pages / "a.html").write_text('<p id="x"><a href="b.html">1</a><a href="b.html#y">2</a><a href="#x">3</a><a href="c.html">4</a>')
            (pages / "b.html").write_text("<p>")
            self.assertEqual(dead_links(pages), ["a.html: b.html#y", "a.html: c.html"])

    def test_a_broken_link_of_a_page_fails_the_build(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "source"
            (source / "docs").mkdir(parents=True)
            index = source / "docs/index.md"
            index.write_text("# Title\n\n## A place\n\n[here](#a-place)\n")
            whole = build(source, pathlib.Path(folder) / "whole")
            self.assertEqual((whole.returncode, whole.stderr), (0, ""))
            index.write_text("# Title\n\n## A place\n\n[nowhere](missing.md) [no place](#missing-place) [no file](../models/missing.h)\n")
            broken = build(source, pathlib.Path(folder) / "broken")
            self.assertNotEqual(broken.returncode, 0)
            for target in ("missing.md", "#missing-place", "../models/missing.h"):
                self.assertIn(f"reference target not found: {target}", broken.stderr)

    def test_every_public_header_is_listed(self):
        listed = (site / "docs/headers.html").read_text(encoding="utf-8")
        for headers in public_headers.rooms(SOURCE).values():
            for path, paragraph in headers:
                self.assertRegex(paragraph, r"^[A-Z`].*[.:]$", path)
                self.assertRegex(listed, re.escape(f"/{pathlib.PurePath(path).name}\""), path)


class Search(browser.BrowserTest):
    """From disk, as a file."""

    def test_it_finds_pages_without_a_network(self):
        for words, page in (("lower bound", "docs/tutorial.html"), ("nccl-tests", "docs/how-to/calibrate-with-nccl-tests.html")):
            self.browser.errors(), self.browser.requests()
            self.browser.driver.get((site / "search.html").as_uri() + "?" + urllib.parse.urlencode({"q": words}))
            found = self.browser.driver.execute_async_script("""
                const done = arguments[0];
                const wait = () => document.body.innerText.match(/Search finished|did not match/)
                    ? done([...document.querySelectorAll("#search-results li a")].map(link => link.href)) : setTimeout(wait, 50);
                wait();""")
            self.assertTrue(any(urllib.parse.urlsplit(link).path.endswith(page) for link in found), (words, found))
            self.nothing_else_was_asked_for(words)

    def nothing_else_was_asked_for(self, what):
        self.assertEqual(self.browser.errors(), [], what)
        self.assertEqual([address for address in self.browser.requests() if not address.startswith(("file:", "chrome:"))], [], what)

    def background(self):
        return sum(int(part) for part in re.findall(r"\d+", self.browser.run("return getComputedStyle(document.body).backgroundColor"))[:3])

    def test_pages_are_light_and_dark_and_ask_for_nothing(self):
        for page in ("docs/index.html", "docs/tutorial.html", "README.html"):
            brightness = {}
            for scheme in ("light", "dark"):
                self.browser.view(scheme=scheme)
                self.browser.errors(), self.browser.requests()
                self.browser.open(site / page)
                brightness[scheme] = self.background()
                self.nothing_else_was_asked_for(page)
            self.assertGreater(brightness["light"], 600)
            self.assertLess(brightness["dark"], 150)


if __name__ == "__main__":
    unittest.main()
