// How single measurements are spread: a strip with one mark for each, or a histogram where there are many.
// Only what a document has is drawn.
const samples = (() => {
  const median = (values) => {
    const sorted = [...values].sort((a, b) => a - b);
    const half = sorted.length >> 1;
    return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  };

  // Ends of an axis that holds all values with some air, and not of a span that rounding alone makes.
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
  function axis({ width, x }, [from, to], height, write) {
    return format.ticks(from, to, width / 95).map((tick) => {
      const text = write(tick);
      const half = dom.textWidth(text) / 2;
      const at = Math.max(half, Math.min(width + margin.left + margin.right - half, x(tick)));
      return [dom.svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: height - margin.bottom, y2: height - margin.bottom + 4 }),
        dom.svg("text", { x: at, y: height - 4, "text-anchor": "middle" }, text)];
    });
  }

  // Lines across a drawing at values that have names: {name, value, kind}; names stand above, side by side.
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

  // One mark for each value: across by its value, down in the order of the list.
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
        axis(place, range, height, tickWriter(write, range))] };
    });
  }

  // A round width of bins: about as many as the root of the number of values.
  function binsOf(values, [from, to]) {
    const most = Math.max(8, Math.min(40, Math.ceil(Math.sqrt(values.length)) * 2));
    const edges = format.ticks(from, to, most);
    const step = edges.length > 1 ? edges[1] - edges[0] : to - from;
    const first = Math.floor(from / step);
    const counts = Array(Math.ceil(to / step) - first).fill(0);
    for (const value of values) ++counts[Math.max(0, Math.min(counts.length - 1, Math.floor(value / step) - first))];
    return counts.map((count, i) => ({ from: (first + i) * step, to: (first + i + 1) * step, count }));
  }

  function histogram({ title, note, values, marks, write }) {
    const bins = binsOf(values, rangeOf([...values, ...marks.map((mark) => mark.value)]));
    const range = [bins[0].from, bins.at(-1).to];
    const most = Math.max(...bins.map((bin) => bin.count));
    const label = `${title}: ${values.length} samples from ${write(Math.min(...values))} to ${write(Math.max(...values))}, median ${write(median(values))}`;
    return drawn(title, note, label, (full) => {
      const place = frame(full, range);
      const [top, height] = [18, view.printing() ? 90 : 150];
      const bottom = height - margin.bottom;
      const bars = bins.filter((bin) => bin.count > 0).map((bin) => {
        const high = Math.max(1, ((bottom - top) * bin.count) / most);
        return dom.svg("rect", { class: "fill-measured", x: place.x(bin.from) + 0.5, width: Math.max(1, place.x(bin.to) - place.x(bin.from) - 1), y: bottom - high, height: high },
          dom.svg("title", {}, `${write(bin.from)} to ${write(bin.to)}: ${bin.count}`));
      });
      return { height, content: [
        dom.svg("rect", { class: "floor", x: margin.left, y: top, width: place.width, height: bottom - top }),
        bars, markers(marks, place, top, bottom), axis(place, range, height, tickWriter(write, range))] };
    });
  }

  return { strip, histogram, median };
})();
