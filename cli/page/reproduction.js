// Reports of published results: predicted beside published (reproduce).
{
  // The speed that is predicted over the published one, with the ends of its interval.
  function speeds(row) {
    const isTime = Math.abs(row.speed_error - (row.published / row.ours - 1)) < Math.abs(row.speed_error - row.relative_error);
    const ratio = (ours) => (isTime ? row.published / ours : ours / row.published);
    const ends = [ratio(row.low), ratio(row.high)];
    return { value: 1 + row.speed_error, low: Math.min(...ends), high: Math.max(...ends) };
  }

  const limit = 4; // of the axis: from a quarter to four times
  const at = (ratio) => `${50 + (50 * Math.log(Math.max(1 / limit, Math.min(limit, ratio)))) / Math.log(limit)}%`;
  const isDrawn = (row) => row.published > 0 && row.ours > 0;

  const axis = () => dom.svg("svg", { height: 16, role: "img", "aria-label": "axis from a quarter to four times the published speed" },
    [0.25, 0.5, 1, 2, 4].map((ratio) => [
      dom.svg("line", { x1: at(ratio), x2: at(ratio), y1: 12, y2: 16, class: "tick" }),
      [0.25, 1, 4].includes(ratio) && dom.svg("text", { x: at(ratio), y: 10, "text-anchor": ratio === 0.25 ? "start" : ratio === 4 ? "end" : "middle" }, `${ratio} ×`)]));

  // Full marks are inside their interval, open ones outside.
  function strip(rows) {
    const shown = rows.filter(isDrawn);
    const isOne = rows.length === 1;
    const marks = shown.map((row, i) => {
      const { value, low, high } = speeds(row);
      const y = isOne ? 8.5 : 4 + (i * 5) % 10;
      return [
        isOne && low < high && dom.svg("line", { class: "whisker", x1: at(low), x2: at(high), y1: y, y2: y }),
        dom.svg("circle", { cx: at(value), cy: y, r: isOne ? 4 : 2.6, class: row.inside ? "mark-inside" : "mark-outside" },
          dom.svg("title", {}, `${row.what}: ${format.signedPercent(row.speed_error)}`))];
    });
    return dom.svg("svg", { height: 17, role: "img", "aria-label": `${shown.length} rows` },
      dom.svg("line", { x1: "50%", x2: "50%", y1: 0, y2: 17, class: "tick" }), marks);
  }

  const legend = () => dom.html("ul", { class: "legend" },
    dom.html("li", {}, dom.html("i", { class: "dot inside" }), "published value inside the 90 % interval"),
    dom.html("li", {}, dom.html("i", { class: "dot outside" }), "outside"));

  const short = (x) => (x >= 1e6 ? `${format.number(x / 1e6)} M` : format.number(x));
  const write = (x, unit) => `${short(x)}${unit ? ` ${unit}` : ""}`;

  function summaryFacts(summary) {
    const facts = [];
    const add = (name, part) => {
      if (!part.rows) return;
      facts.push({ name: `${name}: median error`, value: format.percent(part.median_error), note: `of the speed; 90 % of rows within ${format.percent(part.p90_error)}` });
      facts.push({ name: `${name}: inside`, value: `${part.inside} of ${part.rows}`, note: "published values in our interval" });
      if (part.pairs) facts.push({ name: `${name}: order`, value: `${part.ordered} of ${part.pairs}`, note: "pairs of strategies as published" });
    };
    add("Training", summary.training);
    add("Sharded training", summary.sharded);
    add("Sharded training, from datasheets", summary.sharded_from_datasheets);
    add("All-reduces up to 64 KiB", summary.small_all_reduces);
    add("All-reduces above", summary.large_all_reduces);
    return facts;
  }

  function rowsTable(caption, rows) {
    return dom.table({ caption, rows, columns: [
      { title: "what", className: "wide", text: (row) => row.what },
      { title: "", text: (row) => row.provenance },
      { title: "predicted over published speed", className: "bar", head: axis(), cell: (row) => (row.provenance === "calibrated" ? "spent on calibration" : strip([row])) },
      { title: "published", value: (row) => row.published, text: (row) => write(row.published, row.unit) },
      { title: "ours", value: (row) => row.ours, text: (row) => write(row.ours, row.unit) },
      { title: "90 % interval", className: "number", text: (row) => (row.low === row.high ? "" : `${short(row.low)} – ${short(row.high)}`) },
      { title: "error of speed", value: (row) => row.speed_error, text: (row) => format.signedPercent(row.speed_error) },
      { title: "source", className: "secondary", text: (row) => row.source },
    ] });
  }

  const without = (title, list) => list.length > 0 && dom.section({ title, print: 1 }, null,
    dom.table({ caption: title, rows: list, columns: [{ title: "row", text: (row) => row.what }, { title: "why", className: "wide", text: (row) => row.why }] }));

  const howMade = (rows) => dom.section({ title: "What the rows rest on", print: 2 }, "How each prediction was made, the command that prints it, and why it is off where that is known.",
    dom.openIfShort(rows, `Data: ${rows.length} rows`, () => dom.table({ caption: "What the rows rest on", className: "sources", rows, columns: [
      { title: "what", className: "wide", text: (row) => row.what },
      { title: "made by", className: "wide", text: (row) => [row.configuration, row.note].filter(Boolean).join(". ") },
      { title: "command", className: "wide", cell: (row) => dom.html("code", {}, row.command) },
    ] })));

  function reproduction(document) {
    const { rows } = document;
    return {
      kind: "Predicted beside published", title: document.title, facts: [format.count(rows.length, "row"), document.name], headline: summaryFacts(document.summary),
      sections: [
        dom.section("Predicted and published", "A mark is the speed that we predict over the published one, on a logarithmic axis; its line is the 90 % interval.",
          legend(), rows.length <= 60 ? rowsTable("Predicted and published", rows)
            : [dom.table({ caption: "All rows in one", rows: [rows], columns: [
                { title: "", text: () => "all" }, { title: "predicted over published speed", className: "bar", head: axis(), cell: (all) => strip(all.filter((r) => r.provenance !== "calibrated")) }] }),
              dom.folded(`Data: ${rows.length} rows`, () => rowsTable("Predicted and published", rows))]),
        howMade(rows),
        without("Left out", document.left_out), without("Not predicted", document.failed),
      ],
    };
  }

  function all(document) {
    const open = (source) => source.rows.filter((row) => row.provenance !== "calibrated" && row.kind !== "count");
    const sources = document.sources.filter((source) => open(source).length > 0);
    const median = (values) => {
      const sorted = [...values].sort((a, b) => a - b);
      const half = sorted.length >> 1;
      return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    };
    const errors = (source) => open(source).map((row) => Math.abs(row.speed_error));
    return {
      kind: "Predicted beside published", title: "Every published result", facts: [`${sources.length} sources`, `${sources.reduce((sum, s) => sum + open(s).length, 0)} predicted rows`],
      headline: summaryFacts(document.summary),
      sections: [dom.section("By source", "Each mark is a row that was predicted: its speed over the published one, on a logarithmic axis; marks at its ends lie beyond.",
        legend(), dom.table({ caption: "By source", rows: sources, columns: [
          { title: "source", text: (s) => s.name },
          { title: "rows", value: (s) => open(s).length, text: (s) => String(open(s).length) },
          { title: "predicted over published speed", className: "bar", head: axis(), cell: (s) => strip(open(s)) },
          { title: "median error", value: (s) => median(errors(s)), text: (s) => format.percent(median(errors(s))) },
          { title: "worst", value: (s) => Math.max(...errors(s)), text: (s) => format.percent(Math.max(...errors(s))) },
          { title: "inside", value: (s) => open(s).filter((r) => r.inside).length / open(s).length, text: (s) => format.percent(open(s).filter((r) => r.inside).length / open(s).length, 0) },
        ] })),
      dom.section("Rows of each source", null, sources.map((source) => dom.folded(`${source.title}: ${format.count(source.rows.length, "row")}`, () => rowsTable(source.title, source.rows))))],
    };
  }

  reports["paceline.reproduction/2"] = reproduction;
  reports["paceline.reproductions/1"] = all;
}
