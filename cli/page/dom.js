// Elements. Texts become text nodes, so that no name of a document is ever read as markup.
const dom = (() => {
  const listening = new WeakSet(); // the elements that have listeners of their own

  function filled(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === undefined || value === null || value === false) continue;
      if (typeof value === "function") {
        element.addEventListener(name, value);
        listening.add(element);
      } else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
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
    details.fill = () => details.open && details.childElementCount === 1 && details.append(make());
    details.addEventListener("toggle", details.fill);
    return details;
  };

  // A table that is open if it is short.
  const openIfShort = (rows, summary, make) => (rows.length <= 24 ? make() : folded(summary, make));

  // `title` is a text, or {title, print}: sections with the least `print` are the first that are left out
  // where a printed page is full.
  function section(title, note, ...content) {
    const { title: text, print } = typeof title === "string" ? { title } : title;
    return html("section", { "data-print": print, "data-title": text }, html("h2", {}, text), note && html("p", { class: "note" }, note), content);
  }

  // Makes the children of `element` what `fresh` is. What is alike stays, and with it the places of all, the
  // focus and how far a table is scrolled. Figures are put in whole, for their listeners refer to each other.
  function become(element, fresh) {
    let old = element.firstChild;
    for (const node of fresh) {
      let found = old;
      while (found && !isAlike(found, node)) found = found.nextSibling;
      if (!found) {
        element.insertBefore(node, old);
        continue;
      }
      while (old !== found) old = removed(old);
      old = found.nextSibling;
      if (node.nodeType === Node.TEXT_NODE) {
        if (found.data !== node.data) found.data = node.data;
      } else if (["FIGURE", "DETAILS"].includes(node.nodeName) || listening.has(node)) {
        if (found.open) {
          node.open = true;
          node.fill();
        }
        found.replaceWith(node);
      } else {
        for (const name of found.getAttributeNames()) if (!node.hasAttribute(name)) found.removeAttribute(name);
        for (const name of node.getAttributeNames()) {
          const value = node.getAttribute(name);
          if (found.getAttribute(name) !== value) found.setAttribute(name, value);
        }
        become(found, [...node.childNodes]);
      }
    }
    while (old) old = removed(old);
  }

  const isAlike = (a, b) => a.nodeName === b.nodeName && a.dataset?.title === b.dataset?.title;
  function removed(node) {
    const next = node.nextSibling;
    node.remove();
    return next;
  }

  // How wide a text of charts is, in pixels. Names come again with every answer, so that widths are kept.
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = "11px system-ui, sans-serif";
  const textWidths = new Map();
  function textWidth(text) {
    let width = textWidths.get(text);
    if (width === undefined) {
      if (textWidths.size > 10000) textWidths.clear();
      width = ruler.measureText(text).width;
      textWidths.set(text, width);
    }
    return width;
  }

  // The text, or as much of its beginning and its end as there is room for.
  function shortened(text, room) {
    if (textWidth(text) <= room) return text;
    for (let kept = text.length - 1; kept > 1; --kept) {
      const short = `${text.slice(0, Math.ceil(0.6 * kept))}…${text.slice(text.length - Math.floor(0.4 * kept))}`;
      if (textWidth(short) <= room) return short;
    }
    return "…";
  }

  const button = (text, label, act, attributes = {}) =>
    html("button", { type: "button", "aria-label": label, title: label, click: act, ...attributes }, text);

  return { html, svg, table, folded, openIfShort, section, become, textWidth, shortened, button };
})();
