// What charts depend on beside their data: the theme, the width of the page, and whether it is printed.
// A chart is drawn by a function that is called again when one of these changes.
const view = (() => {
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const whole = [];
  const parts = [whole];
  let drawings = whole; // the list to which a drawing is added, as {area, draw}
  const colors = new Map(); // the values of the theme that is shown, by name
  const A4 = { width: 688, height: 960 }; // CSS pixels within the margins of page.css, less what printed letters are wider
  const leastZoom = 0.74; // 7 points
  let chosen = null; // by the user; null: as the system says
  let isPrinting = false;

  function apply() {
    const isDark = !isPrinting && (chosen ? chosen === "dark" : prefersDark.matches);
    root.dataset.theme = isDark ? "dark" : "light";
    colors.clear();
  }

  // All widths are read before anything is drawn, so that the page is laid out once for all of them; not at
  // all where the caller knows the width.
  function drawEach(list, width) {
    const widths = list.map(({ area }) => width || area.clientWidth);
    list.forEach(({ draw }, i) => widths[i] > 0 && draw(widths[i]));
  }

  const drawAll = () => drawEach(parts.flat());

  // Calls `draw` with the width of `area` once that is on the page, and whenever it looks different.
  function drawn(area, draw) {
    drawings.push({ area, draw });
  }

  // A part of the page that is made again and again: `make` returns what f() does, and forgets the
  // drawings that it made before; `draw` draws them, each as wide as is said or as its area is.
  function part() {
    const own = [];
    parts.push(own);
    function make(f) {
      own.length = 0;
      drawings = own;
      try {
        return f();
      } finally {
        drawings = whole;
      }
    }
    return { make, draw: (width) => drawEach(own, width) };
  }

  function color(name) {
    if (!colors.has(name)) colors.set(name, getComputedStyle(root).getPropertyValue(`--${name}`).trim());
    return colors.get(name);
  }

  function toggleTheme() {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    apply();
    drawAll();
  }

  // Printed pages are light, and fit one sheet: they shrink as far as they stay legible, and then leave out
  // sections that are least needed on paper.
  function beforePrint() {
    isPrinting = true;
    root.dataset.print = "";
    apply();
    // What has only a title and what a printed page does not open.
    for (const section of document.querySelectorAll("section")) section.toggleAttribute("data-bare", [...section.children].every((child) => child.matches("h2, .note, details")));
    const main = document.querySelector("main");
    const heightAt = (zoom) => {
      main.style.zoom = zoom;
      main.style.width = `${A4.width / zoom}px`;
      drawAll();
      return main.getBoundingClientRect().height;
    };
    const fits = () => {
      let zoom = 1;
      for (let height = heightAt(zoom); height > A4.height; height = heightAt(zoom)) {
        if (zoom <= leastZoom) return false;
        zoom = Math.max(leastZoom, zoom * Math.min(0.97, Math.sqrt(A4.height / height)));
      }
      return true;
    };
    const optional = [...document.querySelectorAll("section[data-print]")].reverse().sort((a, b) => a.dataset.print - b.dataset.print);
    const dropped = [];
    while (!fits() && dropped.length < optional.length) {
      dropped.push(optional[dropped.length]);
      dropped.at(-1).hidden = true;
      const titles = dropped.map((section) => section.querySelector("h2").textContent).join(", ");
      document.getElementById("unprinted").textContent = `Not printed, but on the page: ${titles}.`;
    }
  }

  function afterPrint() {
    isPrinting = false;
    delete root.dataset.print;
    apply();
    const main = document.querySelector("main");
    main.style.zoom = "";
    main.style.width = "";
    for (const section of document.querySelectorAll("section[hidden]")) section.hidden = false;
    document.getElementById("unprinted").textContent = "";
    drawAll();
  }

  function start() {
    apply();
    prefersDark.addEventListener("change", () => { apply(); drawAll(); });
    let width = innerWidth;
    addEventListener("resize", () => {
      if (isPrinting || innerWidth === width) return;
      width = innerWidth;
      drawAll();
    });
    addEventListener("beforeprint", beforePrint);
    addEventListener("afterprint", afterPrint);
    drawAll();
  }

  return { start, drawn, part, color, toggleTheme, printing: () => isPrinting };
})();
