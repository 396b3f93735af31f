// How single measurements are spread: a strip with one mark for each, or a histogram where there are many.
// Only what a document has is drawn.
const samples = (() => {
  // The ends of an axis that holds all values with some air. A span that rounding alone makes is widened.
  function rangeOf(values) {
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const air = Math.max(0.08 * (most - least), 0.002 * Math.abs(most), 1e-12);
    return [least - air, most + air];
  }

  const margin = { left: 8, right: 8, bottom: 20 };
  const frame = (full, [from, to]) => {
    const width = Math.max(60, full - margin.left - margin.right);
    return { width, x: (value) => margin.left + ((value - from) / (to - from)) * width };
  };

  // The axis below, whose texts do not leave the drawing.
  function axis({ width, x }, ticks, height, write) {
    return ticks.map((tick) => {
      const text = write(tick);
      const half = dom.textWidth(text) / 2;
      const at = Math.max(half, Math.min(width + margin.left + margin.right - half, x(tick)));
      return [dom.svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: height - margin.bottom, y2: height - margin.bottom + 4 }),
        dom.svg("text", { x: at, y: height - 4, "text-anchor": "middle" }, text)];
    });
  }

  // Draws a line at each value that has a name ({name, value, kind}). The names stand above, side by side.
  function markers(list, { width, x }, top, bottom) {
    let free = 0;
    return [...list].sort((a, b) => a.value - b.value).map(({ name, value, kind }) => {
      const wide = dom.textWidth(name);
      const left = Math.max(free, Math.min(width + margin.left + margin.right - wide, x(value) - wide / 2));
      free = left + wide + 10;
      return [dom.svg("line", { class: `marker ${kind}`, x1: x(value), x2: x(value), y1: top, y2: bottom }),
        dom.svg("text", { x: left, y: top - 4 }, name)];
    });
  }

  function drawn(title, note, label, draw) {
    const area = dom.html("div", { class: "lanes still" });
    view.drawn(area, (full) => {
      const { height, content } = draw(full);
      area.replaceChildren(dom.svg("svg", { height, role: "img", "aria-label": label }, content));
    });
    return dom.html("figure", {}, dom.html("figcaption", {}, title, note && dom.html("span", {}, ` ${note}`)), area);
  }

  // Times of an axis are in one unit.
  const tickWriter = (write, [, to]) => (write === format.time ? format.timesUpTo(to) : write);

  // Draws one mark for each value: its place across is the value, and its place down is that in the list.
  function strip({ title, note, values, marks, write }) {
    const range = rangeOf([...values, ...marks.map((mark) => mark.value)]);
    const label = `${title}: ${values.length} from ${write(Math.min(...values))} to ${write(Math.max(...values))}; ${marks.map((mark) => `${mark.name} ${write(mark.value)}`).join(", ")}`;
    return drawn(title, note, label, (full) => {
      const place = frame(full, range);
      const [top, step] = [18, values.length > 40 ? 3 : 8];
      const bottom = top + step * values.length + 6;
      const height = bottom + margin.bottom;
      return { height, content: [
        dom.svg("rect", { class: "floor", x: margin.left, y: top, width: place.width, height: bottom - top }),
        markers(marks, place, top, bottom),
        values.map((value, i) => dom.svg("circle", { class: "sample", cx: place.x(value), cy: top + 7 + step * i, r: step > 4 ? 3.5 : 2 })),
        axis(place, format.ticks(...range, place.width / 95), height, tickWriter(write, range))] };
    });
  }

  const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];

  // Makes at most about forty bins from the least to the most, which are equally wide on a logarithmic axis.
  function binsOf(ratios) {
    const logs = ratios.map(Math.log10);
    const [least, most] = [Math.min(0, ...logs), Math.max(0, ...logs)];
    const step = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2].find((width) => (most - least) / width <= 40) || 0.5;
    const first = Math.floor(least / step + 1e-9) - 1;
    const counts = Array(Math.floor(most / step + 1e-9) - first + 2).fill(0);
    for (const log of logs) ++counts[Math.floor(log / step + 1e-9) - first];
    return counts.map((count, i) => ({ from: 10 ** ((first + i) * step), to: 10 ** ((first + i + 1) * step), count }));
  }

  const write = (ratio) => `${format.number(ratio, 3)} ×`;

  // Ticks that leave each other room; 1 is one of them.
  function ticksOf(from, to, place) {
    const kept = [1];
    const candidates = to < 3 * from ? format.ticks(from, to, 12)
      : [-3, -2, -1, 0, 1, 2, 3, 4, 5, 6].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power)).filter((tick) => tick >= from && tick <= to);
    for (const tick of [...candidates.filter((x) => /^1(0*|e.*)$/.test(String(x))), ...candidates])
      if (kept.every((other) => Math.abs(place.x(tick) - place.x(other)) > 64)) kept.push(tick);
    return kept;
  }

  // Counts samples by how many times the fitted time they took. The axis is logarithmic, since the slowest
  // samples of a busy machine take hundreds of times as long as the others.
  function histogram({ title, ratios }) {
    const sorted = [...ratios].sort((a, b) => a - b);
    const middle = quantile(sorted, 0.5);
    const bins = binsOf(ratios);
    const [from, to] = [bins[0].from, bins.at(-1).to];
    const most = Math.max(...bins.map((bin) => bin.count));
    const said = `median ${write(middle)}, from the 5th to the 95th percentile ${write(quantile(sorted, 0.05))} to ${write(quantile(sorted, 0.95))}`;
    return [
      drawn(title, `${format.number(ratios.length)} measured; ${said}`, `${title}: ${ratios.length} samples from ${write(sorted[0])} to ${write(sorted.at(-1))}, ${said}`, (full) => {
        const linear = frame(full, [Math.log(from), Math.log(to)]);
        const place = { width: linear.width, x: (ratio) => linear.x(Math.log(ratio)) };
        const [top, height] = [18, view.printing() ? 90 : 150];
        const bottom = height - margin.bottom;
        const boxes = bins.filter((bin) => bin.count > 0).map((bin) => {
          const high = Math.max(1, ((bottom - top) * bin.count) / most);
          return dom.svg("rect", { class: "fill-measured", x: place.x(bin.from) + 0.5, width: Math.max(1, place.x(bin.to) - place.x(bin.from) - 1), y: bottom - high, height: high },
            dom.svg("title", {}, `${write(bin.from)} to ${write(bin.to)}: ${bin.count}`));
        });
        return { height, content: [
          dom.svg("rect", { class: "floor", x: margin.left, y: top, width: place.width, height: bottom - top }),
          boxes, markers([{ name: "fit", value: 1, kind: "predicted" }], place, top, bottom), axis(place, ticksOf(from, to, place), height, write)] };
      }),
      dom.folded("Data: samples by how many times the fit they are", () => dom.table({ caption: `${title}: bins`, rows: bins.filter((bin) => bin.count > 0), columns: [
        { title: "from", value: (bin) => bin.from, text: (bin) => write(bin.from) },
        { title: "to", value: (bin) => bin.to, text: (bin) => write(bin.to) },
        { title: "samples", value: (bin) => bin.count, text: (bin) => format.number(bin.count) },
      ] })),
    ];
  }

  return { strip, histogram };
})();
