// Elements, and charts of ten minutes. All text is set as text: what peers and files are called is
// never read as markup.

const SVG = "http://www.w3.org/2000/svg";

export const make = (tag, { cls, text, ...attributes } = {}, ...children) => {
  const element = document.createElement(tag);
  if (cls) element.className = cls;
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

export const draw = (tag, attributes = {}, ...children) => {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

// Changes only what differs, so that a screen reader and the layout rest.
export const say = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

export const give = (element, name, value) => {
  if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
};

const WIDTH = 600;
const HEIGHT = 76;

// The points of a series, as far as they go without a gap: the newest second is at the right.
const runs = (values, top) => {
  const found = [];
  let run = [];
  values.forEach((value, at) => {
    if (value === null) {
      if (run.length) found.push(run);
      run = [];
      return;
    }
    const x = WIDTH - (values.length - 1 - at);
    run.push([x, HEIGHT - 2 - (Math.min(value, top) / top) * (HEIGHT - 8)]);
  });
  if (run.length) found.push(run);
  return found;
};

const text = (points) => points.map(([x, y]) => `${x} ${y.toFixed(1)}`).join("L");
const line = (values, top) => runs(values, top).map((run) => `M${text(run)}${run.length === 1 ? "h1" : ""}`).join("");
const area = (values, top) =>
  runs(values, top)
    .map((run) => `M${run[0][0]} ${HEIGHT}L${text(run)}L${run[run.length - 1][0]} ${HEIGHT}Z`)
    .join("");

// A chart with a caption, its newest figure, and its scale.
export class Chart {
  // `isBare`: without a caption, for a place beside figures.
  constructor(title, isBare) {
    this.title = title;
    this.now = make("span");
    this.top = make("span", { cls: "top" });
    this.none = make("span", { cls: "none", text: "nothing measured yet" });
    this.marks = draw("g");
    this.svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": title });
    for (const x of [120, 240, 360, 480]) this.svg.append(draw("path", { class: "grid", d: `M${x} 0V${HEIGHT}` }));
    this.svg.append(this.marks);
    const times = make("div", { cls: "times", "aria-hidden": "true" }, make("span", { text: "10 min ago" }), make("span", { text: "now" }));
    const caption = make("figcaption", {}, make("b", { text: title }), this.now);
    const plot = make("div", { cls: "plot" }, this.svg, this.top, this.none);
    this.element = isBare ? make("figure", {}, plot, times) : make("figure", {}, caption, plot, times);
  }

  // `parts`: each with `values`, `kind` (`line` or `area`) and `cls`. `top`: the scale's end.
  show(parts, top, topText, now, none) {
    const measured = parts.filter(({ values }) => values.some((value) => value !== null));
    while (this.marks.childElementCount > measured.length) this.marks.lastChild.remove();
    measured.forEach(({ values, kind, cls }, at) => {
      const mark = this.marks.children[at] ?? this.marks.appendChild(draw("path"));
      give(mark, "class", `${cls}`);
      mark.setAttribute("d", (kind === "area" ? area : line)(values, top));
    });
    this.none.hidden = measured.length > 0;
    this.top.hidden = measured.length === 0;
    if (none) say(this.none, none);
    say(this.top, topText);
    say(this.now, now);
    give(this.svg, "aria-label", measured.length ? `${this.title}: ${now}. The scale ends at ${topText}.` : `${this.title}: ${this.none.textContent}`);
  }
}
