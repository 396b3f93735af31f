// Tasks by resource over time: a document paceline.timeline/1 (Chrome trace events) as lanes that zoom and
// pan. Where computation stands still while gradients travel, its lane is hatched: exposed communication.
const timeline = (() => {
  const kinds = {
    forward: ["forward", "forward"], backward: ["backward", "backward"], update: ["update", "update"],
    "all-reduce": ["all-reduce", "all-reduce"], "reduce-scatter": ["all-reduce", "reduce-scatter"],
    "all-gather": ["all-reduce", "all-gather"], exchange: ["all-reduce", "exchange"], send: ["all-reduce", "send"], negotiation: ["wait", "negotiation"], wait: ["wait", "wait"],
    cast: ["copy", "cast, pack, unpack"], pack: ["copy", "cast, pack, unpack"], unpack: ["copy", "cast, pack, unpack"],
    read: ["input", "input"], decode: ["input", "input"], "host to device": ["input", "input"],
  };
  const kindOf = (event) => kinds[event.cat] || ["factor", "factors, inverses"];

  // The document as lanes: {name, process, tid, events: [{name, cat, start, end, args}]}, in seconds.
  function lanesOf(trace) {
    const lanes = new Map();
    const names = new Map();
    for (const event of trace.traceEvents) {
      const key = `${event.pid}/${event.tid}`;
      if (event.ph === "M" && event.name === "thread_name") names.set(key, event.args.name);
      if (event.ph !== "X") continue;
      if (!lanes.has(key)) lanes.set(key, { process: event.pid, tid: event.tid, events: [] });
      lanes.get(key).events.push({ name: event.name, cat: event.cat, args: event.args, start: event.ts / 1e6, end: (event.ts + event.dur) / 1e6 });
    }
    const sorted = [...lanes.entries()].sort(([, a], [, b]) => a.process - b.process || a.tid - b.tid);
    return sorted.map(([key, lane]) => {
      lane.events.sort((a, b) => a.start - b.start || a.end - b.end);
      return { ...lane, name: names.get(key) || `track ${lane.tid}` };
    });
  }

  const isCompute = (lane) => lane.tid === 4;
  const isCommunication = (lane) => lane.tid >= 5;

  // When each iteration of a process begins: its first forward pass.
  function iterationsOf(lanes, process) {
    const starts = new Map();
    for (const lane of lanes) {
      if (lane.process !== process || !isCompute(lane)) continue;
      for (const { args, start } of lane.events) starts.set(args.iteration, Math.min(starts.get(args.iteration) ?? Infinity, start));
    }
    return [...starts.entries()].sort((a, b) => a[0] - b[0]).map(([iteration, start]) => ({ iteration, start }));
  }

  // How long each iteration of a process takes: from its first task of computation to that of the next one.
  function iterationTimes(trace, process) {
    const starts = iterationsOf(lanesOf(trace), process);
    return starts.slice(1).map(({ start }, i) => ({ iteration: starts[i].iteration, time: start - starts[i].start }));
  }

  // Where the compute lane of a process stands still while a bucket is on its way.
  function exposedOf(lanes, process) {
    const compute = lanes.find((lane) => lane.process === process && isCompute(lane));
    if (!compute) return [];
    const travels = lanes.filter((lane) => lane.process === process && isCommunication(lane)).flatMap((lane) => lane.events);
    const idle = [];
    let end = compute.events[0]?.end ?? 0;
    for (const event of compute.events) {
      if (event.start > end) idle.push({ start: end, end: event.start });
      end = Math.max(end, event.end);
    }
    return idle.filter((gap) => travels.some((t) => t.start < gap.end && t.end > gap.start));
  }

  // Neighbours of one kind that are too short to be seen alone, as one.
  function visible(events, from, to, pixel) {
    const kept = [];
    for (const event of events) {
      if (event.end < from || event.start > to) continue;
      const last = kept.at(-1);
      const isShort = event.end - event.start < 0.7 * pixel;
      if (isShort && last?.isMerged && last.kind === kindOf(event)[0] && event.start - last.end < 0.7 * pixel) {
        last.end = event.end;
        ++last.count;
      } else {
        kept.push({ start: event.start, end: event.end, kind: kindOf(event)[0], event, count: 1, isMerged: isShort });
      }
    }
    return kept;
  }

  function label(event) {
    const { args } = event;
    if (args.bucket !== undefined) return event.cat === "all-reduce" ? `bucket ${args.bucket}, ${format.bytes(args.bytes)}` : `${event.cat} ${args.bucket}`;
    return args.layer || event.name;
  }

  function described(event) {
    const { args } = event;
    const facts = [`${event.name}: ${format.time(event.end - event.start)}, from ${format.time(event.start)}`, `iteration ${args.iteration}`];
    if (args.kind) facts.push(args.kind);
    if (args.bytes !== undefined) facts.push(`${format.bytes(args.bytes)} of ${args.gradients} gradients from ${args.first_gradient}`, `${args.schedule}, ${args.wire_type}`);
    return `${facts.join("; ")} (${args.provenance})`;
  }

  // All of one timeline; of a run and its prediction, the iterations that the prediction has.
  function firstView(lanes, processes, end) {
    if (processes.length === 1) return [0, end];
    const predicted = processes.findIndex((process) => process.provenance === "predicted");
    const events = lanes.filter((lane) => lane.process === predicted && lane.tid >= 4).flatMap((lane) => lane.events);
    if (events.length === 0) return [0, end];
    const from = Math.min(...events.map((event) => event.start));
    const longest = Math.max(...processes.map((process) => process.period_us / 1e6));
    const to = Math.max(...events.map((event) => event.end), from + 1.2 * longest);
    return [from, Math.min(end, to)];
  }

  // How high lanes of communication streams are, and how far apart.
  const thickness = (streams) => (streams <= 4 ? { size: 24, gap: 3 } : streams <= 10 ? { size: 12, gap: 2 } : { size: Math.max(1, 140 / streams), gap: 0 });

  function chart(trace) {
    const lanes = lanesOf(trace);
    const processes = trace.otherData.timelines;
    const end = Math.max(...lanes.flatMap((lane) => lane.events.map((event) => event.end)), 1e-9);
    let [from, to] = firstView(lanes, processes, end);
    let chosen = null; // {lane, index}
    const readout = dom.html("p", { class: "readout", "aria-live": "polite" }, "Point at a task to read it, or choose one with the arrow keys.");
    const area = dom.html("div", { class: "lanes", tabindex: "0", role: "group",
      "aria-label": "Timeline by resource. Left and right choose a task, up and down a lane, plus and minus zoom, 0 shows all.",
      keydown: onKey, wheel: onWheel, pointerdown: onDown, dblclick: () => show(0, end), pointermove: onHover });

    const rows = [];
    let height = 0;
    processes.forEach((process, pid) => {
      if (processes.length > 1) {
        rows.push({ group: `${process.provenance}: ${process.strategy}, ${format.time(process.period_us / 1e6)} an iteration${process.provenance === "measured" ? " on average" : ""}`, y: height, height: 17 });
        height += 17;
      }
      const own = lanes.filter((l) => l.process === pid);
      const streams = own.filter(isCommunication).length;
      for (const lane of own) {
        const { size, gap } = isCompute(lane) ? { size: 24, gap: 3 } : isCommunication(lane) ? thickness(streams) : { size: 12, gap: 3 };
        // Streams that are too thin for names of their own have one together.
        const isFirst = own.find(isCommunication) === lane;
        const name = !isCommunication(lane) || size > 10 ? lane.name : isFirst ? `${streams} streams` : "";
        rows.push({ lane, name, y: height, height: size });
        height += size + gap;
      }
    });
    const laneRows = rows.filter((row) => row.lane);

    let full = 0; // width with the names of lanes
    let left = 0; // width of these
    const width = () => Math.max(60, full - left);
    const x = (time) => left + ((time - from) / (to - from)) * width();
    const timeAt = (px) => from + ((px - left) / width()) * (to - from);

    function show(a, b) {
      const least = Math.max(end * 1e-6, 1e-9);
      const span = Math.min(end, Math.max(least, b - a));
      from = Math.max(0, Math.min(end - span, a));
      to = from + span;
      draw();
    }
    const zoom = (factor, at = (from + to) / 2) => show(at - (at - from) / factor, at + (to - at) / factor);

    // Tasks of one kind are one path: a page has far fewer elements than a timeline has tasks.
    function drawLane({ lane, y, height: size }) {
      const paths = new Map();
      const names = [];
      for (const one of visible(lane.events, from, to, (to - from) / width())) {
        const [a, b] = [Math.max(left, x(one.start)), Math.min(left + width(), x(one.end))];
        if (b < left || a > left + width()) continue;
        const wide = Math.max(0.6, b - a - (b - a > 3 ? 0.6 : 0));
        paths.set(one.kind, `${paths.get(one.kind) || ""}M${a.toFixed(2)} ${y}h${wide.toFixed(2)}v${size}h${-wide.toFixed(2)}z`);
        const text = one.count === 1 ? label(one.event) : "";
        if (size > 20 && text && b - a > 14 && b - a > dom.textWidth(text) + 8)
          names.push(dom.svg("text", { class: `task on-${one.kind}`, x: a + 4, y: y + size / 2 + 4 }, text));
      }
      const parts = [dom.svg("rect", { class: "floor", x: left, y, width: width(), height: size }),
        [...paths].map(([kind, d]) => dom.svg("path", { class: `fill-${kind}`, d }))];
      if (isCompute(lane)) {
        for (const gap of exposedOf(lanes, lane.process)) {
          const [a, b] = [Math.max(left, x(gap.start)), Math.min(left + width(), x(gap.end))];
          if (b > a) parts.push(dom.svg("rect", { fill: "url(#hatch)", x: a, y, width: Math.max(0.8, b - a), height: size }));
        }
      }
      return [parts, names];
    }

    function draw() {
      const floor = height + 2;
      const content = [dom.svg("defs", {}, dom.svg("pattern", { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        dom.svg("rect", { width: 2.4, height: 5, class: "fill-exposed" })))];
      for (const row of rows) {
        if (row.group) content.push(dom.svg("text", { class: "group", x: 0, y: row.y + 12 }, row.group));
        else content.push(drawLane(row), row.name && dom.svg("text", { x: 0, y: row.y + Math.max(row.height, 12) / 2 + 4 }, dom.shortened(row.name, left - 8)));
      }
      let named = -Infinity;
      for (const { start, iteration } of iterationsOf(lanes, 0)) {
        if (start < from || start > to) continue;
        content.push(dom.svg("line", { class: "iteration", x1: x(start), x2: x(start), y1: laneRows[0].y, y2: floor }));
        if (x(start) - named < 70) continue;
        named = x(start);
        content.push(dom.svg("text", { x: named + 3, y: floor + 25 }, `iteration ${iteration}`));
      }
      const write = format.timesUpTo(to);
      for (const tick of format.ticks(from, to, width() / 95)) {
        const isLast = x(tick) > left + width() - 24;
        content.push(dom.svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: height - 2, y2: floor + 3 }),
          dom.svg("text", { x: x(tick), y: floor + 14, "text-anchor": isLast ? "end" : tick === 0 ? "start" : "middle" }, write(tick)));
      }
      if (chosen) {
        const row = laneRows[chosen.lane];
        const event = row.lane.events[chosen.index];
        content.push(dom.svg("rect", { class: "chosen", x: Math.max(left, x(event.start)), y: row.y, width: Math.max(2, Math.min(x(event.end), left + width()) - Math.max(left, x(event.start))), height: row.height }));
      }
      const summary = `${lanes.length} resources over ${format.time(end)}`;
      area.replaceChildren(dom.svg("svg", { height: floor + 28, role: "img", "aria-label": summary }, content));
    }

    function choose(lane, index) {
      chosen = { lane, index };
      const event = laneRows[lane].lane.events[index];
      readout.textContent = `${laneRows[lane].lane.name}: ${described(event)}`;
      if (event.start < from || event.end > to) {
        const span = Math.max(to - from, event.end - event.start);
        show((event.start + event.end) / 2 - span / 2, (event.start + event.end) / 2 + span / 2);
      } else {
        draw();
      }
    }

    function onKey(event) {
      const computeLane = Math.max(0, laneRows.findIndex((row) => isCompute(row.lane)));
      const at = chosen || { lane: computeLane, index: -1 };
      const events = laneRows[at.lane].lane.events;
      const nearest = (lane) => {
        const time = chosen ? events[at.index].start : from;
        const found = laneRows[lane].lane.events.findIndex((e) => e.end >= time);
        return found < 0 ? laneRows[lane].lane.events.length - 1 : found;
      };
      const middle = chosen ? events[at.index].start : undefined;
      const acts = {
        ArrowRight: () => choose(at.lane, Math.min(events.length - 1, at.index + 1)),
        ArrowLeft: () => choose(at.lane, Math.max(0, at.index - 1)),
        ArrowUp: () => at.lane > 0 && choose(at.lane - 1, nearest(at.lane - 1)),
        ArrowDown: () => at.lane + 1 < laneRows.length && choose(at.lane + 1, nearest(at.lane + 1)),
        "+": () => zoom(1.6, middle), "=": () => zoom(1.6, middle), "-": () => zoom(1 / 1.6, middle), 0: () => show(0, end),
      };
      if (!(event.key in acts) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      acts[event.key]();
    }

    // The wheel scrolls the page; with Ctrl or Shift it zooms here.
    function onWheel(event) {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const moved = event.deltaY || event.deltaX;
      zoom(moved < 0 ? 1.25 : 0.8, timeAt(event.clientX - area.getBoundingClientRect().left));
    }

    function onDown(event) {
      if (event.button !== 0) return;
      const begin = { x: event.clientX, from, to };
      const move = (e) => {
        const shift = ((e.clientX - begin.x) / width()) * (begin.to - begin.from);
        show(begin.from - shift, begin.to - shift);
      };
      const up = () => {
        removeEventListener("pointermove", move);
        removeEventListener("pointerup", up);
        removeEventListener("pointercancel", up);
      };
      addEventListener("pointermove", move);
      addEventListener("pointerup", up);
      addEventListener("pointercancel", up);
    }

    function onHover(event) {
      const box = area.getBoundingClientRect();
      const time = timeAt(event.clientX - box.left);
      const y = event.clientY - box.top;
      const row = laneRows.find((r) => y >= r.y && y < r.y + r.height);
      const found = row?.lane.events.find((e) => e.start <= time && time <= e.end);
      if (found) readout.textContent = `${row.lane.name}: ${described(found)}`;
    }

    const namesWide = Math.max(...rows.map((row) => (row.name ? dom.textWidth(row.name) : 0))) + 10;
    view.drawn(area, (found) => {
      full = found;
      left = Math.min(namesWide, 0.4 * full);
      draw();
    });
    const shownKinds = [...new Map(lanes.flatMap((lane) => lane.events.map((e) => kindOf(e))).map((k) => [k[1], k])).values()];
    const hasExposed = processes.some((_, pid) => exposedOf(lanes, pid).length > 0);
    return dom.html("figure", {},
      dom.html("div", { class: "tools" },
        dom.button("+", "zoom in", () => zoom(1.6)), dom.button("−", "zoom out", () => zoom(1 / 1.6)),
        dom.button("◂", "earlier", () => show(from - (to - from) / 3, to - (to - from) / 3)),
        dom.button("▸", "later", () => show(from + (to - from) / 3, to + (to - from) / 3)),
        dom.button("all", "show all of it", () => show(0, end)),
        perfettoButtons(trace)),
      area, bars.legend([...shownKinds.map(([kind, text]) => [kind, text]), ...(hasExposed ? [["exposed", "hatched: computation waits for gradients"]] : [])]), readout);
  }

  // ui.perfetto.dev takes a trace from the window that opened it, once it answers PING. Nothing is sent
  // before the button is pressed, and the trace stays in the browser.
  function perfettoButtons(trace) {
    const origin = "https://ui.perfetto.dev";
    const text = () => JSON.stringify(trace);
    const title = trace.otherData.title || "Paceline";
    function open() {
      const other = window.open(origin);
      if (!other) return;
      const timer = setInterval(() => (other.closed ? stop() : other.postMessage("PING", origin)), 100);
      const stop = () => {
        clearInterval(timer);
        removeEventListener("message", answer);
      };
      const answer = (event) => {
        if (event.source !== other || event.origin !== origin || event.data !== "PONG") return;
        stop();
        other.postMessage({ perfetto: { buffer: new TextEncoder().encode(text()).buffer, title, fileName: "paceline.json" } }, origin);
      };
      addEventListener("message", answer);
    }
    function save() {
      const url = URL.createObjectURL(new Blob([text()], { type: "application/json" }));
      dom.html("a", { href: url, download: "paceline-timeline.json" }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    }
    return [dom.button("Open in Perfetto", "open this timeline in ui.perfetto.dev (needs a network)", open),
      dom.button("Save trace", "save this timeline as Chrome trace JSON", save)];
  }

  // What each kind of task takes in an iteration, by process: the mean over the whole iterations shown.
  function totals(trace) {
    const rows = [];
    trace.otherData.timelines.forEach((process, pid) => {
      const byKind = new Map();
      const events = trace.traceEvents.filter((event) => event.ph === "X" && event.pid === pid);
      const iterations = new Set(events.map((event) => event.args.iteration)).size;
      for (const event of events) {
        const sum = byKind.get(event.cat) || { process: process.provenance, kind: event.cat, tasks: 0, time: 0, period: process.period_us / 1e6 };
        sum.tasks += 1 / iterations;
        sum.time += event.dur / 1e6 / iterations;
        byKind.set(event.cat, sum);
      }
      rows.push(...byKind.values());
    });
    return rows;
  }

  function totalsTable(trace) {
    return dom.table({ caption: "Time of each kind of task in an iteration", rows: totals(trace), columns: [
      { title: "task", text: (r) => r.kind },
      { title: "", text: (r) => r.process },
      { title: "tasks", value: (r) => r.tasks, text: (r) => format.number(r.tasks) },
      { title: "time in an iteration", value: (r) => r.time, text: (r) => format.time(r.time) },
      { title: "of the iteration", value: (r) => r.time / r.period, text: (r) => format.percent(r.time / r.period) },
    ] });
  }

  function tasksTable(trace) {
    const lanes = lanesOf(trace);
    const rows = lanes.flatMap((lane) => lane.events.map((event) => ({ lane, event })));
    return dom.table({ caption: "All tasks", rows, columns: [
      { title: "task", text: (r) => r.event.name },
      { title: "resource", text: (r) => r.lane.name },
      { title: "iteration", value: (r) => r.event.args.iteration, text: (r) => String(r.event.args.iteration) },
      { title: "start", value: (r) => r.event.start, text: (r) => format.time(r.event.start) },
      { title: "time", value: (r) => r.event.end - r.event.start, text: (r) => format.time(r.event.end - r.event.start) },
      { title: "", text: (r) => r.event.args.provenance },
    ] });
  }

  return { chart, lanesOf, iterationTimes, totalsTable, tasksTable, isCompute, isCommunication };
})();
