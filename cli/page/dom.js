// Elements. Texts become text nodes, so that no name of a document is ever read as markup.
const dom = (() => {
  function filled(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === undefined || value === null || value === false) continue;
      if (typeof value === "function") element.addEventListener(name, value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat(3).filter((child) => child !== undefined && child !== null && child !== false));
    return element;
  }

  const html = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) =>
    filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  // A table whose rows are of one kind. A column has a title, `text(row)` for people and, where it is a
  // number, `value(row)`, which the cell keeps unrounded as data-value; or `cell(row)`, an element.
  function table({ caption, columns, rows, marked = () => false, className }) {
    const head = columns.map((column) =>
      html("th", { scope: "col", class: column.className || (column.value ? "number" : undefined), title: column.hint, "aria-label": column.head ? `${column.title}, as a bar` : undefined },
        column.head || column.title));
    const cells = (row) =>
      columns.map((column, i) => {
        const attributes = { class: column.className || (column.value ? "number" : undefined) };
        if (column.value) attributes["data-value"] = String(column.value(row));
        const content = column.cell ? column.cell(row) : column.text(row);
        return i === 0 ? html("th", { scope: "row", ...attributes }, content) : html("td", attributes, content);
      });
    return html("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": caption },
      html("table", { class: className },
        html("caption", {}, caption),
        html("thead", {}, html("tr", {}, head)),
        html("tbody", {}, rows.map((row) => html("tr", { class: marked(row) ? "marked" : undefined }, cells(row))))));
  }

  // A table that the user opens, below the chart that shows the same numbers.
  const folded = (summary, make) => {
    const details = html("details", {}, html("summary", {}, summary));
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) details.append(make());
    });
    return details;
  };

  // A table that is open if it is short.
  const openIfShort = (rows, summary, make) => (rows.length <= 24 ? make() : folded(summary, make));

  // `title` is a text, or {title, print}: sections with the least `print` are the first that are left out
  // where a printed page is full.
  function section(title, note, ...content) {
    const { title: text, print } = typeof title === "string" ? { title } : title;
    return html("section", { "data-print": print }, html("h2", {}, text), note && html("p", { class: "note" }, note), content);
  }

  const button = (text, label, act, attributes = {}) =>
    html("button", { type: "button", "aria-label": label, title: label, click: act, ...attributes }, text);

  return { html, svg, table, folded, openIfShort, section, button };
})();
