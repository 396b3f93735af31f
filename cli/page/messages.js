// Reports of single messages and all-reduces by size: predicted times (time), and fits to measured ones
// (calibrate).
{
  const sizeAxis = { label: "size", name: "bytes", log: 10, write: (v) => format.size(v) };
  const timeAxis = { label: "time", log: 10, size: 60, write: (v) => format.time(v, 3) };
  // 8 B, 64 B, ...: sizes that people know, and not those of ten.
  const sizeTicks = (values) => {
    const ticks = [];
    for (let size = 1; size <= Math.max(...values); size *= 8) if (size >= Math.min(...values)) ticks.push(size);
    return ticks.length > 1 ? ticks : values;
  };

  function times(document) {
    const bytes = document.sizes.map((size) => size.bytes);
    const at = (size, name) => size.times.find((time) => time.name === name);
    const asked = document.columns.filter((column) => column.as === "asked");
    const last = document.sizes.at(-1);
    const strong = asked.length === 1 ? asked[0].name : last.best;
    const order = [...document.columns].sort((a, b) => at(last, a.name).time_s - at(last, b.name).time_s);
    const shown = new Set([strong, ...document.columns.filter((c) => c.as !== "asked").map((c) => c.name), ...order.slice(0, 5).map((c) => c.name)]);
    const names = document.columns.map((column) => column.name).sort((a, b) => shown.has(b) - shown.has(a));
    const series = (value, ends) => names.map((name) => ({ name, shown: shown.has(name), points: document.sizes.map((size) => {
      const time = at(size, name);
      return { x: size.bytes, y: value(time), low: ends && value(time, "low"), high: ends && value(time, "high") };
    }) }));
    const measured = document.measured.map((one) => ({ x: one.bytes, y: one.time_s }));
    const byTime = series((time, end) => (end ? time[`time_${end}_s`] : time.time_s), true);
    if (measured.length) byTime.push({ name: "measured", isPoints: true, shown: true, style: { color: "ink", dash: [] }, points: measured });
    const largest = at(last, strong);
    const x = { ...sizeAxis, ticks: sizeTicks(bytes) };
    const rows = document.sizes.flatMap((size) => size.times.map((time) => ({ size, time })));
    return {
      kind: "All-reduce times", title: `All-reduces on ${document.cluster}`,
      facts: [`${document.ranks} ranks`, document.type, document.profile ? `profile ${document.profile}` : "no profile", document.nccl_version && `NCCL ${document.nccl_version}`].filter(Boolean),
      headline: [
        { name: asked.length === 1 ? "All-reduce" : "Best at the largest size", value: strong, note: `timed by ${largest.timed_by}` },
        { name: `Time of ${format.size(last.bytes)}`, value: format.time(largest.time_s), note: `90 %: ${format.interval(largest.time_low_s, largest.time_high_s)}` },
        { name: "Bus bandwidth", value: format.rate(largest.busbw_bytes_per_s), note: "as nccl-tests defines it" },
        { name: `Time of ${format.size(document.sizes[0].bytes)}`, value: format.time(at(document.sizes[0], strong).time_s), note: "latency" },
      ],
      sections: [
        dom.section("Time and bus bandwidth by size", `One all-reduce with nothing else in flight; all times are predicted. The band is the 90 % interval of the line that is chosen in the legend, at first of ${strong}.${document.measured.length > 0 ? " The pace of the links is fitted to the all-reduces that were measured (rings), so that times there are calibrated, and no prediction of them." : ""}`,
          dom.html("div", { class: "plots" },
            charts.lines({ title: "Time", x, y: { ...timeAxis }, strong, series: byTime }),
            charts.lines({ title: "Bus bandwidth", x, strong, series: series((time) => time.busbw_bytes_per_s),
              y: { label: "bus bandwidth", size: 64, write: (v) => format.rate(v, 3) } })),
          dom.openIfShort(document.columns.length === 1 ? rows : [...rows, ...Array(25)], "Data: every size", () => dom.table({ caption: "Every size", rows, marked: (r) => asked.length > 1 && r.time.name === r.size.best, columns: [
            { title: "size", value: (r) => r.size.bytes, text: (r) => format.size(r.size.bytes) },
            { title: "all-reduce", text: (r) => r.time.name },
            { title: "time", value: (r) => r.time.time_s, text: (r) => format.time(r.time.time_s) },
            { title: "90 % interval", className: "number", text: (r) => format.interval(r.time.time_low_s, r.time.time_high_s) },
            { title: "algbw", value: (r) => r.time.algbw_bytes_per_s, text: (r) => format.rate(r.time.algbw_bytes_per_s) },
            { title: "busbw", value: (r) => r.time.busbw_bytes_per_s, text: (r) => format.rate(r.time.busbw_bytes_per_s) },
            { title: "timed by", className: "wide", text: (r) => r.time.timed_by },
          ] })),
          document.left_out.length > 0 && dom.html("p", { class: "note" }, document.left_out.map((one) => `${one.name} is left out: ${one.why}.`).join(" "))),
      ],
    };
  }

  // A curve with its samples, its fit and where they differ.
  function curve(one) {
    const sizes = one.sizes.filter((size) => size.bytes > 0);
    const x = { ...sizeAxis, ticks: sizeTicks(sizes.map((size) => size.bytes)) };
    const fit = { name: "calibrated fit", shown: true, points: sizes.map((s) => ({ x: s.bytes, y: s.fitted_s, low: s.low_s, high: s.high_s })) };
    const measured = { name: "measured, medians", shown: true, isPoints: true, style: { color: "ink", dash: [] }, points: sizes.map((s) => ({ x: s.bytes, y: s.measured_s })) };
    const error = { name: "measured over fitted", shown: true, isPoints: true, style: { color: "s1", dash: [] }, points: sizes.map((s) => ({ x: s.bytes, y: 100 * (s.measured_s / s.fitted_s - 1) })) };
    const rate = (beta) => (beta > 0 ? 1 / beta : Infinity);
    const writeRate = (r) => (Number.isFinite(r) ? format.rate(r) : "unlimited");
    return dom.section({ title: one.title, print: 2 }, one.origin || null,
      dom.html("div", { class: "plots" },
        charts.lines({ title: "Time by size", x, y: timeAxis, strong: fit.name, series: [measured, fit] }),
        charts.lines({ title: "Residual", note: `root mean square ${format.percent(one.residual)}`, x, strong: error.name, series: [error],
          y: { label: "measured over fitted, %", size: 48, write: (v) => `${format.number(v, 3)} %` } })),
      spread(one),
      dom.table({ caption: `Pieces of the fit: ${one.title}`, rows: one.pieces, columns: [
        { title: "from", text: (p) => format.size(p.from_bytes) },
        { title: "alpha", value: (p) => p.alpha_s, text: (p) => format.time(p.alpha_s) },
        { title: "90 % interval", className: "number", text: (p) => format.interval(p.alpha_low_s, p.alpha_high_s) },
        { title: "1 / beta", value: (p) => p.beta_s_per_byte, text: (p) => writeRate(rate(p.beta_s_per_byte)) },
        { title: "90 % interval", className: "number", text: (p) => (Number.isFinite(rate(p.beta_low_s_per_byte)) ? format.interval(rate(p.beta_high_s_per_byte), rate(p.beta_low_s_per_byte), writeRate) : `from ${writeRate(rate(p.beta_high_s_per_byte))}`) },
      ] }),
      sections.warnings(one.complaints),
      dom.folded(`Data: ${one.sizes.length} sizes`, () => dom.table({ caption: `Sizes: ${one.title}`, rows: one.sizes, columns: [
        { title: "size", value: (s) => s.bytes, text: (s) => format.size(s.bytes) },
        { title: "measured", value: (s) => s.measured_s, text: (s) => format.time(s.measured_s) },
        { title: "fitted", value: (s) => s.fitted_s, text: (s) => format.time(s.fitted_s) },
        { title: "90 % interval", className: "number", text: (s) => format.interval(s.low_s, s.high_s) },
        { title: "measured over fitted", value: (s) => s.measured_s / s.fitted_s - 1, text: (s) => format.signedPercent(s.measured_s / s.fitted_s - 1) },
        { title: "", text: (s) => (s.outlier ? "outlier" : "") },
      ] })));
  }

  // All samples of a curve, where sizes were measured several times: each over the fit at its size.
  function spread(one) {
    const fitted = new Map(one.sizes.map((size) => [size.bytes, size.fitted_s]));
    const ratios = one.samples.map((sample) => sample.time_s / fitted.get(sample.bytes)).filter((ratio) => Number.isFinite(ratio) && ratio > 0);
    return ratios.length < 2 * one.sizes.length ? null : samples.histogram({ title: "Samples over the fit", ratios });
  }

  // Layers that a profile times, and rates of kernels.
  function layers(profile) {
    const rows = profile.layers || [];
    if (rows.length === 0) return null;
    const total = (row) => row.forward_s.value + row.backward_s.value;
    const axis = bars.axisFor(rows.map(total), Math.max(...rows.map(total)));
    return dom.section({ title: "Layers", print: 1 }, "Forward and backward time of each layer, measured.",
      bars.legend([["forward", "forward"], ["backward", "backward"]]),
      dom.openIfShort(rows, `Data: ${rows.length} layers`, () => dom.table({ caption: "Layers", rows, columns: [
        { title: "layer", text: (r) => r.layer },
        { title: "time", className: "bar", head: bars.ticks(axis, format.timesUpTo(axis.limit)), cell: (r) =>
          bars.bar({ axis, parts: [{ kind: "forward", value: r.forward_s.value }, { kind: "backward", value: r.backward_s.value }], label: `${r.layer}: ${format.time(total(r))}` }) },
        { title: "forward", value: (r) => r.forward_s.value, text: (r) => format.time(r.forward_s.value) },
        { title: "backward", value: (r) => r.backward_s.value, text: (r) => format.time(r.backward_s.value) },
        { title: "batch", value: (r) => r.batch_per_rank, text: (r) => String(r.batch_per_rank) },
        { title: "precision", text: (r) => r.precision },
      ] })));
  }

  // What kernels move in a second.
  function rates(profile) {
    const rows = profile.rates || [];
    if (rows.length === 0) return null;
    const figure = (row) => (typeof row.bytes_per_s === "number" ? { value: row.bytes_per_s, low: row.bytes_per_s, high: row.bytes_per_s } : row.bytes_per_s);
    const axis = bars.axisFor(rows.map((row) => figure(row).high), Math.max(...rows.map((row) => figure(row).value)));
    return dom.section({ title: "Rates of kernels", print: 2 }, "Bytes that a rank copies, casts or reduces in a second; the line is the 90 % interval.",
      dom.table({ caption: "Rates of kernels", rows, columns: [
        { title: "kernel", text: (row) => row.kind },
        { title: "type", text: (row) => row.type },
        { title: "rate", className: "bar", head: bars.ticks(axis, (v) => format.rate(v)), cell: (row) =>
          bars.bar({ axis, parts: [{ kind: "measured", value: figure(row).value }], low: figure(row).low, high: figure(row).high, label: `${row.kind} ${row.type}: ${format.rate(figure(row).value)}` }) },
        { title: "rate", value: (row) => figure(row).value, text: (row) => format.rate(figure(row).value) },
        { title: "90 % interval", className: "number", text: (row) => format.interval(figure(row).low, figure(row).high, format.rate) },
        { title: "provenance", text: (row) => figure(row).provenance || "" },
      ] }));
  }

  function fits(document, { profile }) {
    const worst = document.curves.length ? Math.max(...document.curves.map((one) => one.residual)) : null;
    return {
      kind: "Calibration", title: document.name, facts: [document.origin].filter(Boolean),
      headline: [
        document.curves.length > 0 && { name: "Curves", value: String(document.curves.length), note: "calibrated: fitted to measured times" },
        worst !== null && { name: "Largest residual", value: format.percent(worst), note: "root mean square of measured over fitted" },
        document.curves.length > 0 && { name: "Samples", value: format.number(document.curves.reduce((sum, one) => sum + one.samples.length, 0)), note: "measured" },
        profile.layers?.length > 0 && { name: "Layers", value: String(profile.layers.length), note: "measured" },
        profile.rates?.length > 0 && { name: "Rates of kernels", value: String(profile.rates.length), note: "measured" },
      ].filter(Boolean),
      sections: [...sections.warnings(document.remarks, "Note"), ...document.curves.map(curve), layers(profile), rates(profile)],
    };
  }

  reports["paceline.time/1"] = times;
  reports["paceline.fits/1"] = fits;
}
