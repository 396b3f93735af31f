// Reports of predictions: predict, scale, tune.
{
  const isRow = (row, named) => named && row.name === named.name && row.wire_type === named.wire_type;
  const bestOf = (part) => part.strategies.find((row) => isRow(row, part.best));
  const parts = (row) => [
    { kind: "compute", value: row.compute_s - row.update_s },
    { kind: "update", value: row.update_s },
    { kind: "exposed", value: row.exposed_communication_s },
    { kind: "input", value: row.input_wait_s },
  ];

  // How many types travel. Where it is one, the headline names it and the table has no column for it.
  const wires = (rows) => new Set(rows.map((row) => row.wire_type)).size;

  // The strategies of one number of ranks as bars, the shortest iteration first.
  function strategies(part) {
    const rows = [...part.strategies].sort((a, b) => a.iteration_s - b.iteration_s);
    const best = bestOf(part);
    const axis = bars.axisFor(rows.map((row) => row.iteration_high_s), best.iteration_s);
    return [
      bars.legend([["compute", "computation"], ["update", "update"], ["exposed", "exposed communication"],
        ...(rows.some((row) => row.input_wait_s > 0) ? [["input", "waiting for input"]] : [])]),
      dom.table({ caption: "Iteration of every strategy", rows, marked: (row) => row === best, columns: [
        { title: "strategy", text: (row) => row.name },
        ...(wires(rows) > 1 ? [{ title: "wire", className: "secondary", text: (row) => row.wire_type }] : []),
        { title: "iteration", className: "bar", head: bars.ticks(axis, format.timesUpTo(axis.limit)), cell: (row) =>
          bars.bar({ axis, parts: parts(row), low: row.iteration_low_s, high: row.iteration_high_s,
            label: `${row.name}: ${format.time(row.iteration_s)}` }) },
        { title: "iteration", value: (row) => row.iteration_s, text: (row) => format.time(row.iteration_s) },
        { title: "90 % interval", className: "number", text: (row) => format.interval(row.iteration_low_s, row.iteration_high_s) },
        { title: "samples", value: (row) => row.throughput_per_s, text: (row) => format.throughput(row.throughput_per_s) },
        { title: "efficiency", value: (row) => row.efficiency, text: (row) => format.percent(row.efficiency) },
        { title: "exposed", value: (row) => row.exposed_communication_s, text: (row) => format.time(row.exposed_communication_s) },
        { title: "buckets", value: (row) => row.buckets, text: (row) => String(row.buckets) },
      ] }),
    ];
  }

  // What stragglers make of the iteration. The document has quantiles of the drawn iterations, and not the draws.
  function stragglers(document) {
    if (!document.stragglers) return null;
    const rows = document.strategies.filter((row) => row.iteration_mean_s !== undefined).sort((a, b) => a.iteration_mean_s - b.iteration_mean_s);
    const axis = bars.axisFor(rows.map((row) => row.iteration_p99_high_s), rows[0].iteration_mean_s);
    const draws = document.stragglers.monte_carlo_iterations;
    return dom.section({ title: "Iterations with stragglers", print: 3 }, `Of ${format.number(draws)} drawn iterations: the bar is the iteration without stragglers, the line goes from the 50th to the 99th percentile, and the mark is the mean.`,
      dom.table({ caption: "Iterations with stragglers", rows, columns: [
        { title: "strategy", text: (row) => row.name },
        { title: "iteration", className: "bar", head: bars.ticks(axis, format.timesUpTo(axis.limit)), cell: (row) =>
          bars.bar({ axis, parts: [{ kind: "forward", value: row.iteration_s }], low: row.iteration_p50_s, high: row.iteration_p99_s, mark: row.iteration_mean_s,
            label: `${row.name}: ${format.time(row.iteration_p50_s)} to ${format.time(row.iteration_p99_s)}, mean ${format.time(row.iteration_mean_s)}` }) },
        { title: "without", value: (row) => row.iteration_s, text: (row) => format.time(row.iteration_s) },
        { title: "mean", value: (row) => row.iteration_mean_s, text: (row) => format.time(row.iteration_mean_s) },
        { title: "p50", value: (row) => row.iteration_p50_s, text: (row) => format.time(row.iteration_p50_s) },
        { title: "its 90 % interval", className: "number secondary", text: (row) => format.interval(row.iteration_p50_low_s, row.iteration_p50_high_s) },
        { title: "p99", value: (row) => row.iteration_p99_s, text: (row) => format.time(row.iteration_p99_s) },
        { title: "its 90 % interval", className: "number secondary", text: (row) => format.interval(row.iteration_p99_low_s, row.iteration_p99_high_s) },
      ] }));
  }

  // Rows that another program's model times, and what is missing.
  function notes(part) {
    const others = part.strategies.filter((row) => row.timed_by.startsWith("NCCL")).map((row) => `${row.name} is timed by ${row.timed_by}.`);
    const missing = part.left_out.map((row) => `${row.name} is left out: ${row.why}.`);
    const lines = [...new Set([...others, ...missing])];
    return lines.length > 0 && dom.html("p", { class: "note" }, lines.join(" "));
  }

  function memoryFact(document, row) {
    const { memory } = row;
    return { name: "Memory of a rank", value: format.bytes(memory.total_bytes),
      note: `of ${format.bytes(document.device_memory_bytes)}${row.fits_memory ? `; largest batch ${row.largest_batch_per_rank}` : ": it does not fit"}` };
  }

  // Memory by part, with the device's as the end of the axis.
  function memory(document, row) {
    const bytes = (...names) => names.reduce((sum, name) => sum + (row.memory[`${name}_bytes`] ?? 0), 0);
    const parts = [
      { kind: "parameters", name: "parameters", value: bytes("parameters") },
      { kind: "masters", name: "FP32 masters", value: bytes("masters") },
      { kind: "gradients", name: "gradients", value: bytes("gradients") },
      { kind: "optimizer", name: "optimizer", value: bytes("optimizer") },
      { kind: "activations", name: "activations", value: bytes("activations") },
      { kind: "other", name: "input, workspace, buffers and factors", value: bytes("input", "workspace", "buffers", "factors") },
    ].filter((part) => part.value > 0);
    const total = row.memory.total_bytes;
    const limit = Math.max(document.device_memory_bytes, total);
    const axis = { limit, step: limit / 4 };
    return dom.section({ title: "Memory of a rank", print: 2 }, `Of ${row.name} at batch ${document.batch_per_rank}. The axis ends at the ${format.bytes(document.device_memory_bytes)} of the device${total > document.device_memory_bytes ? ", which the bar passes" : ""}; the largest batch that fits is ${format.number(row.largest_batch_per_rank)}.`,
      bars.legend(parts.map((part) => [part.kind, `${part.name} ${format.bytes(part.value)}`])),
      dom.table({ caption: "Memory of a rank", rows: [row], columns: [
        { title: "strategy", text: (r) => r.name },
        { title: "memory", className: "bar", head: bars.ticks(axis, format.bytes), cell: () =>
          bars.bar({ axis, parts, label: parts.map((part) => `${part.name} ${format.bytes(part.value)}`).join(", ") }) },
        { title: "total", value: (r) => r.memory.total_bytes, text: (r) => format.bytes(r.memory.total_bytes) },
        { title: "of the device", value: (r) => r.memory.total_bytes / document.device_memory_bytes, text: (r) => format.percent(r.memory.total_bytes / document.device_memory_bytes) },
      ] }));
  }

  const bestFacts = (row, ranks) => [
    { name: "Best strategy", value: row.name, note: `${row.wire_type} on the wire, ${row.buckets} buckets` },
    { name: `Iteration${ranks ? ` at ${ranks} ranks` : ""}`, value: format.time(row.iteration_s), note: `90 %: ${format.interval(row.iteration_low_s, row.iteration_high_s)}` },
    { name: "Throughput", value: format.throughput(row.throughput_per_s), note: "samples per second, all ranks" },
    { name: "Efficiency", value: format.percent(row.efficiency), note: `against ${format.count(row.efficiency_baseline_ranks, "rank")}, same strategy` },
    { name: "Exposed communication", value: format.time(row.exposed_communication_s), note: `${format.percent(row.exposed_communication_s / row.iteration_s)} of the iteration` },
  ];

  function prediction(document, { timeline: trace }) {
    const best = bestOf(document);
    const tied = document.best.tied.map((row) => row.name).join(", ");
    return {
      kind: "Prediction", title: `${document.model} on ${document.cluster}`, facts: sections.factsOf(document),
      headline: [...bestFacts(best), ...(document.exact_compute ? [] : [memoryFact(document, best)])],
      sections: [
        ...sections.warnings(document.warnings),
        dom.section("Strategies", `Bars are the iteration; lines across their ends are its 90 % interval: ${sections.interval}.${tied ? ` Within 0.1 % of the best: ${tied}.` : ""}`,
          strategies(document), notes(document)),
        stragglers(document),
        document.exact_compute ? null : memory(document, best),
        ...sections.timelines(trace, `${best.name}, predicted.`),
        sections.restsOn(document, best.compute_source),
      ],
    };
  }

  function scaling(document, { timeline: trace }) {
    const points = [...document.points].sort((a, b) => a.ranks - b.ranks);
    const last = points.at(-1);
    const best = bestOf(last);
    const named = new Map();
    const nameOf = (row) => (points.some((p) => new Set(p.strategies.map((r) => r.wire_type)).size > 1) ? `${row.name} ${row.wire_type}` : row.name);
    for (const point of points) for (const row of point.strategies) if (!named.has(nameOf(row))) named.set(nameOf(row), []);
    for (const point of points) for (const row of point.strategies) named.get(nameOf(row)).push({ ranks: point.ranks, row });
    // The best anywhere, and the nearest to it at the most ranks.
    const important = new Set(points.map((point) => nameOf(bestOf(point))));
    for (const row of [...last.strategies].sort((a, b) => a.iteration_s - b.iteration_s)) if (important.size < 6) important.add(nameOf(row));
    const order = [...named.keys()].sort((a, b) => important.has(b) - important.has(a));
    const series = (y, low, high) => order.map((name) => ({ name, shown: important.has(name),
      points: named.get(name).map(({ ranks, row }) => ({ x: ranks, y: y(row), low: low?.(row), high: high?.(row) })) }));
    const x = { label: "ranks", name: "ranks", log: 2, write: (v) => String(v) };
    const strong = nameOf(best);
    const measured = (document.measured || []).map((point) => ({ x: point.ranks, y: point.throughput_per_s }));
    const throughput = series((r) => r.throughput_per_s, (r) => (r.throughput_per_s * r.iteration_s) / r.iteration_high_s, (r) => (r.throughput_per_s * r.iteration_s) / r.iteration_low_s);
    // What the ranks of the first point would do without any loss.
    const first = bestOf(points[0]).throughput_per_s / points[0].ranks;
    if (points.length > 1) throughput.push({ name: "linear", isReference: true, shown: true, style: { color: "soft", dash: [2, 3] }, points: points.map((point) => ({ x: point.ranks, y: first * point.ranks })) });
    if (measured.length) throughput.push({ name: "measured", isPoints: true, shown: true, style: { color: "ink", dash: [] }, points: measured });
    const efficiencies = series((r) => r.efficiency * 100);
    const rows = points.flatMap((point) => point.strategies.map((row) => ({ ranks: point.ranks, row, isBest: isRow(row, point.best) })));
    const curve = [
      ...sections.warnings(document.warnings),
      dom.section("Scaling", `The band is the 90 % interval of the line that is chosen in the legend, at first of ${strong}: ${sections.interval}. Efficiency is against the same strategy on ${format.count(best.efficiency_baseline_ranks, "rank")}; the line "linear" is what ${format.count(points[0].ranks, "rank")} of the best strategy would do on more without loss.`,
        dom.html("div", { class: "plots" },
          charts.lines({ title: "Throughput", note: "samples per second", x, strong, series: throughput,
            y: { label: "samples per second", log: 10, size: 62, write: (v) => (v >= 1e6 ? `${format.number(v / 1e6)} M` : v >= 1000 ? `${format.number(v / 1e3)} k` : format.number(v)) } }),
          charts.lines({ title: "Scaling efficiency", x, strong, series: efficiencies,
            y: { label: "efficiency", size: 46, write: (v) => `${format.number(v, 3)} %` } })),
        pointsTable(points, nameOf),
        document.measured?.length > 0 && measuredTable(document.measured, points, nameOf),
        dom.folded("Data: every strategy at every number of ranks", () => dom.table({ caption: "Every strategy at every number of ranks", rows, marked: (r) => r.isBest, columns: [
          { title: "ranks", value: (r) => r.ranks, text: (r) => String(r.ranks) },
          { title: "strategy", text: (r) => nameOf(r.row) },
          { title: "iteration", value: (r) => r.row.iteration_s, text: (r) => format.time(r.row.iteration_s) },
          { title: "90 % interval", className: "number", text: (r) => format.interval(r.row.iteration_low_s, r.row.iteration_high_s) },
          { title: "samples", value: (r) => r.row.throughput_per_s, text: (r) => format.throughput(r.row.throughput_per_s) },
          { title: "efficiency", value: (r) => r.row.efficiency, text: (r) => format.percent(r.row.efficiency) },
          { title: "exposed", value: (r) => r.row.exposed_communication_s, text: (r) => format.time(r.row.exposed_communication_s) },
        ] }))),
    ];
    return {
      kind: "Scaling prediction", title: `${document.model} on ${document.cluster}`,
      facts: [`${points[0].ranks} to ${last.ranks} ranks`, ...sections.factsOf(document)],
      headline: bestFacts(best, last.ranks), curve,
      sections: [
        ...curve,
        dom.section({ title: `Strategies at ${last.ranks} ranks`, print: 3 }, null, strategies(last), notes(last)),
        ...sections.timelines(trace, `${best.name} on ${last.ranks} ranks, predicted.`),
        sections.restsOn(document, best.compute_source),
      ],
    };
  }

  // What was measured, beside the best strategy that is predicted for as many ranks.
  function measuredTable(measured, points, nameOf) {
    const best = (one) => { const point = points.find((p) => p.ranks === one.ranks); return point && bestOf(point); };
    return dom.table({ caption: "Measured throughputs", rows: measured, columns: [
      { title: "ranks", value: (one) => one.ranks, text: (one) => String(one.ranks) },
      { title: "measured", value: (one) => one.throughput_per_s, text: (one) => format.throughput(one.throughput_per_s) },
      { title: "predicted, best strategy", text: (one) => (best(one) ? nameOf(best(one)) : "–") },
      { title: "predicted", value: (one) => best(one)?.throughput_per_s ?? null, text: (one) => format.throughput(best(one)?.throughput_per_s) },
      { title: "error of prediction", value: (one) => (best(one) ? best(one).throughput_per_s / one.throughput_per_s - 1 : null),
        text: (one) => format.signedPercent(best(one) ? best(one).throughput_per_s / one.throughput_per_s - 1 : null) },
    ] });
  }

  // The best of each number of ranks.
  function pointsTable(points, nameOf) {
    return dom.table({ caption: "The best strategy at each number of ranks", rows: points, columns: [
      { title: "ranks", value: (p) => p.ranks, text: (p) => String(p.ranks) },
      { title: "best strategy", text: (p) => nameOf(bestOf(p)) },
      { title: "iteration", value: (p) => bestOf(p).iteration_s, text: (p) => format.time(bestOf(p).iteration_s) },
      { title: "90 % interval", className: "number", text: (p) => format.interval(bestOf(p).iteration_low_s, bestOf(p).iteration_high_s) },
      { title: "samples", value: (p) => bestOf(p).throughput_per_s, text: (p) => format.throughput(bestOf(p).throughput_per_s) },
      { title: "efficiency", value: (p) => bestOf(p).efficiency, text: (p) => format.percent(bestOf(p).efficiency) },
      { title: "exposed", value: (p) => bestOf(p).exposed_communication_s, text: (p) => format.time(bestOf(p).exposed_communication_s) },
    ] });
  }

  function tuning(document, { timeline: trace }) {
    const best = { name: "tuned plan", wire_type: document.wire_type, iteration_s: document.iteration_s, gain: 0, isTuned: true };
    const rows = [best, ...[...document.strategies].sort((a, b) => a.iteration_s - b.iteration_s)];
    // Gains are bars from zero; what is far slower ends in an arrow.
    const gains = rows.map((row) => row.gain).filter((gain) => gain > 0).sort((a, b) => a - b);
    const axis = gains.length > 0 ? bars.axisFor(gains, Math.max(gains[Math.floor(gains.length / 2)], 0.002)) : { limit: 0.01, step: 0.005 };
    const intervals = new Map(document.runtime_defaults.map((row) => [row.name, row]));
    const ours = document.by_thresholds;
    const algorithms = [...new Set(document.buckets.map((bucket) => bucket.all_reduce))];
    return {
      kind: "Tuned plan", title: `${document.model} on ${document.cluster}`, facts: sections.factsOf(document),
      headline: [
        document.keep_defaults_of && { name: "Worth it?", value: "Keep the defaults", note: `of ${document.keep_defaults_of}: the gain over them is not certain, or below 1 %` },
        { name: "Iteration", value: format.time(document.iteration_s), note: `90 %: ${format.interval(document.iteration_low_s, document.iteration_high_s)}` },
        { name: "Lower bound", value: format.time(document.least_iteration_s),
          note: document.optimal ? "proven: no plan of its kind is faster" : `no plan is faster by more than ${format.percent(1 - document.least_iteration_s / document.iteration_s)}` },
        ours && { name: "Gain over thresholds", value: format.percent(ours.price), note: `over ${ours.name}, ${format.time(ours.iteration_s)}` },
        { name: "Plan", value: `${document.buckets.length} buckets`, note: `${document.wire_type} on the wire${document.strategy === "tuned" ? "" : `, that of ${document.strategy}`}` },
        { name: "All-reduces", value: String(algorithms.length), note: algorithms.slice(0, 3).join(", ") + (algorithms.length > 3 ? ", ..." : "") },
        { name: "Search", value: `${format.number(document.plans_evaluated)} plans`, note: document.complete ? "complete" : "stopped: more time may find a better plan" },
      ].filter(Boolean),
      sections: [
        ...sections.warnings(document.warnings),
        ...document.cut_short.map((line) => dom.html("p", { class: "note" }, `${line}.`)),
        document.why_not_optimal && dom.html("p", { class: "note" }, `Not proven to be the best: ${document.why_not_optimal}.`),
        dom.section("Gain over strategies", "By how much the iteration of each strategy is longer than that of the tuned plan. The line across the bar of a runtime's own plan is the 90 % interval of that gain, state by state. All times are predicted.",
          dom.table({ caption: "The tuned plan beside every strategy", rows, marked: (row) => row.isTuned, columns: [
            { title: "strategy", text: (row) => row.name },
            ...(wires(rows) > 1 ? [{ title: "wire", className: "secondary", text: (row) => row.wire_type }] : []),
            { title: "longer by", className: "bar", head: bars.ticks(axis, (gain) => `${format.number(100 * gain)} %`), cell: (row) =>
              bars.bar({ axis, parts: [{ kind: row.gain > 0 ? "exposed" : "compute", value: Math.max(0, row.gain) }], low: intervals.get(row.name)?.gain_low, high: intervals.get(row.name)?.gain_high,
                label: `${row.name}: ${format.time(row.iteration_s)}, ${format.signedPercent(row.gain)}` }) },
            { title: "iteration", value: (row) => row.iteration_s, text: (row) => format.time(row.iteration_s) },
            { title: "longer by", value: (row) => row.gain, text: (row) => (row.isTuned ? "" : format.signedPercent(row.gain)) },
          ] })),
        ...sections.timelines(trace, "The tuned plan, predicted.", null),
        bucketsSection(document),
        sections.restsOn(document),
      ],
    };
  }

  const bucketsSection = (document) => dom.section("Buckets of the plan", "Times count from the start of the iteration's forward pass; exposed is how long computation stands still for the bucket.",
    dom.openIfShort(document.buckets, `Data: ${document.buckets.length} buckets`, () => dom.table({ caption: "Buckets of the plan", rows: document.buckets.map((bucket, index) => ({ index, ...bucket })), columns: [
      { title: "bucket", text: (row) => String(row.index) },
      { title: "gradients", value: (row) => row.gradients, text: (row) => String(row.gradients) },
      { title: "first", className: "wide", text: (row) => row.first },
      { title: "last", className: "wide secondary", text: (row) => row.last },
      { title: "size", value: (row) => row.bytes, text: (row) => format.bytes(row.bytes) },
      { title: "all-reduce", text: (row) => row.all_reduce.replace(" (timed by its own model)", "") },
      { title: "ready", value: (row) => row.ready_s, text: (row) => format.time(row.ready_s) },
      { title: "starts", value: (row) => row.start_s, text: (row) => format.time(row.start_s) },
      { title: "ends", value: (row) => row.end_s, text: (row) => format.time(row.end_s) },
      { title: "exposed", value: (row) => row.exposed_s, text: (row) => format.time(row.exposed_s) },
    ] })));

  reports["paceline.prediction/1"] = prediction;
  reports["paceline.tuning/1"] = tuning;
  reports["paceline.scaling/1"] = scaling;
}
