// Bars in the cells of a table, on one axis from zero. A bar that is longer than the axis ends in an arrow,
// so that one slow row does not press all others flat.
const bars = (() => {
  const share = (x, limit) => `${(100 * Math.max(0, Math.min(x, limit))) / limit}%`;

  // A round number above `x`, and the step of ticks below it.
  function nice(x) {
    const power = 10 ** Math.floor(Math.log10(x));
    const step = [0.1, 0.2, 0.25, 0.5, 1, 2].map((s) => s * power).find((s) => x / s <= 5);
    return { limit: Math.ceil((x / step) * 1.0001) * step, step };
  }

  // The axis for rows of which the shortest is `best`: up to what is twice and a half as long.
  function axisFor(highs, best) {
    const inside = highs.filter((high) => high <= 2.5 * best);
    return nice(Math.max(...(inside.length ? inside : highs), best));
  }

  function ticks(axis, write) {
    const marks = [];
    for (let i = 0; i * axis.step <= axis.limit * 1.0001; ++i) marks.push(i * axis.step);
    const isNamed = (i) => i % 2 === 0 || marks.length < 5;
    const last = marks.findLastIndex((tick, i) => isNamed(i));
    return dom.html("div", { class: "axis" }, dom.svg("svg", { height: 16, role: "img", "aria-label": `axis from 0 to ${write(axis.limit)}` },
      marks.map((tick, i) => [
        dom.svg("line", { x1: share(tick, axis.limit), x2: share(tick, axis.limit), y1: 12, y2: 16, class: "tick" }),
        isNamed(i) && dom.svg("text", { x: share(tick, axis.limit), y: 10, class: i > 0 && i < last ? "between" : undefined,
          "text-anchor": i === 0 ? "start" : i === marks.length - 1 ? "end" : "middle" }, write(tick)),
      ])));
  }

  // `parts`: [{value, kind}] in their order; `low` and `high`: the interval of their sum; `mark`: one more
  // value on the axis, where there is one.
  function bar({ axis, parts, low, high, mark, label }) {
    let at = 0;
    const drawn = parts.filter((part) => part.value > 0 && at < axis.limit).map((part) => {
      const begin = at;
      at += part.value;
      return dom.svg("rect", { x: share(begin, axis.limit), y: 3, height: 11, class: `fill-${part.kind}`,
        width: `${(100 * (Math.min(at, axis.limit) - Math.min(begin, axis.limit))) / axis.limit}%` });
    });
    const whisker = low !== undefined && low < axis.limit && [
      dom.svg("line", { x1: share(low, axis.limit), x2: share(high, axis.limit), y1: 8.5, y2: 8.5, class: "whisker" }),
      dom.svg("line", { x1: share(low, axis.limit), x2: share(low, axis.limit), y1: 5.5, y2: 11.5, class: "whisker" }),
      high <= axis.limit && dom.svg("line", { x1: share(high, axis.limit), x2: share(high, axis.limit), y1: 5.5, y2: 11.5, class: "whisker" }),
    ];
    const dot = mark !== undefined && mark <= axis.limit && dom.svg("circle", { cx: share(mark, axis.limit), cy: 8.5, r: 3, class: "dot" });
    const sum = parts.reduce((total, part) => total + part.value, 0);
    const over = sum > axis.limit && dom.svg("text", { x: "100%", y: 12.5, class: "over", "text-anchor": "start" }, "▸");
    return dom.svg("svg", { height: 17, role: "img", "aria-label": label }, drawn, whisker, dot, over);
  }

  const legend = (entries) =>
    dom.html("ul", { class: "legend" }, entries.map(([kind, text]) => dom.html("li", {}, dom.html("i", { class: `fill-${kind}` }), text)));

  return { axisFor, ticks, bar, legend };
})();
