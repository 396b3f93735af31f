#!/usr/bin/env python3
"""How long the what-if page takes to follow a slider, in headless Chromium.

    PACELINE=build/release/paceline /usr/bin/python3 tests/benchmarks/serve_latency.py [--moves 12] [--start QUERY]

Each slider is moved so many times, to the next of its values, once everything that the last move asked for
is drawn. Printed for each, as median and 95th percentile: from the input to the frame in which the
strategies and the timeline are drawn (data-shown equals data-wanted); of that, what the browser waited for
the server; the same values once more, whose answers the server has kept; and from the input to the curve,
which is not asked again where it does not depend on the slider. A batch that no slider else has makes the
questions of each slider new. A slider goes on in one direction, as with an arrow key held, so that the page has
asked for the next value before (what_if.js, askAhead); --skip moves by two values, where it has not.
Last, the processor time of the server for each new question.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
os.environ.setdefault("PACELINE_SOURCE", str(SOURCE))
sys.path.insert(0, str(SOURCE / "tests/cli"))

from browser import Browser, missing
from page_server import PageServer

SLIDERS = ("ranks", "batch", "bandwidth", "latency", "compute", "theta", "eta", "group", "spread", "slow")

# Waits for the page to be drawn.
BEGUN = """
const done = arguments[0];
const root = document.documentElement.dataset;
(function look() {
  if (root.shown && root.shown === root.wanted && root.shownCurve === root.wantedCurve && !document.querySelector(".stale")) done();
  else requestAnimationFrame(look);
})();
"""
# Moves a slider, and says when the prediction and when the curve was drawn, and what the server took of that.
MOVE = """
const [name, index, done] = arguments;
const root = document.documentElement.dataset;
const slider = document.getElementById(name);
performance.clearResourceTimings();
const began = performance.now();
slider.value = String(index);
slider.dispatchEvent(new Event("input", { bubbles: true }));
let shown = 0;
(function look() {
  const now = performance.now();
  const isShown = root.shown === root.wanted && !document.querySelector("#prediction.stale, #timeline.stale");
  if (isShown && !shown) shown = now;
  if (now - began < 60000 && (!isShown || root.shownCurve !== root.wantedCurve)) {
    requestAnimationFrame(look);
    return;
  }
  const served = performance.getEntriesByType("resource").filter((e) => /(predict|timeline)$/.test(new URL(e.name).pathname) && new URL(e.name).search.slice(1) === root.wanted).map((e) => [e.requestStart, e.responseEnd]);
  done({ shown: shown - began, curve: now - began, problem: document.querySelector("[role=alert]").hidden ? "" : document.querySelector("[role=alert]").textContent,
    server: served.length ? Math.max(...served.map((e) => e[1])) - Math.min(...served.map((e) => e[0])) : 0 });
})();
"""


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def of(times):
    times = sorted(times)
    return f"{statistics.median(times):5.0f} {times[min(len(times) - 1, int(0.95 * len(times)))]:5.0f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--moves", type=int, default=12)
    parser.add_argument("--start", default="model=resnet50&cluster=jizhi-p40&ranks=64")
    parser.add_argument("--sliders", default=",".join(SLIDERS))
    parser.add_argument("--skip", action="store_true")
    options = parser.parse_args()
    if problem := missing():
        sys.exit(problem)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["HOME"] = folder
        server = PageServer()
        browser = Browser(os.path.join(folder, "profile"))
        browser.driver.set_script_timeout(90)
        try:
            print(f"from {options.start}, {options.moves} moves; ms: median and p95")
            print(f"{'slider':10} {'drawn':>11} {'server':>11} {'again':>11} {'curve':>11}  server's processor time")
            every = []
            for number, name in enumerate(options.sliders.split(",")):
                browser.driver.get(f"{server.url}?{options.start}" + ("" if name == "batch" else f"&batch={65 + number}"))
                browser.driver.execute_async_script(BEGUN)
                last = int(browser.run("return document.getElementById(arguments[0]).max", name))
                first = int(browser.run("return document.getElementById(arguments[0]).value", name))
                move = lambda index: browser.driver.execute_async_script(MOVE, name, index)
                by = 2 if options.skip else 1
                others = [i % (last + 1) for i in range(first + by, first + 1 + by * min(options.moves, last // by), by)]
                move(first)
                before = cpu_s(server.process.pid)
                new = [move(i) for i in others]
                cpu = cpu_s(server.process.pid) - before
                known = [move(i) for i in [first, *others]][1:]
                if problems := {m["problem"] for m in new if m["problem"]}:
                    print(name, problems)
                every += new
                columns = [of([m[key] for m in moves]) for key, moves in (("shown", new), ("server", new), ("shown", known), ("curve", new))]
                print(f"{name:10} " + " ".join(columns) + f"  {1e3 * cpu / len(new):5.0f} ms a move with its curve", flush=True)
            print(f"{'all':10} " + " ".join(of([m[key] for m in every]) for key in ("shown", "server")))
        finally:
            browser.close()
            server.close()


if __name__ == "__main__":
    main()
