// Puts the sections of the documents in this file on the page.
{
  const documents = {};
  for (const element of document.querySelectorAll("script[type='application/json']"))
    documents[element.dataset.role] = JSON.parse(element.textContent);
  const { about, result } = documents;
  const report = reports[result.schema](result, documents);
  const { html } = dom;

  const copy = (button) =>
    navigator.clipboard?.writeText(about.command).then(() => { button.textContent = "copied"; }, () => {});

  document.getElementById("page").append(...[
    html("header", {},
      html("div", {}, html("p", { class: "kind" }, `Paceline · ${report.kind}`), html("h1", {}, report.title),
        html("p", { class: "facts" }, report.facts.join(" · "))),
      html("div", { class: "tools" }, dom.button("Light / dark", "change between the light and the dark theme", view.toggleTheme),
        dom.button("Print", "print, or save as PDF", () => print()))),
    report.headline.length > 0 && sections.headline(report.headline),
    ...report.sections.filter(Boolean),
    html("footer", {},
      html("p", { id: "unprinted" }),
      html("p", {}, `paceline ${about.version} made this report from one command: `, html("code", {}, about.command), " ",
        dom.button("copy", "copy the command", (event) => copy(event.target), { class: "screen" })),
      html("p", {}, "The data of its tables are in this file, as JSON. Charts of lines are drawn by uPlot (MIT license, © 2022 Leon Sorokin).")),
  ].filter(Boolean));
  view.start();
}
