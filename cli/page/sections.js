// What the sections of several kinds of documents have in common.
const sections = (() => {
  const interval = "the middle 90 % of samples of all figures that it rests on, and of what none of them explains";

  // Facts of the job that a document of predictions names.
  function factsOf(document) {
    const facts = [];
    if (document.ranks) {
      const nodes = document.ranks_per_node && Math.ceil(document.ranks / document.ranks_per_node);
      facts.push(`${document.ranks} ranks${nodes ? ` (${nodes} nodes of ${document.ranks_per_node} ${document.device})` : ""}`);
    }
    facts.push(`batch ${document.batch_per_rank} per rank${document.accumulate ? ` × ${document.accumulate} accumulated` : ""}`);
    if (document.sequence) facts.push(`${document.sequence} tokens`);
    facts.push(`${document.precision} precision`);
    if (document.fabric && document.fabric !== "flat") facts.push(document.fabric);
    if (document.nic) facts.push(`NIC ${document.nic}`);
    if (document.what_if) facts.push(`what if ${document.what_if}`);
    if (document.profile) facts.push(`profile ${document.profile}`);
    if (document.engine !== "auto") facts.push(`engine ${document.engine}`);
    if (document.overlap) facts.push(`overlap ${document.overlap}`);
    if (document.plan) facts.push(`plan ${document.plan}`);
    if (document.gradient_scale !== undefined && document.gradient_scale !== 1) facts.push(`gradients × ${document.gradient_scale}`);
    if (document.exact_compute) facts.push("compute times as stated");
    return facts;
  }

  // A text whose commands stand in backquotes.
  const quoted = (text) => text.split("`").map((part, i) => (i % 2 ? dom.html("code", {}, part) : part));

  // Each figure that the predictions rest on, with where it comes from.
  function restsOn(document, computeSource) {
    const rows = [...(computeSource ? [{ what: "compute", text: computeSource }] : []), ...(document.rests_on || [])];
    if (rows.length === 0) return null;
    return dom.section("What the numbers rest on",
      "All times are predicted from these figures. A calibrated figure is fitted to measurements; a published one was measured by others; an assumed one is nobody's measurement.",
      dom.table({ caption: "What the numbers rest on", className: "sources", rows, columns: [
        { title: "figure", text: (row) => row.what },
        { title: "value", className: "number", text: (row) => (row.text ? "" : format.figure(row.value, row.unit)) },
        { title: "90 % interval", className: "number", text: (row) => (row.text || row.low === row.high ? "" : format.interval(row.low, row.high, (x) => format.figure(x, row.unit))) },
        { title: "provenance", cell: (row) => (row.provenance ? dom.html("span", { class: `provenance ${row.provenance}` }, row.provenance) : "") },
        { title: "source", className: "wide", cell: (row) => quoted(row.text || (row.source === rows[rows.indexOf(row) - 1]?.source ? "as above" : row.source)) },
      ] }));
  }

  // What a reader wants first.
  const headline = (facts) => dom.html("dl", { class: "headline", "data-facts": facts.length }, facts.map((fact) =>
    dom.html("div", {}, dom.html("dt", {}, fact.name), dom.html("dd", {}, fact.value, fact.note && dom.html("small", {}, fact.note)))));

  const warnings = (list, word = "Warning") => (list?.length > 0
    ? [dom.html("div", { class: "warning", role: "note" }, list.map((text) => dom.html("p", {}, `${word}: ${text}`)))] : []);

  // `table` makes the table below the buckets; null where the report has one elsewhere.
  function timelines(trace, what, table = () => buckets.table(trace), span = "Two iterations of the steady state, of one rank.") {
    if (!trace) return [];
    const job = trace.otherData.timelines[0];
    const made = [dom.section({ title: "Timeline by resource", print: 2 }, `${what} ${span}`,
      timeline.chart(trace),
      dom.folded("Data: time by kind of task", () => timeline.totalsTable(trace)),
      dom.folded("Data: every task", () => timeline.tasksTable(trace)))];
    if (job.buckets.length > 0 && job.ranks > 1)
      made.push(dom.section({ title: "Buckets over layers", print: 1 }, "Layers from first to last, down; time of the iteration, across. The backward pass climbs from the last layer to the first.",
        trace.otherData.timelines.length === 1 ? buckets.chart(trace)
          : dom.html("div", { class: "plots" }, trace.otherData.timelines.map((process, pid) => buckets.chart(trace, pid, process.provenance))), table && dom.folded("Data: buckets", table)));
    return made;
  }

  return { interval, headline, factsOf, restsOn, warnings, timelines };
})();

// How a document of a schema (docs/formats.md) becomes a report: functions that take the document as --json
// prints it, and all documents of the page by role, and return {kind, title, facts, headline, sections}.
const reports = {};
