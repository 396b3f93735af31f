// Line charts over uPlot: lines with bands for their intervals, points that were measured, values of the
// point under the cursor in the legend, and the arrow keys for those who use no mouse.
const charts = (() => {
  const colors = 8;
  const dashes = [[], [6, 3], [2, 3]];
  const fontSize = () => (view.printing() ? 10 : 11); // uPlot reads whole numbers alone
  const nameHeight = 12; // of a name at the end of a line
  const style = (i) => ({ color: `s${i % colors}`, dash: dashes[Math.floor(i / colors) % dashes.length] });

  // Series that the user has shown or hidden, by the chart's title, for charts that are made again.
  const toggled = new Map();

  // The values that any of the series has on the x axis, and each series at them.
  function aligned(series) {
    const xs = [...new Set(series.flatMap((s) => s.points.map((p) => p.x)))].sort((a, b) => a - b);
    const at = new Map(xs.map((x, i) => [x, i]));
    const column = (s, pick) => {
      const values = xs.map(() => null);
      for (const point of s.points) values[at.get(point.x)] = pick(point);
      return values;
    };
    return { xs, column };
  }

  // Names at the right ends of lines, moved apart until none is upon another.
  function drawNames(u, series) {
    const ctx = u.ctx;
    const ratio = devicePixelRatio;
    const names = [];
    series.forEach((s, i) => {
      if (!u.series[i + 1].show || s.isPoints || s.points.length === 0) return;
      const last = s.points.at(-1);
      names.push({ s, x: u.valToPos(last.x, "x", true), y: u.valToPos(last.y, "y", true) });
    });
    names.sort((a, b) => a.y - b.y);
    const gap = nameHeight * ratio;
    for (let i = 1; i < names.length; ++i) names[i].y = Math.max(names[i].y, names[i - 1].y + gap);
    const bottom = u.bbox.top + u.bbox.height;
    for (let i = names.length - 1; i >= 0; --i)
      names[i].y = Math.min(names[i].y, i === names.length - 1 ? bottom : names[i + 1].y - gap);
    ctx.save();
    ctx.font = `${fontSize() * ratio}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    ctx.strokeStyle = view.color("paper");
    ctx.lineWidth = 3 * ratio;
    ctx.lineJoin = "round";
    for (const { s, x, y } of names) {
      ctx.fillStyle = view.color(s.style.color);
      const left = Math.max(x, u.bbox.left) + 6 * ratio;
      ctx.strokeText(s.name, left, y); // so that a line below it does not cross it
      ctx.fillText(s.name, left, y);
    }
    ctx.restore();
  }

  function drawBands(u, series, strong) {
    const ctx = u.ctx;
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    ctx.clip();
    series.forEach((s, i) => {
      if (!u.series[i + 1].show || s.name !== strong) return;
      const points = s.points.filter((p) => p.low !== undefined && p.high !== undefined);
      if (points.length < 1) return;
      ctx.fillStyle = view.color(s.style.color);
      ctx.strokeStyle = ctx.fillStyle;
      if (s.isPoints || points.length === 1) {
        ctx.globalAlpha = 0.8;
        ctx.lineWidth = 1.5 * devicePixelRatio;
        for (const p of points) {
          const x = u.valToPos(p.x, "x", true);
          ctx.beginPath();
          ctx.moveTo(x, u.valToPos(p.low, "y", true));
          ctx.lineTo(x, u.valToPos(p.high, "y", true));
          ctx.stroke();
        }
        return;
      }
      ctx.globalAlpha = 0.16;
      ctx.beginPath();
      points.forEach((p, k) => ctx[k ? "lineTo" : "moveTo"](u.valToPos(p.x, "x", true), u.valToPos(p.high, "y", true)));
      [...points].reverse().forEach((p) => ctx.lineTo(u.valToPos(p.x, "x", true), u.valToPos(p.low, "y", true)));
      ctx.fill();
    });
    ctx.restore();
  }

  // uPlot's scale of numbers that double, or of decades; or a linear one over what is shown.
  function scaleOf(axis, values) {
    if (axis.log) {
      const least = Math.min(...values);
      const most = Math.max(...values);
      const step = axis.log === 2 ? 1.12 : 1.25;
      return { distr: 3, log: axis.log, time: false, range: () => [least / step, most * step] };
    }
    return axis.range ? { time: false, range: axis.range } : { time: false };
  }

  function axisOf(axis, side, values) {
    const soft = view.color("soft");
    const line = view.color("line");
    const font = `${fontSize()}px system-ui, sans-serif`;
    const made = {
      side, label: axis.label, labelSize: side === 2 ? 18 : 20, labelGap: 2, size: side === 2 ? 26 : axis.size || 58, gap: 4,
      stroke: soft, font, labelFont: font,
      grid: { stroke: line, width: 0.6 }, ticks: { stroke: line, width: 0.6, size: 4 },
      values: (u, splits) => splits.map((v) => (v === null ? "" : axis.write(v))),
      filter: (u, splits) => splits, // the ticks are chosen here, and all of them have their number
    };
    if (axis.ticks) made.splits = (u) => thinned(axis.ticks, u, side);
    else if (axis.log === 10) made.splits = () => decades(values);
    return made;
  }

  // Ticks that leave each other room.
  function thinned(ticks, u, side) {
    const kept = [];
    for (const tick of ticks) {
      const at = u.valToPos(tick, side === 2 ? "x" : "y");
      if (kept.length === 0 || Math.abs(at - kept.at(-1).at) > (side === 2 ? 46 : 20)) kept.push({ tick, at });
    }
    return kept.map(({ tick }) => tick);
  }

  // 1, 2, 5, 10, ...; only the decades where there are many, and round numbers where there is not one.
  function decades(values) {
    const [least, most] = [Math.min(...values), Math.max(...values)];
    if (most < 5 * least) return format.ticks(least, most, 5);
    const [from, to] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(most))];
    const steps = to - from > 3 ? [1] : [1, 2, 5];
    const ticks = [];
    for (let e = from; e <= to; ++e) for (const step of steps) ticks.push(step * 10 ** e);
    return ticks.filter((tick) => tick >= least && tick <= most);
  }

  // A chart with a legend whose entries show and hide series. `series`: name, points [{x, y, low, high}],
  // isPoints (measured: marks without a line), shown; `x`, `y`: label, write(value), log (2 or 10), ticks.
  // `strong` is the series whose interval is drawn.
  function lines({ title, note, x, y, series, strong, height = 300 }) {
    series.filter((s) => !s.style).forEach((s, i) => { s.style = style(i); });
    if (!toggled.has(title)) toggled.set(title, new Map());
    const byUser = toggled.get(title);
    const shown = new Set(series.filter((s) => byUser.get(s.name) ?? s.shown).map((s) => s.name));
    let focus = strong;
    let plot = null;
    const plotted = dom.html("div", { class: "plot", tabindex: "0", role: "img", "aria-label": `${title}, ${y.label} over ${x.label}. The arrow keys read its points; the table below has all of them.`, keydown: step });
    const readout = dom.html("p", { class: "readout", "aria-live": "polite" }, "The arrow keys read the points of the chart.");
    const { xs, column } = aligned(series);

    const entries = series.map((s) => {
      const value = dom.html("b", {});
      const button = dom.html("button", { type: "button", title: s.name, "aria-pressed": String(shown.has(s.name)), click: () => toggle(s),
        mouseenter: () => emphasise(s.name), mouseleave: () => emphasise(strong), focus: () => emphasise(s.name), blur: () => emphasise(strong) },
        sample(s), dom.html("span", {}, s.name), value);
      return { s, value, button };
    });

    function sample(s) {
      const mark = s.isPoints
        ? dom.svg("circle", { cx: 11, cy: 5, r: 3.5, fill: "none", stroke: `var(--${s.style.color})`, "stroke-width": 1.8 })
        : dom.svg("line", { x1: 0, x2: 22, y1: 5, y2: 5, stroke: `var(--${s.style.color})`, "stroke-width": 2, "stroke-dasharray": s.style.dash.join(" ") });
      return dom.svg("svg", { viewBox: "0 0 22 10", "aria-hidden": "true" }, mark);
    }

    function toggle(s) {
      if (shown.has(s.name)) shown.delete(s.name);
      else shown.add(s.name);
      byUser.set(s.name, shown.has(s.name));
      entries.forEach((e) => e.button.setAttribute("aria-pressed", String(shown.has(e.s.name))));
      draw();
    }

    function emphasise(name) {
      if (focus === name || !plot) return;
      focus = shown.has(name) ? name : strong;
      plot.redraw();
    }

    function showValues(index) {
      for (const { s, value } of entries) {
        const point = s.points.find((p) => p.x === xs[index]);
        value.textContent = point ? y.write(point.y) : "–";
      }
      return index;
    }

    function step(event) {
      const moves = { ArrowLeft: -1, ArrowRight: 1 };
      if (!(event.key in moves) || !plot) return;
      event.preventDefault();
      const at = plot.cursor.idx ?? -1;
      const index = Math.max(0, Math.min(xs.length - 1, at + moves[event.key]));
      plot.setCursor({ left: plot.valToPos(xs[index], "x"), top: plot.bbox.height / devicePixelRatio / 2 });
      showValues(index);
      readout.textContent = `${x.write(xs[index])} ${x.name}: ` +
        entries.filter((e) => shown.has(e.s.name)).map((e) => `${e.s.name} ${e.value.textContent}`).join(", ");
    }

    let width = 0;
    function draw() {
      if (plot) plot.destroy();
      const visible = series.filter((s) => shown.has(s.name));
      const high = view.printing() ? 190 : Math.min(height, Math.max(210, width * 0.62));
      // Names stand beside their lines where they have room; the legend has them in any case.
      const names = visible.filter((s) => !s.isPoints).map((s) => s.name);
      const room = Math.ceil(Math.max(0, ...names.map((name) => dom.textWidth(name)))) + 10;
      const end = dom.textWidth(x.write(xs.at(-1) ?? 0)) / 2 + 4; // of the last tick
      const hasNames = room < 0.32 * width && names.length * nameHeight < high - 60;
      const ys = (visible.length ? visible : series).flatMap((s) => s.points.flatMap((p) => (s.name === strong ? [p.low ?? p.y, p.y, p.high ?? p.y] : [p.y])));
      const options = {
        width, height: high, legend: { show: false }, padding: [8, Math.max(hasNames ? room : 0, end), 0, 0],
        scales: { x: scaleOf(x, xs), y: scaleOf(y, ys) },
        axes: [axisOf({ ticks: xs, ...x }, 2, xs), axisOf(y, 3, ys)],
        cursor: { drag: { x: false, y: false }, points: { size: 6 }, y: false },
        series: [{}, ...series.map((s) => {
          const stroke = view.color(s.style.color);
          return {
            show: shown.has(s.name), stroke, width: s.name === strong ? 2.4 : 1.4, dash: s.style.dash, spanGaps: true,
            paths: s.isPoints ? () => null : undefined,
            points: { show: true, size: s.isPoints ? 8 : 4, stroke, fill: s.isPoints ? view.color("paper") : stroke, width: s.isPoints ? 2 : 1 },
          };
        })],
        hooks: {
          drawAxes: [(u) => drawBands(u, series, focus)],
          draw: [(u) => hasNames && drawNames(u, series)],
          setCursor: [(u) => { if (u.cursor.idx !== null && u.cursor.idx !== undefined) showValues(u.cursor.idx); }],
        },
      };
      plot = new uPlot(options, [xs, ...series.map((s) => column(s, (p) => p.y))], plotted);
      showValues(xs.length - 1);
    }

    view.drawn(plotted, (found) => { width = found; draw(); });
    return dom.html("figure", {}, dom.html("figcaption", {}, title, note && dom.html("span", {}, ` ${note}`)), plotted,
      dom.html("ul", { class: "series", "aria-label": `${title}: series` }, entries.map((e) => dom.html("li", {}, e.button))), readout);
  }

  return { lines };
})();
