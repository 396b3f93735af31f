// Reports of a measured run beside its prediction (compare).
{
  function difference(pick = (r) => r) {
    return [
      { title: "measured", value: (r) => pick(r).measured_s, text: (r) => format.time(pick(r).measured_s) },
      { title: "least – most", className: "number secondary", text: (r) => (pick(r).measured_s === null ? "" : format.interval(pick(r).measured_low_s, pick(r).measured_high_s)) },
      { title: "predicted", value: (r) => pick(r).predicted_s, text: (r) => format.time(pick(r).predicted_s) },
      { title: "difference", value: (r) => pick(r).difference_s, text: (r) => signed(pick(r).difference_s) },
      { title: "of predicted", value: (r) => pick(r).relative_difference, text: (r) => relative(pick(r)) },
    ];
  }
  // What is ten times as long or more is said in times, as the command's tables have it.
  const relative = ({ measured_s: measured, predicted_s: predicted, relative_difference: share }) =>
    (share !== null && share >= 9 ? `${format.number(measured / predicted)} times` : format.signedPercent(share));
  const signed = (x) => (x === null ? "–" : `${x > 0 ? "+" : x < 0 ? "−" : ""}${format.time(Math.abs(x))}`);

  // Two bars: measured above predicted.
  function pair(axis, time, label) {
    const width = (value) => `${(100 * Math.max(0, Math.min(value ?? 0, axis.limit))) / axis.limit}%`;
    return dom.svg("svg", { height: 17, role: "img", "aria-label": label },
      dom.svg("rect", { x: 0, y: 2, height: 6, width: width(time.measured_s), class: "fill-measured" }),
      dom.svg("rect", { x: 0, y: 9, height: 6, width: width(time.predicted_s), class: "fill-predicted" }),
      time.measured_s !== null && dom.svg("line", { class: "whisker", x1: width(time.measured_low_s), x2: width(time.measured_high_s), y1: 5, y2: 5 }));
  }

  // Shows every iteration of the run that another one follows, beside the prediction. The timeline of a
  // prediction has no interval, so that there is none to show.
  function iterations({ iteration }, trace) {
    const rows = timeline.iterationTimes(trace, 0);
    if (rows.length < 2) return null;
    return dom.section({ title: "Iterations of the run", print: 2 }, "A mark is one measured iteration, the first at the top; lines are their median and the prediction.",
      samples.strip({ title: "Iteration", note: `${rows.length} measured`, values: rows.map((row) => row.time), write: format.time, marks: [
        { name: "median", value: iteration.measured_s, kind: "measured" }, { name: "predicted", value: iteration.predicted_s, kind: "predicted" }] }),
      dom.folded(`Data: ${rows.length} iterations`, () => dom.table({ caption: "Iterations of the run", rows, columns: [
        { title: "iteration", text: (row) => String(row.iteration) },
        { title: "measured", value: (row) => row.time, text: (row) => format.time(row.time) },
        { title: "of the prediction", value: (row) => row.time / iteration.predicted_s - 1, text: (row) => format.signedPercent(row.time / iteration.predicted_s - 1) },
      ] })));
  }

  function comparison(document, { timeline: trace }) {
    const { iteration } = document;
    const axis = bars.axisFor(document.parts.flatMap((part) => [part.measured_high_s ?? 0, part.predicted_s ?? 0]).filter((x) => x > 0), Math.max(...document.parts.map((part) => part.measured_s ?? 0), 1e-9));
    const side = (one) => `${one.provenance}: ${one.file}, ${one.title}, rank ${one.rank}, ${format.count(one.complete_iterations, "whole iteration")}`;
    return {
      kind: "Measured beside predicted", title: `${document.model} on ${document.ranks} ranks`,
      facts: [document.strategy, `${document.wire_type} on the wire`, document.overlap],
      headline: [
        { name: "Iteration, measured", value: format.time(iteration.measured_s), note: `least to most: ${format.interval(iteration.measured_low_s, iteration.measured_high_s)}` },
        { name: "Iteration, predicted", value: format.time(iteration.predicted_s), note: document.predicted_interval ? `90 %: ${format.interval(document.predicted_interval.low_s, document.predicted_interval.high_s)}; the run is ${document.predicted_interval.verdict}` : document.prediction.provenance },
        { name: "Difference", value: signed(iteration.difference_s), note: `${relative(iteration)} ${iteration.relative_difference >= 9 ? "the" : "of the"} prediction` },
      ],
      sections: [
        ...sections.warnings(document.notes),
        dom.section("Where the iteration goes", "Medians over the iterations; the line on a measured bar is from the least to the most. Parts add up to the iteration.",
          bars.legend([["measured", "measured"], ["predicted", "predicted"]]),
          dom.table({ caption: "Where the iteration goes", rows: document.parts, columns: [
            { title: "part", text: (part) => part.part },
            { title: "time", className: "bar", head: bars.ticks(axis, format.timesUpTo(axis.limit)), cell: (part) => pair(axis, part, `${part.part}: measured ${format.time(part.measured_s)}, predicted ${format.time(part.predicted_s)}`) },
            ...difference(),
          ] })),
        iterations(document, trace),
        ...sections.timelines(trace, "Measured over predicted, moved so that an iteration of each begins at the same time.", null, "A run shows several iterations, a prediction two of its steady state."),
        document.buckets.length > 0 && dom.section({ title: "Buckets", print: 1 }, "The transfer of each bucket, and for how long computation stood still for it; the largest difference first.",
          dom.openIfShort(document.buckets, `Data: ${document.buckets.length} buckets`, () => dom.table({ caption: "Buckets", rows: document.buckets, columns: [
            { title: "bucket", text: (b) => String(b.bucket) },
            { title: "size", value: (b) => b.bytes, text: (b) => format.bytes(b.bytes) },
            ...difference((b) => b.transfer),
            { title: "exposed, measured", value: (b) => b.exposed.measured_s, text: (b) => format.time(b.exposed.measured_s) },
            { title: "exposed, predicted", value: (b) => b.exposed.predicted_s, text: (b) => format.time(b.exposed.predicted_s) },
          ] }))),
        document.layers.length > 0 && dom.section({ title: "Layers", print: 1 }, "Forward and backward passes; the largest difference first.",
          dom.folded(`Data: ${document.layers.length} layers`, () => dom.table({ caption: "Layers", rows: document.layers.flatMap((layer) => [["forward", layer.forward], ["backward", layer.backward]].map(([pass, time]) => ({ layer, pass, time }))), columns: [
            { title: "layer", text: (r) => r.layer.layer }, { title: "pass", text: (r) => r.pass }, ...difference((r) => r.time),
          ] }))),
        document.one_sided.length > 0 && dom.section({ title: "On one side only", print: 1 }, null, dom.table({ caption: "On one side only", rows: document.one_sided, columns: [
          { title: "task", text: (r) => r.task }, { title: "side", text: (r) => r.provenance },
          { title: "tasks", value: (r) => r.tasks, text: (r) => String(r.tasks) }, { title: "time", value: (r) => r.time_s, text: (r) => format.time(r.time_s) }] })),
        dom.section("What the numbers rest on", "A prediction is computed, and is never fitted to the run that it is held against; a run is measured.",
          [document.run, document.prediction].map((one) => dom.html("p", { class: "note" }, side(one)))),
      ],
    };
  }

  reports["paceline.comparison/1"] = comparison;
}
