"""The what-if page in headless Chromium: its sliders move what it shows, and that is what the command
prints. PACELINE_SCREENSHOTS names a folder for pictures of both themes, PACELINE_RANDOM_INPUT_S how long
random input lasts.
"""

import json
import os
import pathlib
import random
import re
import shlex
import time
import unittest

import page_checks
from browser import BrowserTest
from page_server import PageServer
from paceline import run

RANDOM_INPUT_S = float(os.environ.get("PACELINE_RANDOM_INPUT_S", "8"))
HANG_S = 120
START = "?model=resnet50&cluster=jizhi-p40&ranks=64"
LARGE = "?model=resnet152&cluster=jizhi-p40&ranks=2048&spread=normal%3A0.1"
SLIDERS = ("ranks", "batch", "bandwidth", "latency", "compute", "theta", "eta", "group", "spread", "slow")

# The strategies' table: each row's cells that keep their number, by name.
ROWS = """
const table = [...document.querySelectorAll("#prediction table")].find((t) => t.caption.textContent === "Iteration of every strategy");
const titles = [...table.tHead.rows[0].cells].map((c) => c.textContent);
return Object.fromEntries([...table.tBodies[0].rows].map((row) => [row.cells[0].textContent, Object.fromEntries([...row.cells].map(
  (cell, i) => [titles[i], cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value)]))]));
"""
# The table of what stragglers make of the iteration, likewise; an empty object where there is none.
STRAGGLERS = """
const table = [...document.querySelectorAll("#prediction table")].find((t) => t.caption.textContent === "Iterations with stragglers");
return Object.fromEntries([...(table?.tBodies[0].rows || [])].map((row) => [row.cells[0].textContent, [...row.cells].filter((cell) => cell.dataset.value !== undefined).map((cell) => Number(cell.dataset.value))]));
"""
CURVE = """
document.querySelectorAll("#curve details").forEach((d) => { d.open = true; });
return new Promise((done) => setTimeout(() => {
  const table = [...document.querySelectorAll("#curve table")].find((t) => t.caption.textContent === "Every strategy at every number of ranks");
  done([...table.tBodies[0].rows].map((row) => [Number(row.cells[0].dataset.value), row.cells[1].textContent, Number(row.cells[2].dataset.value), Number(row.cells[4].dataset.value)]));
}, 50));
"""
MOVE = """
const slider = document.getElementById(arguments[0]);
slider.value = arguments[1];
slider.dispatchEvent(new Event("input", { bubbles: true }));
"""
# Whether what is shown is of what is chosen, and so is the address, which follows a little later.
SETTLED = """
const root = document.documentElement.dataset;
return root.shown === root.wanted && root.shownCurve === root.wantedCurve && root.wanted === location.search.slice(1) && document.querySelector(".stale") === null && document.querySelector("[role=alert]").hidden;
"""


class PageTest(BrowserTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = PageServer()
        cls.addClassCleanup(cls.server.close)

    def opened(self, query=START, **view):
        self.browser.driver.get("about:blank")
        self.browser.errors(), self.browser.requests()
        self.browser.view(**view)
        self.browser.driver.get(self.server.url + query)
        self.settle()

    def settle(self):
        end = time.monotonic() + HANG_S
        while not self.browser.run(SETTLED):
            if time.monotonic() > end:
                self.fail("the page does not follow: " + self.browser.run("return document.body.innerText")[:2000])
            time.sleep(0.05)

    def move(self, name, index):
        self.browser.run(MOVE, name, index)
        self.settle()

    def chosen_command(self):
        return self.browser.run("return document.getElementById('command').textContent")

    def printed(self):
        """What the command prints that the page offers to copy."""
        words = shlex.split(self.chosen_command())
        self.assertEqual(words[0], "paceline")
        result = run(*words[1:], "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def shows_the_command_s_numbers(self):
        shown = self.browser.run(ROWS)
        printed = self.printed()
        self.assertEqual(sorted(shown), sorted(row["name"] for row in printed["strategies"]))
        for row in printed["strategies"]:
            cells = shown[row["name"]]
            self.assertEqual((cells["iteration"], cells["samples"], cells["efficiency"], cells["exposed"], cells["buckets"]),
                             (row["iteration_s"], row["throughput_per_s"], row["efficiency"], row["exposed_communication_s"], row["buckets"]))
        expected = {row["name"]: [row[f"iteration_{name}s"] for name in ("", "mean_", "p50_", "p99_")] for row in printed["strategies"]} if "stragglers" in printed else {}
        self.assertEqual(self.browser.run(STRAGGLERS), expected)
        return printed

    def shown(self):
        return self.browser.run(ROWS), self.browser.run(STRAGGLERS)

    def quiet(self):
        """Nothing was said on the console, and nobody but the server was asked."""
        self.assertEqual(self.browser.errors(), [])
        self.assertEqual([url for url in self.browser.requests() if not url.startswith((self.server.url, "about:"))], [])


class ThePage(PageTest):
    def test_shows_what_the_command_prints_in_both_themes_and_on_a_narrow_screen(self):
        for look, view in {"light": {}, "dark": {"scheme": "dark"}, "narrow": {"width": 400}}.items():
            with self.subTest(look=look):
                self.opened(**view)
                self.shows_the_command_s_numbers()
                wide, inner = self.browser.run("return [document.documentElement.scrollWidth, innerWidth]")
                self.assertLessEqual(wide, inner, "the page scrolls sideways")
                if shots := os.environ.get("PACELINE_SCREENSHOTS"):
                    self.browser.screenshot(pathlib.Path(shots) / f"what-if-{look}.png")
                self.quiet()

    def test_follows_each_slider(self):
        self.opened()
        before = self.shown()
        for name in SLIDERS:
            with self.subTest(slider=name):
                first = self.browser.run("return document.getElementById(arguments[0]).value", name)
                last = self.browser.run("return document.getElementById(arguments[0]).max", name)
                if name == "batch":
                    last = "3"  # 8: a device does not hold the largest ones
                self.move(name, "1" if first == last else last)
                self.assertNotEqual(self.shown(), before)
                self.shows_the_command_s_numbers()
                self.move(name, first)
                self.assertEqual(self.shown(), before)
        self.quiet()

    def test_says_that_a_batch_does_not_fit_and_goes_on(self):
        self.opened()
        before = self.shown()
        first = self.browser.run("return document.getElementById('batch').value")
        self.browser.run(MOVE, "batch", "10")
        end = time.monotonic() + HANG_S
        while "does not fit" not in self.browser.run("return document.querySelector('[role=alert]').textContent"):
            self.assertLess(time.monotonic(), end, "the page says nothing")
            time.sleep(0.05)
        self.move("batch", first)
        self.assertEqual(self.shown(), before)

    def test_drops_a_curve_that_comes_after_another_choice(self):
        self.opened()
        before = self.browser.run(CURVE)
        self.browser.run("const ask = window.fetch; const gate = new Promise((open) => { window.open_gate = open; }); window.held = 0; window.ended = 0;"
                         "window.fetch = async (...words) => { if (!words[0].startsWith('scale')) return ask(...words);"
                         "  ++window.held; await gate; return ask(...words).finally(() => setTimeout(() => ++window.ended, 500)); };")
        first = self.browser.run("return document.getElementById('bandwidth').value")
        self.browser.run(MOVE, "bandwidth", "14")
        end = time.monotonic() + HANG_S
        while not self.browser.run("return window.held"):
            self.assertLess(time.monotonic(), end, "the page does not ask for a curve")
            time.sleep(0.02)
        self.move("bandwidth", first)
        self.browser.run("window.open_gate()")
        while not self.browser.run("return window.ended"):
            self.assertLess(time.monotonic(), end, "the curve never comes")
            time.sleep(0.02)
        self.assertEqual(self.browser.run(CURVE), before)
        self.settle()
        self.quiet()

    def test_draws_the_curve_that_the_command_prints(self):
        self.opened()
        self.move("bandwidth", "2")
        printed = run("scale", "--model", "resnet50", "--cluster", "jizhi-p40", "--what-if", "bandwidth=0.2", "--json")
        expected = [[point["ranks"], row["name"], row["iteration_s"], row["throughput_per_s"]]
                    for point in json.loads(printed.stdout)["points"] for row in point["strategies"]]
        self.assertEqual(self.browser.run(CURVE), expected)
        self.quiet()

    def test_has_its_state_in_its_address(self):
        self.opened("?model=alexnet&cluster=pfn-mn1&ranks=24&batch=48&what-if=bandwidth%3D0.3%2Blatency%3D2&theta=3+MiB&nic=roce-25g"
                    "&spread=normal%3A0.07&slow-rank=0%3D1.3&baseline=8")
        command = self.chosen_command()
        for words in ("--model alexnet --cluster pfn-mn1 --ranks 24 --batch 48 --theta '3 MiB'", "--what-if bandwidth=0.3+latency=2", "--nic roce-25g",
                      "--baseline 8", "--spread normal:0.07", "--slow-rank 0=1.3"):
            self.assertIn(words, command)
        self.shows_the_command_s_numbers()
        address = self.browser.run("return location.search")
        self.opened(address)
        self.assertEqual(self.chosen_command(), command)
        self.quiet()

    def test_says_what_is_wrong_with_its_address(self):
        self.browser.view()
        self.browser.driver.get(self.server.url + START + "&theta=4")
        end = time.monotonic() + HANG_S
        alert = "return document.querySelector('[role=alert]')?.textContent"
        while not self.browser.run(alert) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertRegex(self.browser.run(alert), "^--theta: '4' has no unit")

    def test_is_used_without_a_mouse(self):
        self.opened()
        self.browser.run("document.getElementById('bandwidth').focus()")
        page_checks.press(self.browser, "ArrowRight")
        self.settle()
        self.assertIn("--what-if bandwidth=1.25", self.chosen_command())
        self.shows_the_command_s_numbers()
        self.assertEqual(self.browser.run("return document.getElementById('bandwidth').getAttribute('aria-valuetext')"), "× 1.25")
        self.assertEqual(self.browser.run("return document.getElementById('theta').getAttribute('aria-valuetext')"), "chosen")
        self.assertEqual(page_checks.tab_complaints(self.browser), [])
        self.assertEqual(page_checks.tree_complaints(self.browser), [])

    def test_has_nothing_that_a_designer_complains_of(self):
        page_checks.record_canvas_texts(self.browser)
        for query in (START, LARGE):
            self.opened(query)
            for width in (400, 900, 1600):
                for scheme in ("light", "dark"):
                    with self.subTest(query=query, width=width, scheme=scheme):
                        # So high that all is in sight: what is not, is not laid out.
                        self.browser.view(width=width, height=9000, scheme=scheme)
                        self.browser.settle()
                        if shots := os.environ.get("PACELINE_SCREENSHOTS"):
                            self.browser.screenshot(pathlib.Path(shots) / f"what-if-{'large' if query == LARGE else 'small'}-{width}-{scheme}.png")
                        self.assertEqual(page_checks.complaints(self.browser), [])

    def test_prints_on_one_page(self):
        self.opened(scheme="dark")
        self.assertEqual(len(re.findall(rb"/Type\s*/Page\b", self.browser.printed())), 1)

    def test_stands_still_while_it_follows(self):
        self.opened()
        # Every frame, from now on: where things are, and whether there was nothing.
        self.browser.run("""
            document.getElementById("bandwidth").focus();
            scrollTo(0, 200);
            window.frames_seen = new Set();
            (function look() {
              const places = ["#prediction", "#curve", "#timeline", "#bandwidth"].map((s) => Math.round(document.querySelector(s).getBoundingClientRect().top));
              const empty = [...document.querySelectorAll(".results")].filter((box) => box.childElementCount === 0).length;
              window.frames_seen.add(JSON.stringify({ scroll: Math.round(scrollY), places, empty, focus: document.activeElement.id }));
              requestAnimationFrame(look);
            })();""")
        for index in ("0", "14", "6"):
            self.move("bandwidth", index)
        self.browser.settle()
        self.assertEqual(len(self.browser.run("return [...window.frames_seen]")), 1, self.browser.run("return [...window.frames_seen]"))

    def test_marks_what_is_old_while_an_answer_is_on_its_way(self):
        self.opened()
        before = self.browser.run(ROWS)
        self.browser.run("const ask = window.fetch; const gate = new Promise((open) => { window.open_gate = open; });"
                         "window.fetch = async (...words) => { await gate; return ask(...words); };")
        self.browser.run(MOVE, "bandwidth", "14")
        end = time.monotonic() + HANG_S
        while not self.browser.run("return document.querySelector('#prediction.stale')") and time.monotonic() < end:
            time.sleep(0.02)
        self.assertTrue(self.browser.run("return Boolean(document.querySelector('#prediction.stale') && document.querySelector('#timeline.stale'))"))
        self.assertEqual(self.browser.run(ROWS), before)
        self.browser.run("window.open_gate()")
        self.settle()
        self.assertNotEqual(self.browser.run(ROWS), before)
        self.shows_the_command_s_numbers()

    def test_asks_for_where_a_slider_goes_before_it_is_there(self):
        self.opened()
        asked = "return performance.getEntriesByType('resource').map((e) => new URL(e.name)).filter((u) => u.pathname === '/predict').map((u) => u.search.slice(1))"
        for first, then, ahead in ((7, 8, 9), (9, 8, 7)):  # factors of the bandwidth
            self.move("bandwidth", str(first))
            self.browser.run("performance.clearResourceTimings()")
            self.move("bandwidth", str(then))
            end = time.monotonic() + HANG_S
            while len(self.browser.run(asked)) < 2 and time.monotonic() < end:
                time.sleep(0.02)
            questions = self.browser.run(asked)
            self.move("bandwidth", str(ahead))
            self.assertEqual(questions[-1], self.browser.run("return location.search.slice(1)"))
            self.shows_the_command_s_numbers()
        self.quiet()

    def test_keeps_open_what_was_opened_and_the_focus_in_it(self):
        self.opened()
        state = ("const d = [...document.querySelectorAll('#timeline details')][0];"
                 "return [d.open, d.querySelectorAll('tbody tr').length > 0, document.activeElement === d.querySelector('summary')]")
        self.browser.run("const d = document.querySelector('#timeline details'); d.open = true; d.querySelector('summary').focus();")
        self.browser.settle()
        self.assertEqual(self.browser.run(state), [True, True, True])
        self.browser.run(MOVE, "bandwidth", "14")
        self.settle()
        self.assertEqual(self.browser.run(state), [True, True, True])

    def test_survives_random_input(self):
        self.opened()
        draw = random.Random(7)
        end = time.monotonic() + RANDOM_INPUT_S
        moves = 0
        while time.monotonic() < end:
            kind = draw.randrange(20)
            if kind == 0:
                name = draw.choice(["model", "cluster", "precision"])
                self.browser.run("const s = document.getElementById(arguments[0]); s.selectedIndex = Math.floor(arguments[1] * s.options.length);"
                                 "s.dispatchEvent(new Event('change'))", name, draw.random())
            elif kind == 1:
                self.browser.run("const n = document.querySelectorAll('input[type=number]'); const e = n[Math.floor(arguments[0] * n.length)];"
                                 "e.value = arguments[1]; e.dispatchEvent(new Event('change'))", draw.random(), draw.choice(["0", "7", "-3", "1e9", "", "333", "1.5"]))
            elif kind == 2:
                self.browser.run("const b = [...document.querySelectorAll('main button')].filter((b) => !/Perfetto|Save|Print|Copy/.test(b.textContent));"
                                 "b[Math.floor(arguments[0] * b.length)].click()", draw.random())
            elif kind == 3:
                for _ in range(draw.randrange(1, 6)):
                    page_checks.press(self.browser, draw.choice(["Tab", "ArrowRight"]))
            elif kind == 4:
                self.browser.view(width=draw.choice([400, 900, 1600]), scheme=draw.choice(["light", "dark"]))
            else:
                name = draw.choice(SLIDERS)
                self.browser.run("const s = document.getElementById(arguments[0]); s.value = Math.floor(arguments[1] * (Number(s.max) + 1));"
                                 "s.dispatchEvent(new Event('input'))", name, draw.random())
            moves += 1
            time.sleep(draw.choice([0, 0, 0.02, 0.2]))
        # A batch that a device does not hold is refused, and one sample of every network of the catalogue fits.
        self.browser.run(MOVE, "batch", "0")
        self.settle()
        self.shows_the_command_s_numbers()
        # The browser says of each question that is refused that it is.
        self.assertEqual([line for line in self.browser.errors() if "400 (Bad Request)" not in str(line)], [])
        print(f"{moves} inputs in {RANDOM_INPUT_S:.0f} s")


if __name__ == "__main__":
    unittest.main()
