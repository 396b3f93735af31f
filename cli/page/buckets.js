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

  // Shortens a name that has no room. It leaves out the beginning that the name above has, too, because
  // imported names differ only behind it ("encoder.layer.12.attention").
  function brief(name, above, room) {
    if (dom.textWidth(name) <= room) return name;
    let same = 0;
    while (same < name.length && name[same] === above[same]) ++same;
    const from = name.lastIndexOf(".", Math.max(0, same - 1)) + 1;
    return dom.shortened(from > 0 && same > 0 ? `…${name.slice(from)}` : name, room);
  }

  function chart(trace, process = 0, title = null) {
    const { job, rows, layers, end } = rowsOf(trace, process);
    const area = dom.html("div", { class: "lanes still", pointermove: onHover });
    const from = Math.min(...layers.map((l) => l.start), ...rows.map((r) => r.ready ?? Infinity));
    const longest = Math.max(...job.layers.map((layer) => dom.textWidth(layer.name))) + 8;
    const box = (x, y, width, height) => `M${x.toFixed(2)} ${y.toFixed(2)}h${width.toFixed(2)}v${height.toFixed(2)}h${-width.toFixed(2)}z`;

    let drawn = []; // boxes of buckets

    // The number and size of a bucket, on the side where there is room, or nothing.
    function sizeOf(bucket, ready, end, y, least, most) {
      const text = `${bucket.index}: ${format.bytes(bucket.bytes)}`;
      const wide = dom.textWidth(text) + 8;
      const isFlush = end + wide > most;
      if (isFlush && ready - wide < least) return null;
      return dom.svg("text", { class: "beside", x: isFlush ? ready - 4 : end + 4, "text-anchor": isFlush ? "end" : "start", y }, text);
    }

    function onHover(event) {
      const at = area.getBoundingClientRect();
      const [px, py] = [event.clientX - at.left, event.clientY - at.top];
      const bucket = drawn.find((one) => px >= one.left && px <= one.right && py >= one.top && py <= one.bottom)?.bucket;
      area.title = bucket ? `bucket ${bucket.index}: ${format.bytes(bucket.bytes)}, ready ${format.time(bucket.ready ?? bucket.start)}, ${format.time(bucket.start)} to ${format.time(bucket.end)}` : "";
    }

    function draw(full) {
      const height = view.printing() ? 150 : 240;
      const margin = { left: Math.ceil(Math.min(longest, 0.32 * full, 200)), bottom: 20, top: 4 };
      const width = full - margin.left - 8;
      const x = (t) => margin.left + ((t - from) / (end - from)) * width;
      const row = (height - margin.top - margin.bottom) / job.layers.length;
      const y = (layer) => margin.top + layer * row;
      const content = [dom.svg("rect", { class: "floor", x: margin.left, y: margin.top, width, height: height - margin.top - margin.bottom })];
      const paths = { wait: "", "all-reduce": "", backward: "" };
      const sizes = [];
      drawn = rows.filter((bucket) => bucket.start !== null).map((bucket) => {
        const top = y(bucket.from);
        const high = Math.max(2, y(bucket.to + 1) - top - 0.6);
        const [ready, start, end] = [bucket.ready ?? bucket.start, bucket.start, bucket.end].map(x);
        if (start > ready) paths.wait += box(ready, top, start - ready, high);
        paths["all-reduce"] += box(start, top, Math.max(1, end - start), high);
        if (high > 10) sizes.push(sizeOf(bucket, ready, end, top + high / 2 + 4, margin.left, margin.left + width));
        return { bucket, left: ready, right: Math.max(end, start + 1), top, bottom: top + high };
      });
      for (const layer of layers) paths.backward += box(x(layer.start), y(layer.index), Math.max(1, x(layer.end) - x(layer.start)), Math.max(1.4, row));
      content.push(Object.entries(paths).map(([kind, d]) => dom.svg("path", { class: `fill-${kind}`, d })), sizes);
      const every = Math.max(1, Math.ceil(14 / row));
      job.layers.forEach((layer, i) => {
        if (i % every > 0) return;
        const name = brief(layer.name, job.layers[i - every]?.name || "", margin.left - 8);
        content.push(dom.svg("text", { x: 0, y: y(i) + Math.min(row, 12) / 2 + 4 }, name));
      });
      const write = format.timesUpTo(end);
      for (const tick of format.ticks(from, end, width / 95)) {
        content.push(dom.svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: height - margin.bottom, y2: height - margin.bottom + 4 }),
          dom.svg("text", { x: x(tick), y: height - 4, "text-anchor": x(tick) > margin.left + width - 24 ? "end" : x(tick) < margin.left + 24 ? "start" : "middle" }, write(tick)));
      }
      area.replaceChildren(dom.svg("svg", { height, role: "img", "aria-label": `${rows.length} buckets over ${job.layers.length} layers, from ${format.time(from)} to ${format.time(end)} of the iteration` }, content));
    }

    view.drawn(area, draw);
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
