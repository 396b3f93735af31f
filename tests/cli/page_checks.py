"""What a designer or a person without eyes or mouse would complain of, found in any page: texts that are
clipped, that lie on one another or are too faint, targets that are too small, controls without a name, and
what the Tab key does not reach or does not show.
"""

# Runs before the page: keeps where texts were drawn on a canvas since it was last cleared.
RECORD_CANVAS_TEXTS = """
window.canvasTexts = new Map();
{
  const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
  const { width } = Object.getOwnPropertyDescriptors(HTMLCanvasElement.prototype);
  Object.defineProperty(HTMLCanvasElement.prototype, "width", { ...width, set(value) { window.canvasTexts.delete(this); width.set.call(this, value); } });
  CanvasRenderingContext2D.prototype.clearRect = function (x, y, w, h) {
    if (x <= 0 && y <= 0 && w >= this.canvas.width && h >= this.canvas.height) window.canvasTexts.delete(this.canvas);
    return clearRect.call(this, x, y, w, h);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
    const size = this.measureText(text);
    const turned = this.getTransform();
    const corners = [[x - size.actualBoundingBoxLeft, y - size.actualBoundingBoxAscent], [x + size.actualBoundingBoxRight, y + size.actualBoundingBoxDescent]]
      .map(([a, b]) => turned.transformPoint(new DOMPoint(a, b)));
    if (!window.canvasTexts.has(this.canvas)) window.canvasTexts.set(this.canvas, []);
    window.canvasTexts.get(this.canvas).push({ text, corners, color: this.fillStyle, size: Number.parseFloat(/([\\d.]+)px/.exec(this.font)[1]) });
    return fillText.call(this, text, x, y, ...rest);
  };
}
"""

# Returns one line for each complaint about what can be seen now.
COMPLAINTS = """
const complaints = new Set();
const quoted = (text) => JSON.stringify(text.trim().replace(/\\s+/g, " ").slice(0, 60));
const isSeen = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true }) && getComputedStyle(e).clipPath === "none";
const styleOf = (() => { const kept = new Map(); return (e) => kept.get(e) || kept.set(e, getComputedStyle(e)).get(e); })();

// Colours: [red, green, blue, alpha] from 0 to 1.
const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const colorOf = (() => {
  const kept = new Map();
  return (text) => {
    if (!kept.has(text)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = text;
      pen.fillRect(0, 0, 1, 1);
      kept.set(text, [...pen.getImageData(0, 0, 1, 1).data].map((x) => x / 255));
    }
    return kept.get(text);
  };
})();
const over = (top, bottom) => [0, 1, 2].map((i) => top[i] * top[3] + bottom[i] * (1 - top[3])).concat(1);
const luminance = (c) => {
  const [r, g, b] = c.map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
};
const shapes = (svg) => [...svg.querySelectorAll("rect, path, circle")];
function paperBehind(element) {
  const { paintOrder, stroke, strokeWidth } = styleOf(element);
  if (element.tagName === "text" && paintOrder.startsWith("stroke") && Number.parseFloat(strokeWidth) >= 2) return colorOf(stroke);
  if (element instanceof SVGElement && element.ownerSVGElement) {
    const box = element.getBoundingClientRect();
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    const found = shapes(element.ownerSVGElement).filter((shape) => {
      if (!(shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING) || shape.closest("defs")) return false;
      const fill = styleOf(shape).fill;
      if (fill === "none" || fill.startsWith("url")) return false;
      const around = shape.getBoundingClientRect();
      if (x < around.left || x > around.right || y < around.top || y > around.bottom) return false;
      if (shape.tagName !== "path") return true;
      const at = new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse());
      return shape.isPointInFill(at);
    }).at(-1);
    if (found) return colorOf(styleOf(found).fill);
    return paperBehind(element.ownerSVGElement.parentElement);
  }
  for (let e = element; e; e = e.parentElement) {
    const color = colorOf(styleOf(e).backgroundColor);
    if (color[3] === 1) return color;
    if (color[3] > 0) return over(color, e.parentElement ? paperBehind(e.parentElement) : [1, 1, 1, 1]);
  }
  return [1, 1, 1, 1];
}
function faintness(text, color, paper, size, weight) {
  const least = size >= 24 || (size >= 18.66 && weight >= 700) ? 3 : 4.5;
  const found = contrast(over(color, paper), paper);
  if (found < least) complaints.add(`faint: ${quoted(text)} has a contrast of ${found.toFixed(2)}`);
}

// Every text: its boxes as far as they can be seen, in pixels of the page.
const boxes = [];
const page = document.documentElement;
const cut = (box, by) => ({ left: Math.max(box.left, by.left), right: Math.min(box.right, by.right), top: Math.max(box.top, by.top), bottom: Math.min(box.bottom, by.bottom) });
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode;
  const element = node.parentElement;
  if (!node.textContent.trim() || !isSeen(element) || element.closest("script, style, noscript, title, caption, option")) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  const rects = element instanceof SVGElement ? [element.getBoundingClientRect()] : [...range.getClientRects()];
  const text = node.textContent;
  const style = styleOf(element);
  faintness(text, colorOf(element instanceof SVGElement ? style.fill : style.color), paperBehind(element), Number.parseFloat(style.fontSize), Number(style.fontWeight));
  for (const rect of rects) {
    if (rect.width < 0.5) continue;
    let box = { left: rect.left, right: rect.right, top: rect.top, bottom: rect.bottom };
    for (let e = element; e && e !== page; e = e.parentElement) {
      const { overflowX, textOverflow } = styleOf(e);
      if (overflowX === "visible" || (e instanceof SVGElement && e.tagName !== "svg") || e === document.body) continue;
      const around = e.getBoundingClientRect();
      const isScrolled = overflowX === "auto" || overflowX === "scroll";
      const isOutside = box.left < around.left - 1.5 || box.right > around.right + 1.5 || box.top < around.top - 3 || box.bottom > around.bottom + 3;
      if (!isScrolled && isOutside) {
        // What is shortened with an ellipsis says all of itself when it is pointed at.
        const whole = e.closest("[title]")?.title || "";
        if (!(textOverflow === "ellipsis" && whole.includes(text.trim()))) complaints.add(`clipped: ${quoted(text)}`);
      }
      box = cut(box, around);
    }
    if (box.left < -1 || box.right > page.clientWidth + 1) complaints.add(`outside the page: ${quoted(text)}`);
    if (box.right - box.left > 1 && box.bottom - box.top > 1) boxes.push({ text, node, ...box });
  }
}
for (const [canvas, texts] of window.canvasTexts || []) {
  if (!canvas.isConnected || !isSeen(canvas)) continue;
  const around = canvas.getBoundingClientRect();
  const scale = around.width / canvas.width;
  for (const { text, corners, color, size } of texts) {
    const [xs, ys] = [corners.map((c) => around.left + c.x * scale), corners.map((c) => around.top + c.y * scale)];
    const box = { left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) };
    if (!text.trim()) continue;
    if (box.left < around.left - 0.5 || box.right > around.right + 0.5 || box.top < around.top - 0.5 || box.bottom > around.bottom + 0.5) complaints.add(`clipped: ${quoted(text)} on a canvas`);
    if (size * scale < 7) complaints.add(`tiny: ${quoted(text)} has ${(size * scale).toFixed(1)} pixels on a canvas`);
    faintness(text, colorOf(color), paperBehind(canvas), 11, 400);
    boxes.push({ text, ...box });
  }
}

// Letters do not fill their boxes: lines that stand close touch only with these.
boxes.sort((a, b) => a.top - b.top);
for (let i = 0; i < boxes.length; ++i) {
  const a = boxes[i];
  for (let k = i + 1; k < boxes.length && boxes[k].top < a.bottom; ++k) {
    const b = boxes[k];
    const [wide, high] = [Math.min(a.right, b.right) - Math.max(a.left, b.left), Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)];
    if (wide > 1 && high > 0.35 * Math.min(a.bottom - a.top, b.bottom - b.top) && (a.node !== b.node || !a.node)) complaints.add(`overlap: ${quoted(a.text)} and ${quoted(b.text)}`);
  }
}

const controls = [...document.querySelectorAll("button, summary, select, input, a[href]")].filter(isSeen);
const places = controls.map((e) => e.getBoundingClientRect());
controls.forEach((e, i) => {
  const name = e.getAttribute("aria-label") || e.textContent || e.id;
  const isInText = e.tagName === "A";
  if (!isInText && e.type !== "range" && Math.min(places[i].width, places[i].height) < 24) complaints.add(`small: ${quoted(name)} is ${places[i].width.toFixed(0)} by ${places[i].height.toFixed(0)} pixels`);
  for (let k = i + 1; k < controls.length; ++k) {
    if (e.contains(controls[k])) continue;
    const both = cut(places[i], places[k]);
    if (both.right - both.left > 1 && both.bottom - both.top > 1) complaints.add(`overlap: controls ${quoted(name)} and ${quoted(controls[k].getAttribute("aria-label") || controls[k].textContent || controls[k].id)}`);
  }
  const edge = styleOf(e);
  if (Number.parseFloat(edge.borderTopWidth) > 0 && e.type !== "range") {
    const found = contrast(colorOf(edge.borderTopColor), paperBehind(e.parentElement));
    if (found < 3) complaints.add(`faint: the border of ${quoted(name)} has a contrast of ${found.toFixed(2)}`);
  }
});
if (page.clientWidth >= 900)
  for (const e of document.querySelectorAll(".scrolled")) if (isSeen(e) && e.scrollWidth > e.clientWidth + 1) complaints.add(`a table scrolls sideways on a wide page: ${quoted(e.getAttribute("aria-label"))}, ${e.scrollWidth} of ${e.clientWidth} pixels`);
if (page.scrollWidth > page.clientWidth) complaints.add(`the page scrolls sideways: ${page.scrollWidth} of ${page.clientWidth} pixels`);
return [...complaints];
"""

# The elements that a keyboard has to reach, in their order.
STOPS = """
window.stops = [...document.querySelectorAll("button, summary, select, input, a[href], [tabindex='0']")].filter(
  (e) => e.tabIndex >= 0 && !e.disabled && e.checkVisibility());
// The next stop is looked for from the focus on, even where it was last.
document.body.tabIndex = -1;
document.body.focus();
document.body.removeAttribute("tabindex");
scrollTo(0, 0);
return window.stops.length;
"""
# Where the focus is now, and what of it cannot be seen.
STOP = """
const e = document.activeElement;
const { outlineStyle, outlineWidth } = getComputedStyle(e);
const box = e.getBoundingClientRect();
return [window.stops.indexOf(e), e.getAttribute("aria-label") || e.textContent.trim().slice(0, 40) || e.id,
  outlineStyle === "none" || Number.parseFloat(outlineWidth) < 2 ? "shows no focus"
    : box.bottom < 0 || box.top > innerHeight ? "is out of sight" : ""];
"""

NAMED_ROLES = {"button", "link", "slider", "spinbutton", "combobox", "listbox", "textbox", "checkbox", "image", "img", "table",
               "region", "DisclosureTriangle", "graphics-document", "dialog"}


def record_canvas_texts(browser):
    """Keeps where texts are drawn on canvases, from the next page on."""
    browser.command("Page.addScriptToEvaluateOnNewDocument", source=RECORD_CANVAS_TEXTS)


def complaints(browser):
    return browser.run(COMPLAINTS)


def press(browser, key):
    for kind in ("rawKeyDown", "keyUp"):
        browser.command("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"Tab": 9, "ArrowRight": 39}[key])


def tab_complaints(browser):
    """What the Tab key does not reach in the order of the page, and where the focus cannot be seen."""
    count = browser.run(STOPS)
    said = []
    for expected in range(count):
        press(browser, "Tab")
        index, name, problem = browser.run(STOP)
        if problem:
            said.append(f"{name!r} {problem}")
        if index != expected:
            said.append(f"stop {expected} of the Tab key is {index}, {name!r}")
            break
    return said


def tree_complaints(browser):
    """What a screen reader reads without a name, or cannot tell what it is."""
    browser.command("Accessibility.enable")
    nodes = browser.command("Accessibility.getFullAXTree")["nodes"]
    browser.command("Accessibility.disable")
    said = []
    level = 0
    for node in nodes:
        if node.get("ignored"):
            continue
        role = node.get("role", {}).get("value", "")
        name = node.get("name", {}).get("value", "").strip()
        properties = {one["name"]: one["value"].get("value") for one in node.get("properties", [])}
        if role in NAMED_ROLES and not name:
            said.append(f"a {role} has no name")
        if properties.get("focusable") and role in ("generic", "none", "") :
            said.append(f"a stop of the keyboard has no role: {name!r}")
        if properties.get("focusable") and not name and role != "RootWebArea":
            said.append(f"a stop of the keyboard has no name: {role}")
        if role == "heading":
            if properties["level"] > level + 1:
                said.append(f"heading {name!r} skips a level")
            level = properties["level"]
    return said


# Colours as people see them who lack one kind of cones (Machado et al. 2009, severity 1), on linear RGB.
DEFICIENCIES = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red cones": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green cones": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no blue cones": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def linear(color):
    """A colour as #rrggbb, in linear RGB."""
    parts = (int(color[i:i + 2], 16) / 255 for i in (1, 3, 5))
    return [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]


def seen(color, matrix):
    """Where the colour lies in OKLab (Ottosson 2020), times 100, for these eyes."""
    given = linear(color)
    red, green, blue = (min(1.0, max(0.0, sum(a * b for a, b in zip(row, given)))) for row in matrix)
    l, m, s = (cone ** (1 / 3) for cone in (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue,
                                            0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue,
                                            0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue))
    return (100 * (0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s), 100 * (1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s),
            100 * (0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s))


def nearest(colors):
    """For each kind of eyes, the two of these colours {name: "#rrggbb"} that look most alike: how far apart, and which."""
    found = {}
    for eyes, matrix in DEFICIENCIES.items():
        at = {name: seen(color, matrix) for name, color in colors.items()}
        found[eyes] = min((sum((a - b) ** 2 for a, b in zip(at[one], at[other])) ** 0.5, one, other)
                          for one in at for other in at if one < other)
    return found


def contrast(one, other):
    """WCAG's contrast of two colours."""
    light, dark = sorted((0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (linear(one), linear(other))), reverse=True)
    return (light + 0.05) / (dark + 0.05)
