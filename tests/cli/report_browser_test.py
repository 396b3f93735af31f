"""Reports in headless Chromium: what a person sees, hears and prints of them. What the files hold:
report_test.py. PACELINE_SCREENSHOTS names a folder for pictures of each report, to be looked at.
"""

import functools
import json
import os
import pathlib
import re
import statistics
import tempfile
import unittest

import page_checks
from browser import BrowserTest
from paceline import EXAMPLES, IS_THOROUGH, SOURCE, run

GOLDEN = SOURCE / "tests" / "golden" / "report"
JOB = ("--model", "resnet50", "--cluster", "jizhi-p40", "--strategy", "ring,fused-ring,binary-blocks,nccl")

# What a reader without eyes gets: headings, charts by their labels, and tables by caption and titles.
STRUCTURE = """
const text = (e) => e.textContent.replace(/\\s+/g, " ").trim();
document.querySelectorAll("details").forEach((d) => { d.open = true; });
return new Promise((done) => setTimeout(() => {
  const lines = [];
  for (const e of document.querySelectorAll("h1, h2, dt, figcaption, summary, button:not(.series button), [role=img]:not(td *, th *), table")) {
    if (e.tagName === "TABLE")
      lines.push(`table ${text(e.caption)}: ${[...e.tHead.rows[0].cells].map(text).join(" | ")}; ${e.tBodies[0].rows.length} rows`);
    else if (e.getAttribute("role") === "img") lines.push(`image ${e.getAttribute("aria-label") || "WITHOUT A LABEL"}`);
    else lines.push(`${e.tagName.toLowerCase()} ${text(e)}`);
  }
  done(lines.join("\\n") + "\\n");
}, 50));
"""

# The cells of a table that keep their number, row by row, each with the row's title.
VALUES = """
const table = [...document.querySelectorAll("table")].find((t) => t.caption.textContent === arguments[0]);
const titles = [...table.tHead.rows[0].cells].map((c) => c.textContent);
return [...table.tBodies[0].rows].map((row) => Object.fromEntries([...row.cells].map((cell, i) =>
  [titles[i], cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value)])));
"""


@functools.cache
def folder():
    return tempfile.TemporaryDirectory()


@functools.cache
def report(*words):
    """The report of a command, made once, and the document that it prints, if it prints one."""
    words = tuple(word() if callable(word) else word for word in words)
    path = pathlib.Path(folder().name) / f"{words[0]}-{abs(hash(words))}.html"
    prints = words[:2] != ("calibrate", "import")
    result = run(*words, "--html", str(path), *(("--json",) if prints else ()))
    assert result.returncode == 0, result.stderr
    return path, json.loads(result.stdout) if prints else None


REPORTS = {
    "predict": ("predict", *JOB, "--ranks", "64"),
    "scale": ("scale", *JOB, "--ranks", "8-64", "--measured", "8=1650images/s,64=12900images/s"),
    "tune": ("tune", *JOB, "--ranks", "64"),
    "reproduce": ("reproduce", "jizhi"),
    "reproduce-all": ("reproduce", "all"),
    "time": ("time", "ring", "--cluster", "jizhi-p40", "--ranks", "64", "--measured", "64B=400us@64,1GiB=400ms@64"),
    "time-all": ("time", "all", "--cluster", "jizhi-p40", "--ranks", "8", "--size", "8-64MiB"),
    "calibrate-import": ("calibrate", "import", str(SOURCE / "tests/golden/imports/nccl_tests/2.13-half-two-nodes.txt")),
    "calibrate-import-layers": ("calibrate", "import", str(SOURCE / "tests/golden/imports/kineto/2.5-named.json"), "--model", str(EXAMPLES / "tiny-net.yaml")),
}

# Those that are looked at closely by default. The largest two have the parts of others, and more of each.
CLOSELY = {name: words for name, words in REPORTS.items() if IS_THOROUGH or name not in ("reproduce-all", "time-all")}


@functools.cache
def deep_network():
    """A network of 400 layers whose names are long and alike, as imported ones are."""
    layers = "".join(f"  - {{name: encoder.layer.{i}.attention.self.projection.{kind}, kind: {kind}{words}}}\n" for i in range(198)
                     for kind, words in (("convolution", ", channels: 64, kernel: 3, padding: 1"), ("relu", "")))
    path = pathlib.Path(folder().name) / "a-network-with-a-name-longer-than-most-names-of-networks.yaml"
    path.write_text(f"network: {path.stem}\ninput: [3, 32, 32]\nstored_sample: 3 kB\nlayers:\n{layers}"
                    "  - {name: pool, kind: adaptive_average_pool, output: 1}\n  - {name: fc, kind: fully_connected, outputs: 10}\n"
                    "  - {name: loss, kind: softmax_cross_entropy}\n")
    return str(path)


# Long names, many strategies, ranks, buckets and layers.
LARGE_REPORTS = {
    "predict-deep": ("predict", "--model", deep_network, "--cluster", "h200-ndr", "--ranks", "1024", "--strategy", "ring,tf-distributed-replicated,horovod-hierarchical"),
    "tune-deep": ("tune", "--model", deep_network, "--cluster", "jizhi-p40", "--ranks", "8", "--time-limit", "2s"),
    "predict-2048": ("predict", "--model", "resnet152", "--cluster", "jizhi-p40", "--ranks", "2048"),
    "scale-all": ("scale", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "8-2048"),
}
SERIES = [f"s{i}" for i in range(8)]
FILLS = ["forward", "backward", "update", "all-reduce", "copy", "factor", "input", "wait"]


def pages(pdf):
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


class ReportBrowserTest(BrowserTest):
    def opened(self, words, **view):
        self.browser.open(pathlib.Path("/dev/null"))
        self.browser.errors(), self.browser.requests()
        self.browser.view(**view)
        path, printed = report(*words)
        self.browser.open(path)
        return path, printed

    def quiet(self, path):
        """Nothing was said on the console, and nothing but the file was asked for."""
        self.assertEqual(self.browser.errors(), [])
        self.assertEqual(self.browser.requests(), [path.as_uri()])

    def values(self, caption):
        return self.browser.run(VALUES, caption)


class EveryReport(ReportBrowserTest):
    def test_opens_from_disk_in_both_themes_and_on_a_narrow_screen(self):
        for name, words in REPORTS.items():
            for look, view in {"light": {}, "dark": {"scheme": "dark"}, "narrow": {"width": 400}}.items():
                with self.subTest(report=name, look=look):
                    path, _ = self.opened(words, **view)
                    self.assertGreater(self.browser.run("return document.querySelectorAll('main > section').length"), 0)
                    wide, inner = self.browser.run("return [document.documentElement.scrollWidth, innerWidth]")
                    self.assertLessEqual(wide, inner, "the page scrolls sideways")
                    if shots := os.environ.get("PACELINE_SCREENSHOTS"):
                        self.browser.screenshot(pathlib.Path(shots) / f"{name}-{look}.png")
                    self.quiet(path)

    def test_has_the_structure_of_its_golden_file(self):
        for name, words in REPORTS.items():
            with self.subTest(report=name):
                self.opened(words)
                structure = self.browser.run(STRUCTURE)
                golden = GOLDEN / f"{name}.txt"
                if os.environ.get("PACELINE_UPDATE_GOLDEN"):
                    golden.parent.mkdir(exist_ok=True)
                    golden.write_text(structure)
                # Times move with the model; what there is to see does not.
                still = functools.partial(re.sub, r"\d+(\.\d+)? (s|ms|µs|ns|GiB)\b", "TIME")
                self.assertEqual(still(structure), still(golden.read_text()))

    def test_prints_on_one_page(self):
        for name, words in CLOSELY.items():
            with self.subTest(report=name):
                path, _ = self.opened(words, scheme="dark")
                pdf = self.browser.printed()
                if shots := os.environ.get("PACELINE_SCREENSHOTS"):
                    (pathlib.Path(shots) / f"{name}.pdf").write_bytes(pdf)
                self.assertEqual(pages(pdf), 1)
                # On the screen all is as before.
                self.assertEqual(self.browser.run("return [document.documentElement.dataset.theme, "
                                                  "document.querySelectorAll('section[hidden]').length]"), ["dark", 0])
                self.quiet(path)

    def test_follows_the_system_and_the_button(self):
        self.opened(REPORTS["scale"], scheme="dark")
        paper = "return getComputedStyle(document.body).backgroundColor"
        dark = self.browser.run(paper)
        self.browser.run("document.querySelector('header button').click()")
        light = self.browser.run(paper)
        self.assertEqual([light, dark], ["rgb(255, 255, 255)", "rgb(20, 23, 27)"])
        self.opened(REPORTS["scale"])
        self.assertEqual(self.browser.run(paper), light)


class Complaints(ReportBrowserTest):
    """What a designer, or a person without eyes or mouse, would complain of (page_checks.py)."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        page_checks.record_canvas_texts(cls.browser)

    def test_nobody_has_any_at_three_widths_in_both_themes(self):
        for name, words in {**CLOSELY, **LARGE_REPORTS}.items():
            self.opened(words)
            for width in (400, 900, 1600):
                for scheme in ("light", "dark"):
                    with self.subTest(report=name, width=width, scheme=scheme):
                        self.browser.view(width=width, scheme=scheme)
                        self.browser.settle()
                        self.assertEqual(page_checks.complaints(self.browser), [])

    def test_nobody_has_any_of_tables_that_are_opened(self):
        for name, words in CLOSELY.items():
            with self.subTest(report=name):
                self.opened(words, width=900)
                self.browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
                self.browser.settle()
                self.assertEqual(page_checks.complaints(self.browser), [])

    def test_nobody_has_any_of_what_is_printed(self):
        for name, words in CLOSELY.items():
            with self.subTest(report=name):
                self.opened(words, width=688, height=970)
                self.browser.run("dispatchEvent(new Event('beforeprint'))")
                self.browser.settle()
                self.assertEqual(page_checks.complaints(self.browser), [])
                self.browser.run("dispatchEvent(new Event('afterprint'))")

    def test_each_kind_of_defect_is_found(self):
        page = pathlib.Path(folder().name) / "defects.html"
        page.write_text("""<!DOCTYPE html><html lang="en"><title>defects</title><body style="background: #fff">
            <div style="width: 40px; overflow: hidden; white-space: nowrap">a text that is cut</div>
            <div style="position: relative; height: 30px"><span style="position: absolute">one text</span><span style="position: absolute; left: 4px">another</span></div>
            <p style="color: #bbb">grey on white</p>
            <button style="height: 10px; width: 90px; font-size: 8px; padding: 0; outline: none">flat</button>
            <canvas width="60" height="20"></canvas>
            <div tabindex="0" style="width: 50px; height: 20px"></div>
            <h1>first</h1><h3>third</h3><input type="range" tabindex="0">
            <script>const c = document.querySelector("canvas").getContext("2d"); c.font = "5px sans-serif"; c.fillText("longer than its canvas is wide, by far", 0, 10);</script>""")
        self.browser.view()
        self.browser.open(page)
        found = " | ".join(page_checks.complaints(self.browser) + page_checks.tab_complaints(self.browser) + page_checks.tree_complaints(self.browser))
        for defect in ('clipped: "a text that is cut"', 'overlap: "one text" and "another"', 'faint: "grey on white"', 'small: "flat"', 'clipped: "longer than its canvas',
                       'tiny: "longer than', "'flat' shows no focus", "a slider has no name", "a stop of the keyboard has no role", "heading 'third' skips a level"):
            with self.subTest(defect=defect):
                self.assertIn(defect, found)

    def test_the_tab_key_reaches_all_and_shows_where_it_is(self):
        for name, words in CLOSELY.items():
            with self.subTest(report=name):
                self.opened(words)
                self.assertEqual(page_checks.tab_complaints(self.browser), [])

    def test_a_screen_reader_finds_names_and_roles(self):
        for name, words in CLOSELY.items():
            with self.subTest(report=name):
                self.opened(words)
                self.assertEqual(page_checks.tree_complaints(self.browser), [])

    def test_colours_are_told_apart_by_all_eyes(self):
        self.opened(REPORTS["predict"])
        for scheme in ("light", "dark"):
            self.browser.view(scheme=scheme)
            colors = self.browser.run("const style = getComputedStyle(document.documentElement);"
                                      "return Object.fromEntries([...arguments[0]].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]))",
                                      ["paper", "ink", *SERIES, *FILLS])
            for kind in (("ink", *SERIES), ("paper", "exposed", *FILLS)):
                for eyes, (distance, one, other) in page_checks.nearest({name: colors[name] for name in kind if name in colors}).items():
                    with self.subTest(scheme=scheme, eyes=eyes, pair=f"{one} {other}"):
                        self.assertGreater(distance, 5)
            for name in SERIES:
                with self.subTest(scheme=scheme, series=name):
                    self.assertGreater(page_checks.contrast(colors[name], colors["paper"]), 4.5)


class Numbers(ReportBrowserTest):
    def test_of_strategies_are_those_of_the_document(self):
        _, printed = self.opened(REPORTS["predict"])
        shown = {row["strategy"]: row for row in self.values("Iteration of every strategy")}
        self.assertEqual(sorted(shown), sorted(row["name"] for row in printed["strategies"]))
        # Two columns are of the iteration: a bar, and the number.
        for row in printed["strategies"]:
            cells = shown[row["name"]]
            self.assertEqual((cells["iteration"], cells["samples"], cells["efficiency"], cells["exposed"], cells["buckets"]),
                             (row["iteration_s"], row["throughput_per_s"], row["efficiency"],
                              row["exposed_communication_s"], row["buckets"]))

    def test_of_the_curve_are_those_of_the_document(self):
        _, printed = self.opened(REPORTS["scale"])
        self.browser.run(STRUCTURE)
        shown = {(row["ranks"], row["strategy"]): row for row in self.values("Every strategy at every number of ranks")}
        expected = {(point["ranks"], row["name"]): row for point in printed["points"] for row in point["strategies"]}
        self.assertEqual(sorted(shown), sorted(expected))
        for key, row in expected.items():
            self.assertEqual((shown[key]["iteration"], shown[key]["samples"], shown[key]["efficiency"]),
                             (row["iteration_s"], row["throughput_per_s"], row["efficiency"]))

    def test_of_what_they_rest_on_are_those_of_the_document(self):
        _, printed = self.opened(REPORTS["predict"])
        shown = self.values("What the numbers rest on")
        self.assertEqual([row["figure"] for row in shown], ["compute"] + [entry["what"] for entry in printed["rests_on"]])
        self.assertEqual(shown[0]["source"], next(row["compute_source"] for row in printed["strategies"]
                                                  if row["name"] == printed["best"]["name"]))
        for row, entry in zip(shown[1:], printed["rests_on"]):
            self.assertEqual(row["provenance"], entry["provenance"])

    def test_of_tuned_buckets_are_those_of_the_document(self):
        _, printed = self.opened(REPORTS["tune"])
        shown = self.values("Buckets of the plan")
        self.assertEqual([(row["size"], row["ready"], row["starts"], row["ends"], row["exposed"]) for row in shown],
                         [(b["bytes"], b["ready_s"], b["start_s"], b["end_s"], b["exposed_s"]) for b in printed["buckets"]])


    def test_of_published_rows_are_those_of_the_document(self):
        _, printed = self.opened(REPORTS["reproduce"])
        shown = {row["what"]: row for row in self.values("Predicted and published")}
        self.assertEqual(len(shown), len(printed["rows"]))
        for row in printed["rows"]:
            cells = shown[row["what"]]
            self.assertEqual((cells["published"], cells["ours"], cells["error of speed"]),
                             (row["published"], row["ours"], row["speed_error"]))

    def test_of_all_reduces_are_those_of_the_document(self):
        _, printed = self.opened(REPORTS["time"])
        self.browser.run(STRUCTURE)
        shown = {(row["size"], row["all-reduce"]): row for row in self.values("Every size")}
        expected = {(size["bytes"], time["name"]): time for size in printed["sizes"] for time in size["times"]}
        self.assertEqual(sorted(shown), sorted(expected))
        for key, time in expected.items():
            self.assertEqual((shown[key]["time"], shown[key]["busbw"]), (time["time_s"], time["busbw_bytes_per_s"]))

    def test_of_compared_parts_are_those_of_the_document(self):
        measured, predicted = (str(pathlib.Path(folder().name) / name) for name in ("run.json", "prediction.json"))
        plan = ("--model", "cnn-small", "--ranks", "2", "--batch", "32", "--theta", "100 KB", "--wire", "fp16")
        for words in (("train", *plan, "--data", "synthetic", "--threads", "1", "--epochs", "1", "--timeline", measured),
                      ("predict", *plan, "--cluster", str(EXAMPLES / "lab.yaml"), "--precision", "fp32", "--strategy", "fused-ring",
                       "--timeline", predicted)):
            result = run(*words)
            self.assertEqual(result.returncode, 0, result.stderr)
        path, printed = self.opened(("compare", measured, predicted))
        shown = self.values("Where the iteration goes")
        self.assertEqual([(row["part"], row["measured"], row["predicted"]) for row in shown],
                         [(part["part"], part["measured_s"] or 0, part["predicted_s"] or 0) for part in printed["parts"]])
        self.browser.run(STRUCTURE)
        times = [row["measured"] for row in self.values("Iterations of the run")]
        self.assertEqual(len(times), printed["run"]["complete_iterations"])
        self.assertAlmostEqual(statistics.median(times), printed["iteration"]["measured_s"], delta=2e-9)
        lanes = self.browser.run("return [...document.querySelectorAll('.lanes .group')].map((e) => e.textContent.split(':')[0])")
        self.assertEqual(lanes, ["measured", "predicted"])
        self.assertEqual(pages(self.browser.printed()), 1)
        self.quiet(path)


    def test_of_stragglers_are_those_of_the_document(self):
        _, printed = self.opened(("predict", *JOB, "--ranks", "64", "--spread", "normal:0.1", "--iterations", "50"))
        shown = {row["strategy"]: row for row in self.values("Iterations with stragglers")}
        for row in printed["strategies"]:
            cells = shown[row["name"]]
            self.assertEqual((cells["without"], cells["mean"], cells["p50"], cells["p99"]),
                             (row["iteration_s"], row["iteration_mean_s"], row["iteration_p50_s"], row["iteration_p99_s"]))

    def test_of_the_histogram_count_every_sample(self):
        page = pathlib.Path(folder().name) / "calibrated.html"
        result = run("calibrate", "--ranks", "2", "--time", "1s", "--largest", "64KiB", "--out", str(page.with_suffix(".json")), "--html", str(page))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.browser.view()
        self.browser.open(page)
        self.browser.run(STRUCTURE)
        bins = sum(row["samples"] for row in self.values("Samples over the fit: bins"))
        curve = self.browser.run("return JSON.parse(document.querySelector('script[data-role=result]').textContent).curves[0]")
        sizes = {size["bytes"] for size in curve["sizes"]}
        self.assertEqual(bins, sum(sample["bytes"] in sizes for sample in curve["samples"]))
        self.assertGreater(bins, 2 * len(sizes))
        rates = self.browser.run("return JSON.parse(document.querySelector('script[data-role=profile]').textContent).rates")
        shown = self.values("Rates of kernels")
        self.assertEqual([(row["kernel"], row["type"], row["rate"]) for row in shown], [(rate["kind"], rate["type"], rate["bytes_per_s"]["value"]) for rate in rates])


class Hands(ReportBrowserTest):
    def keys(self, selector, *keys):
        """Sends keys to an element as the keyboard does, and returns what is read out below it."""
        return self.browser.run(
            "const e = document.querySelector(arguments[0]); e.focus();"
            "for (const key of arguments[1]) e.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));"
            "return e.closest('figure').querySelector('.readout').textContent", selector, keys)

    def test_all_controls_are_reached_by_the_keyboard(self):
        self.opened(REPORTS["scale"])
        unreachable = self.browser.run(
            "return [...document.querySelectorAll('button, summary, .lanes[role], .plot, .scrolled')].filter("
            "(e) => e.tabIndex < 0 || !(e.textContent.trim() || e.getAttribute('aria-label'))).length")
        self.assertEqual(unreachable, 0)

    def test_tasks_of_the_timeline_are_read_one_by_one(self):
        self.opened(REPORTS["predict"])
        first = self.keys(".lanes", "ArrowRight")
        self.assertRegex(first, r"^compute stream: forward conv1: .* \(predicted\)$")
        self.assertRegex(self.keys(".lanes", "ArrowRight"), r"^compute stream: forward bn1: ")
        self.assertRegex(self.keys(".lanes", "ArrowDown"), r"^communication stream: .* bucket 0: .*gradients from fc")

    def test_the_timeline_zooms_and_shows_all_again(self):
        self.opened(REPORTS["predict"])
        shapes = "return document.querySelector('.lanes svg').innerHTML"
        whole = self.browser.run(shapes)
        self.keys(".lanes", "+", "+")
        self.assertNotEqual(self.browser.run(shapes), whole)
        self.keys(".lanes", "0")
        self.assertEqual(self.browser.run(shapes), whole)

    def test_points_of_a_curve_are_read_one_by_one(self):
        _, printed = self.opened(REPORTS["scale"])
        self.assertRegex(self.keys(".plot", "ArrowRight"), r"^8 ranks: .*binary-blocks 1\.\d+ k")
        self.assertRegex(self.keys(".plot", "ArrowRight"), r"^16 ranks: ")

    def test_a_series_is_hidden_and_shown(self):
        self.opened(REPORTS["scale"])
        pressed = "return document.querySelector('ul.series button').getAttribute('aria-pressed')"
        click = "document.querySelector('ul.series button').click()"
        seen = [self.browser.run(pressed)]
        for _ in range(2):
            self.browser.run(click)
            seen.append(self.browser.run(pressed))
        self.assertEqual(seen, ["true", "false", "true"])


class Safety(ReportBrowserTest):
    def test_a_hostile_name_is_shown_and_does_nothing(self):
        hostile = "</script><img src=x onerror=document.title='owned'>"
        network = pathlib.Path(folder().name) / "net.yaml"
        network.write_text((EXAMPLES / "tiny-net.yaml").read_text().replace("network: tiny-net", f"network: {json.dumps(hostile)}", 1))
        path, _ = self.opened(("predict", "--model", str(network), "--cluster", "jizhi-p40", "--ranks", "8", "--strategy", "ring"))
        self.assertTrue(self.browser.run("return document.querySelector('h1').textContent").startswith(hostile))
        self.assertTrue(self.browser.driver.title.startswith(hostile))
        self.quiet(path)

    def test_the_policy_forbids_other_scripts_and_requests(self):
        self.opened(REPORTS["predict"])
        self.browser.run("const s = document.createElement('script'); s.textContent = 'document.title = \"owned\"'; document.body.append(s);"
                         "fetch('https://example.org/').catch(() => {})")
        self.assertNotEqual(self.browser.driver.title, "owned")
        said = " ".join(self.browser.errors())
        self.assertIn("script-src", said)
        self.assertIn("connect-src", said)

    def test_a_trace_goes_to_perfetto_when_it_answers(self):
        self.opened(REPORTS["predict"])
        sent = self.browser.run("""
            const sent = [];
            const other = { closed: false, postMessage: (message, origin) => sent.push([message, origin]) };
            window.open = (url) => { sent.push(url); return other; };
            [...document.querySelectorAll("button")].find((b) => b.textContent === "Open in Perfetto").click();
            return new Promise((done) => setTimeout(() => {
              const answer = (origin, data) => { const e = new MessageEvent("message", { origin, data });
                Object.defineProperty(e, "source", { value: other }); dispatchEvent(e); };
              answer("https://example.org", "PONG");
              const before = sent.length;
              answer("https://ui.perfetto.dev", "PONG");
              const last = sent.at(-1);
              const trace = JSON.parse(new TextDecoder().decode(last[0].perfetto.buffer));
              done({ url: sent[0], ping: sent[1], before, after: sent.length, origin: last[1], schema: trace.otherData.schema });
            }, 150));""")
        self.assertEqual(sent["url"], "https://ui.perfetto.dev")
        self.assertEqual(sent["ping"], ["PING", "https://ui.perfetto.dev"])
        self.assertEqual(sent["after"], sent["before"] + 1)
        self.assertEqual((sent["origin"], sent["schema"]), ("https://ui.perfetto.dev", "paceline.timeline/1"))


if __name__ == "__main__":
    unittest.main()
