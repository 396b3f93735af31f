// Buckets over layers: the backward pass climbs from the last layer to the first, and each bucket spans the
// layers whose gradients it carries, from when they are ready to when their sum is there.
const buckets = (() => {
  // The buckets of one process in its first iteration, with when they were ready and travelled.
  function rowsOf(trace, process = 0) {
    const job = trace.otherData.timelines[process];
    const events = trace.traceEvents.filter((e) => e.ph === "X" && e.pid === process);
    const first = Math.min(...events.filter((e) => e.cat === "backward").map((e) => e.args.iteration));
    const once = events.filter((e) => e.args.iteration === first);
    const backward = new Map(once.filter((e) => e.cat === "backward").map((e) => [e.args.index, e]));
    const origin = Math.min(...once.filter((e) => e.cat === "forward").map((e) => e.ts));
    let last = job.layers.length - 1;
    const rows = job.buckets.map((bucket, index) => {
      const own = once.filter((e) => e.args.bucket === index && e.cat !== "update" && e.cat !== "wait");
      const done = backward.get(bucket.ready_after);
      const row = {
        index, ...bucket, from: bucket.ready_after, to: Math.max(bucket.ready_after, last),
        ready: done ? (done.ts + done.dur - origin) / 1e6 : null,
        start: own.length ? (Math.min(...own.map((e) => e.ts)) - origin) / 1e6 : null,
        end: own.length ? (Math.max(...own.map((e) => e.ts + e.dur)) - origin) / 1e6 : null,
      };
      last = Math.min(last, bucket.ready_after - 1);
      return row;
    });
    const layers = [...backward.values()].map((e) => ({ index: e.args.index, start: (e.ts - origin) / 1e6, end: (e.ts + e.dur - origin) / 1e6 }));
    const updates = once.filter((e) => e.cat === "update").map((e) => (e.ts + e.dur - origin) / 1e6);
    return { job, rows, layers, end: Math.max(...rows.map((r) => r.end ?? 0), ...layers.map((l) => l.end), ...updates, 0) };
  }

  function chart(trace, process = 0, title = null) {
    const { job, rows, layers, end } = rowsOf(trace, process);
    const area = dom.html("div", { class: "lanes" });
    const from = Math.min(...layers.map((l) => l.start), ...rows.map((r) => r.ready ?? Infinity));
    const margin = { left: 132, bottom: 20, top: 4 };

    function draw() {
      if (area.clientWidth === 0) return;
      const height = view.printing() ? 150 : 240;
      const width = area.clientWidth - margin.left - 8;
      const x = (t) => margin.left + ((t - from) / (end - from)) * width;
      const row = (height - margin.top - margin.bottom) / job.layers.length;
      const y = (layer) => margin.top + layer * row;
      const content = [dom.svg("rect", { class: "floor", x: margin.left, y: margin.top, width, height: height - margin.top - margin.bottom })];
      for (const bucket of rows) {
        if (bucket.start === null) continue;
        const box = { y: y(bucket.from), height: Math.max(2, y(bucket.to + 1) - y(bucket.from) - 0.6) };
        const ready = bucket.ready ?? bucket.start;
        const title = dom.svg("title", {}, `bucket ${bucket.index}: ${format.bytes(bucket.bytes)}, ready ${format.time(ready)}, ${format.time(bucket.start)} to ${format.time(bucket.end)}`);
        if (bucket.start > ready) content.push(dom.svg("rect", { class: "fill-wait", x: x(ready), width: x(bucket.start) - x(ready), ...box }));
        content.push(dom.svg("rect", { class: "fill-all-reduce", x: x(bucket.start), width: Math.max(1, x(bucket.end) - x(bucket.start)), ...box }, title));
        const text = `${bucket.index}: ${format.bytes(bucket.bytes)}`;
        const isFlush = x(bucket.end) + 6.4 * text.length + 8 > margin.left + width;
        if (box.height > 9) content.push(dom.svg("text", { x: isFlush ? x(ready) - 4 : x(bucket.end) + 4, "text-anchor": isFlush ? "end" : "start", y: box.y + box.height / 2 + 4 }, text));
      }
      for (const layer of layers)
        content.push(dom.svg("rect", { class: "fill-backward", x: x(layer.start), width: Math.max(1, x(layer.end) - x(layer.start)), y: y(layer.index), height: Math.max(1.4, row) }));
      const every = Math.max(1, Math.ceil(14 / row));
      job.layers.forEach((layer, i) => {
        if (i % every === 0) content.push(dom.svg("text", { x: 0, y: y(i) + Math.min(row, 12) / 2 + 4 }, layer.name.length > 20 ? `${layer.name.slice(0, 19)}…` : layer.name));
      });
      for (const tick of format.ticks(from, end, width / 95)) {
        content.push(dom.svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: height - margin.bottom, y2: height - margin.bottom + 4 }),
          dom.svg("text", { x: x(tick), y: height - 4, "text-anchor": x(tick) > margin.left + width - 24 ? "end" : "middle" }, format.time(tick)));
      }
      area.replaceChildren(dom.svg("svg", { height, role: "img", "aria-label": `${rows.length} buckets over ${job.layers.length} layers, from ${format.time(from)} to ${format.time(end)} of the iteration` }, content));
    }

    view.drawn(draw);
    return dom.html("figure", {}, title && dom.html("figcaption", {}, title), area, bars.legend([["backward", "backward pass of a layer"], ["wait", "bucket waits for its turn"], ["all-reduce", "bucket travels"]]));
  }

  function table(trace, process = 0) {
    const { rows } = rowsOf(trace, process);
    return dom.table({ caption: "Buckets", rows, columns: [
      { title: "bucket", text: (r) => String(r.index) },
      { title: "first gradient", text: (r) => r.first_gradient },
      { title: "gradients", value: (r) => r.gradients, text: (r) => String(r.gradients) },
      { title: "size", value: (r) => r.bytes, text: (r) => format.bytes(r.bytes) },
      { title: "all-reduce", text: (r) => r.schedule },
      { title: "ready", value: (r) => r.ready, text: (r) => format.time(r.ready) },
      { title: "starts", value: (r) => r.start, text: (r) => format.time(r.start) },
      { title: "ends", value: (r) => r.end, text: (r) => format.time(r.end) },
    ] });
  }

  return { chart, table };
})();
