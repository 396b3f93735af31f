// What charts depend on beside their data: the theme, the width of the page, and whether it is printed.
// A chart is drawn by a function that is called again when one of these changes.
const view = (() => {
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const whole = [];
  const parts = [whole];
  let drawings = whole; // to which a drawing is added
  const A4 = { width: 688, height: 960 }; // CSS pixels within the margins of page.css, less what printed letters are wider
  const leastZoom = 0.74; // 7 points
  let chosen = null; // by the user; null: as the system says
  let isPrinting = false;

  function apply() {
    const isDark = !isPrinting && (chosen ? chosen === "dark" : prefersDark.matches);
    root.dataset.theme = isDark ? "dark" : "light";
  }

  function drawAll() {
    for (const part of parts) for (const draw of part) draw();
  }

  // Calls `draw` once it is on the page, and whenever it looks different.
  function drawn(draw) {
    drawings.push(draw);
  }

  // A part of the page that is made again and again: `make` returns what f() does, and forgets the
  // drawings that it made before; `draw` draws them.
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
    return { make, draw: () => own.forEach((draw) => draw()) };
  }

  const color = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();

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
      document.getElementById("unprinted").textContent = `Not printed, but in the file: ${titles}.`;
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
