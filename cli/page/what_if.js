// The what-if page: sliders for the options of predict. What follows them is drawn by the functions that
// draw reports, of the documents that the command prints with the same options.
//
// The state is the page's address: its query has the options by their names, as the server takes them and
// as the command has them. Options that have no slider stay as they are there.
{
  const { html } = dom;
  const sizes = [16, 64, 256].map((n) => `${n} KiB`).concat([1, 2, 4, 8, 16, 32, 64, 128, 256, 512].map((n) => `${n} MiB`));
  const factors = ["0.1", "0.125", "0.2", "0.25", "0.5", "0.75", "1", "1.25", "1.5", "2", "3", "4", "5", "8", "10"];
  const doubles = (most) => {
    const values = [];
    for (let n = 1; n < most; n *= 2) values.push(String(n));
    return [...values, String(most)];
  };
  const divisors = (ranks) => {
    const values = [];
    for (let k = 2; k <= Math.min(ranks, 4096); ++k) if (ranks % k === 0) values.push(String(k));
    return values;
  };

  // What is chosen, by the names of controls; without a value an option is not given.
  const chosen = {};
  let others = []; // [name, value] of options without a control
  let choices = null;
  // The first of the files that the server was given, or else a name of the catalogue.
  const ownOr = (list, name) => list.find((entry) => entry.own)?.name ?? name;
  const clusterOf = () => choices.clusters.find((c) => c.name === chosen.cluster);

  // A control has a label, the values of its slider, the value that is the option's default, and how
  // people read a value. Lists have no slider.
  const times = (text) => `× ${text}`;
  const controls = {
    model: { label: "Network", list: () => choices.models, first: () => ownOr(choices.models, "resnet50") },
    cluster: { label: "Cluster", list: () => choices.clusters, first: () => ownOr(choices.clusters, "jizhi-p40") },
    precision: { label: "Precision", list: () => [{ name: "mixed", description: "FP16 with FP32 master weights" }, { name: "fp32", description: "" }], first: "mixed" },
    ranks: { label: "Ranks", values: () => doubles(clusterOf().ranks), first: () => String(Math.min(1024, clusterOf().ranks)), most: () => clusterOf().ranks },
    batch: { label: "Batch per rank", values: () => doubles(1024), first: "64", most: () => 1 << 20 },
    bandwidth: { label: "Bandwidth of links", values: () => factors, first: "1", text: times },
    latency: { label: "Latency of links", values: () => factors, first: "1", text: times },
    compute: { label: "Speed of devices", values: () => factors, first: "1", text: times },
    theta: { label: "Fusion threshold θ", values: () => ["", ...sizes], first: "", text: (v) => v || "chosen" },
    eta: { label: "Hybrid threshold η", values: () => ["", ...sizes], first: "", text: (v) => v || "chosen" },
    group: { label: "Group size k", values: () => ["", ...divisors(Number(chosen.ranks))], first: "", text: (v) => v || "chosen" },
    spread: { label: "Spread of compute times", values: () => ["0", "0.01", "0.02", "0.05", "0.1", "0.15", "0.2", "0.3"], first: "0", text: (v) => (v === "0" ? "none" : format.percent(Number(v), 0)) },
    slow: { label: "Rank 0 computes longer", values: () => ["1", "1.05", "1.1", "1.25", "1.5", "2", "3", "4"], first: "1", text: times },
  };
  const firstOf = (control) => (typeof control.first === "function" ? control.first() : control.first);
  const changes = ["bandwidth", "latency", "compute"];
  const direct = ["model", "cluster", "ranks", "batch", "precision", "theta", "eta", "group"];
  // k divides the ranks of the page, and not those of every point, which has more ranks than the baseline; a
  // curve has no stragglers.
  const ofOnePoint = ["group", "baseline", "spread", "slow-rank", "slow-node", "backup", "iterations", "seed"];
  // Draws of stragglers take time by ranks and iterations.
  const drawsOf = (ranks) => Math.max(20, Math.min(1000, Math.floor(200000 / ranks)));

  // The options of predict, in their order; `curve`: those of scale.
  function options({ curve = false } = {}) {
    const list = [];
    for (const name of direct) {
      if (name === "ranks" && curve) continue;
      const isAlways = ["model", "cluster", "ranks"].includes(name);
      if (isAlways || chosen[name] !== firstOf(controls[name])) list.push([name, chosen[name]]);
    }
    const what = changes.filter((name) => chosen[name] !== "1").map((name) => `${name}=${chosen[name]}`);
    if (what.length > 0) list.push(["what-if", what.join("+")]);
    if (curve) return [...list, ...others].filter(([name]) => !ofOnePoint.includes(name));
    if (chosen.spread !== "0") list.push(["spread", `normal:${chosen.spread}`]);
    if (chosen.slow !== "1") list.push(["slow-rank", `0=${chosen.slow}`]);
    const hasStragglers = chosen.spread !== "0" || chosen.slow !== "1";
    if (hasStragglers && !others.some(([name]) => name === "iterations")) list.push(["iterations", String(drawsOf(Number(chosen.ranks)))]);
    return [...list, ...others];
  }

  const queryOf = (list) => new URLSearchParams(list).toString();
  const quoted = (word) => (/^[\w.+,=:@%/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
  const commandOf = (list, name = "predict") => ["paceline", name, ...list.flatMap(([option, value]) => [`--${option}`, quoted(value)])].join(" ");

  // Reads the page's address.
  function readAddress() {
    const given = new URLSearchParams(location.search);
    const take = (name) => {
      const value = given.get(name);
      given.delete(name);
      return value;
    };
    for (const name of ["model", "cluster"]) {
      const value = take(name);
      chosen[name] = controls[name].list().some((entry) => entry.name === value) ? value : firstOf(controls[name]);
    }
    for (const name of direct.slice(2)) chosen[name] = take(name) ?? firstOf(controls[name]);
    for (const name of changes) chosen[name] = "1";
    for (const change of (take("what-if") || "").split("+")) {
      const [name, value] = change.split("=");
      if (changes.includes(name) && Number(value) > 0) chosen[name] = value;
    }
    chosen.spread = "0";
    chosen.slow = "1";
    const spread = /^normal:([\d.]+)$/.exec(given.get("spread") || "");
    const slow = /^0=([\d.]+)$/.exec(given.get("slow-rank") || "");
    if (spread) { chosen.spread = spread[1]; given.delete("spread"); }
    if (slow) { chosen.slow = slow[1]; given.delete("slow-rank"); }
    // The page chooses how many iterations are drawn, unless there are other stragglers.
    if (spread || slow) given.delete("iterations");
    others = [...given.entries()];
  }

  // Browsers allow few changes of the address in a second.
  let addressTimer = null;
  function writeAddress() {
    clearTimeout(addressTimer);
    addressTimer = setTimeout(() => history.replaceState(null, "", `?${queryOf(options())}`), 250);
  }

  // The values of a slider, with the one that is chosen among them.
  function valuesOf(name) {
    const values = controls[name].values();
    if (!values.includes(chosen[name])) {
      values.push(chosen[name]);
      values.sort((a, b) => (a === "") - (b === "") || Number.parseFloat(a) - Number.parseFloat(b));
      if (values.includes("")) values.unshift(...values.splice(values.indexOf(""), 1));
    }
    return values;
  }

  function listControl(name) {
    const { label, list } = controls[name];
    const select = html("select", { id: name, name, change: () => { chosen[name] = select.value; clamp(); forgetHeights(); changed(); } },
      list().map((entry) => html("option", { value: entry.name, title: entry.description }, entry.name)));
    const box = html("div", { class: "control" }, html("label", { for: name }, label), select);
    return { box, show() { select.value = chosen[name]; select.title = list().find((entry) => entry.name === chosen[name])?.description || ""; } };
  }

  function sliderControl(name) {
    const control = controls[name];
    const { label, text = (v) => v, most } = control;
    let values = [];
    const slider = html("input", { type: "range", id: name, name, min: "0", step: "1", input: () => {
      const index = Number(slider.value);
      moved = { name, by: Math.sign(index - values.indexOf(chosen[name])) };
      chosen[name] = values[index];
      clamp();
      changed();
    } });
    const number = most && html("input", { type: "number", min: "1", step: "1", "aria-label": `${label}, as a number`, change: () => {
      const value = Math.round(Number(number.value));
      chosen[name] = String(Math.max(1, Math.min(most(), Number.isFinite(value) ? value : 1)));
      clamp();
      changed();
    } });
    const shown = most ? number : html("output", { for: name });
    const box = html("div", { class: "control" }, html("div", {}, html("label", { for: name }, label), shown), slider);
    return { box, show() {
      values = valuesOf(name);
      // Only what differs is set: each change lays the control out.
      const set = (element, property, value) => { if (element[property] !== value) element[property] = value; };
      set(slider, "max", String(values.length - 1));
      set(slider, "value", String(values.indexOf(chosen[name])));
      set(slider, "ariaValueText", text(chosen[name]));
      if (most) {
        set(number, "value", chosen[name]);
        set(number, "max", String(most()));
      } else {
        set(shown, "textContent", text(chosen[name]));
      }
      box.classList.toggle("changed", chosen[name] !== firstOf(control));
    } };
  }

  // Keeps what depends on other choices possible.
  function clamp() {
    chosen.ranks = String(Math.min(Number(chosen.ranks), clusterOf().ranks));
    if (chosen.group && Number(chosen.ranks) % Number(chosen.group) !== 0) chosen.group = "";
  }

  const widgets = {};
  const command = html("code", { class: "command", id: "command" });
  const state = html("p", { class: "state", role: "status" });
  const problem = html("p", { class: "warning problem", role: "alert", hidden: true });
  const results = (attributes) => ({ box: html("div", { class: "results below", ...attributes }), part: view.part() });
  const now = results({ id: "prediction", class: "results" });
  const curve = results({ id: "curve" });
  curve.box.classList.add("pending");
  curve.box.append(dom.section("Scaling", "The curve over ranks is being predicted."));
  const timelines = results({ id: "timeline" });
  const basis = results({});
  const heading = { title: html("h1", {}, "What if"), facts: html("p", { class: "facts" }) };

  function changed() {
    for (const widget of Object.values(widgets)) widget.show();
    command.textContent = commandOf(options());
    document.documentElement.dataset.wanted = queryOf(options());
    document.documentElement.dataset.wantedCurve = queryOf(options({ curve: true }));
    writeAddress();
    if (ahead && ahead.query !== queryOf(options())) ahead.asked.abort();
    follow();
  }

  // Makes a part of the page what `make` says. What is alike stays where it is (dom.become), and the focus
  // stays on what is put in anew.
  function put({ box, part }, make) {
    const content = part.make(make).flat().filter(Boolean);
    const stops = () => [...box.querySelectorAll("button, summary, [tabindex]")];
    const focused = box.contains(document.activeElement) ? stops().indexOf(document.activeElement) : -1;
    dom.become(box, content);
    if (focused >= 0 && !box.contains(document.activeElement)) stops()[focused]?.focus({ preventScroll: true });
    box.classList.remove("stale");
  }

  // What follows the sliders keeps the height that it has had, so that nothing below it moves up and down
  // with each answer. Another width, network or cluster begins anew, and so does a table that is closed.
  const widths = new WeakMap();
  const heights = new ResizeObserver((entries) => {
    for (const { target, contentRect: { width, height } } of entries) {
      if (view.printing()) continue;
      const isSameWidth = widths.get(target) === width;
      widths.set(target, width);
      target.style.minHeight = isSameWidth ? `${height}px` : "";
    }
  });
  const kept = () => [heading.facts, ...[now, curve, timelines, basis].map(({ box }) => box)];
  const forgetHeights = () => kept().forEach((element) => { element.style.minHeight = ""; });

  // What is shown stays until the answer comes; it is marked as old where that takes long enough to be seen.
  const patience = 150; // ms
  function whileWaiting(parts, answer, signal) {
    const timer = setTimeout(() => signal?.aborted || parts.forEach(({ box }) => box.classList.add("stale")), patience);
    return answer.finally(() => clearTimeout(timer));
  }

  async function fetched(path, list, signal) {
    for (;;) {
      const response = await fetch(`${path}?${queryOf(list)}`, { signal });
      const document = await response.json();
      if (response.ok) return document;
      if (response.status !== 503 || !response.headers.has("Retry-After") || !document.error.includes("again")) throw new Error(document.error);
      await new Promise((done) => setTimeout(done, 500));
    }
  }

  // One question at a time: the newest follows the one that is on its way, and those between are never
  // asked. The curve takes longer, and is given up where something newer is wanted.
  let isBusy = false;
  let isWanted = false;
  let moved = null; // the slider that was moved last, and in which direction
  let ahead = null; // the question that was asked before anybody wanted its answer
  let curveAsked = null; // the curve that is on its way, as {query, stop}
  let curveShown = "";
  const shows = (query) => { document.documentElement.dataset.shownCurve = query; };

  async function follow() {
    isWanted = true;
    if (isBusy) return;
    isBusy = true;
    while (isWanted) {
      isWanted = false;
      const began = performance.now();
      try {
        const list = options();
        dropOtherCurves(queryOf(options({ curve: true })));
        // The server answers both with one prediction.
        const both = Promise.all([fetched("predict", list), fetched("timeline", list)]);
        const [result, trace] = await whileWaiting([now, timelines, basis], both);
        showPrediction(result, trace);
        problem.hidden = true;
        state.textContent = `predicted and drawn in ${format.time((performance.now() - began) / 1000, 2)}`;
        document.documentElement.dataset.shown = queryOf(list);
      } catch (error) {
        for (const part of [now, timelines, basis]) part.box.classList.add("stale");
        problem.textContent = error.message;
        problem.hidden = false;
      }
    }
    isBusy = false;
    askAhead();
    followCurve();
  }

  // Asks for where a slider gets to if it goes on as it went last, so that the server has that answer
  // by then. Nobody waits for it.
  function askAhead() {
    if (!moved || moved.by === 0) return;
    const values = valuesOf(moved.name);
    const next = values[values.indexOf(chosen[moved.name]) + moved.by];
    if (next === undefined) return;
    const here = { ...chosen };
    chosen[moved.name] = next;
    clamp();
    const query = queryOf(options());
    Object.assign(chosen, here);
    ahead = { query, asked: new AbortController() };
    fetch(`predict?${query}`, { signal: ahead.asked.signal, priority: "low" }).then((response) => response.arrayBuffer()).catch(() => {});
  }

  // Gives up the curve that is on its way, unless it is the one of `query`.
  function dropOtherCurves(query) {
    if (!curveAsked || curveAsked.query === query) return;
    curveAsked.stop.abort();
    curveAsked = null;
  }

  async function followCurve() {
    const list = options({ curve: true });
    const query = queryOf(list);
    dropOtherCurves(query);
    if (curveAsked) return;
    if (query === curveShown) {
      curve.box.classList.remove("stale");
      shows(query);
      return;
    }
    const asked = curveAsked = { query, stop: new AbortController() };
    try {
      const result = await whileWaiting([curve], fetched("scale", list, asked.stop.signal), asked.stop.signal);
      if (asked !== curveAsked) return;
      curveShown = query;
      showCurve(result, list);
    } catch (error) {
      if (asked !== curveAsked) return;
      curveShown = "";
      curve.box.classList.remove("stale");
      curve.box.replaceChildren(html("p", { class: "warning" }, `No curve: ${error.message}`));
    }
    curveAsked = null;
    shows(query);
  }

  function showPrediction(result, trace) {
    let report = null;
    put(now, () => {
      report = reports[result.schema](result, {});
      return [sections.headline(report.headline), ...report.sections.slice(0, -1)];
    });
    put(basis, () => report.sections.slice(-1)); // what the numbers rest on
    put(timelines, () => sections.timelines(trace, `${result.best.name}, predicted.`));
    timelines.part.draw(widths.get(timelines.box));
    heading.title.textContent = report.title;
    heading.facts.textContent = report.facts.join(" · ");
    document.title = `Paceline: ${report.title}`;
  }

  function showCurve(result, list) {
    put(curve, () => [...reports[result.schema](result, {}).curve,
      html("p", { class: "note same" }, "Curves are without stragglers and with k as chosen for each number of ranks: ", html("code", {}, commandOf(list, "scale")))]);
    curve.box.classList.remove("pending");
    curve.part.draw();
  }

  const copy = (button) =>
    navigator.clipboard?.writeText(command.textContent).then(() => { button.textContent = "copied"; setTimeout(() => { button.textContent = "Copy as command"; }, 1500); }, () => {});

  function reset() {
    for (const [name, control] of Object.entries(controls)) if (!["model", "cluster"].includes(name)) chosen[name] = firstOf(control);
    others = [];
    changed();
  }

  async function begin() {
    choices = await (await fetch("choices")).json();
    readAddress();
    clamp();
    for (const [name, control] of Object.entries(controls)) widgets[name] = control.list ? listControl(name) : sliderControl(name);
    document.getElementById("page").append(
      html("header", {},
        html("div", {}, html("p", { class: "kind" }, "Paceline · What if"), heading.title, heading.facts),
        html("div", { class: "tools" }, dom.button("Light / dark", "change between the light and the dark theme", view.toggleTheme),
          dom.button("Print", "print, or save as PDF", () => print()))),
      html("form", { class: "sliders", submit: (event) => event.preventDefault() },
        Object.values(widgets).map((widget) => widget.box),
        problem, state, html("div", { class: "tools" }, dom.button("Reset", "set all but network and cluster to what the command takes by default", reset))),
      html("div", {}, now.box, curve.box, timelines.box, basis.box,
        dom.section("The same in a terminal", null, command,
          html("div", { class: "tools" }, dom.button("Copy as command", "copy the command that prints these predictions", (event) => copy(event.target)))),
        html("footer", {}, html("p", { id: "unprinted" }),
          html("p", {}, "All times are predicted, by this machine; nothing is sent elsewhere. Charts of lines are drawn by uPlot (MIT license, © 2022 Leon Sorokin)."))));
    view.start();
    for (const element of kept()) {
      heights.observe(element);
      element.addEventListener("toggle", (event) => { if (!event.target.open) element.style.minHeight = ""; }, true);
    }
    addEventListener("popstate", () => { readAddress(); clamp(); changed(); });
    changed();
  }

  begin();
}
