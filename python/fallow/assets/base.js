// Helpers: elements, numbers with units, sortable tables. Text goes in as text, never as markup.
const STATES = [
  { key: "computing_s", name: "computing", colour: "--computing" },
  { key: "transfer_s", name: "MPI work", colour: "--transfer" },
  { key: "wait_awake_s", name: "waiting awake", colour: "--awake" },
  { key: "wait_asleep_s", name: "waiting asleep", colour: "--asleep", thin: true },
  { key: "io_s", name: "file access", colour: "--io" },
];

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const tint = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const rounded = (value) => +value.toPrecision(3);
const below = (value, scale) => Math.abs(rounded(value * scale)) < 1000; // in this unit, as it is written: 1 ms, not 1000 µs
function seconds(value) {
  const size = Math.abs(value);
  if (size === 0) return "0 s";
  if (below(value, 1e9)) return `${rounded(value * 1e9)} ns`;
  if (below(value, 1e6)) return `${rounded(value * 1e6)} µs`;
  if (below(value, 1e3)) return `${rounded(value * 1e3)} ms`;
  if (size < 99.95) return `${rounded(value)} s`;
  if (size < 599.5) return `${value.toFixed(0)} s`;
  if (size < 3597) return `${(value / 60).toFixed(1)} min`; // 59.95 min
  return `${(value / 3600).toFixed(2)} h`;
}
const percent = (share, digits = 1) => `${(share * 100).toFixed(digits).replace(/^-(?=[0.]*$)/, "")} %`; // no sign on nothing
const count = (value) => Math.round(value).toLocaleString("en").replaceAll(",", "\u202f");
const plural = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;
function size(value) {
  for (const unit of ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]) {
    if (Math.abs(value) < (unit === "B" ? 1023.5 : 1023.95)) return `${unit === "B" ? value : value.toFixed(1)} ${unit}`;
    value /= 1024;
  }
  return `${value.toFixed(1)} EiB`;
}
function threeDigits(value, unit) {
  const size = Math.abs(value);
  if (size > 0 && below(value, 1e6)) return `${rounded(value * 1e6)} µ${unit}`;
  if (size > 0 && below(value, 1e3)) return `${rounded(value * 1e3)} m${unit}`;
  return size < 9.995 ? `${rounded(value)} ${unit}` : `${value.toFixed(1)} ${unit}`;
}
function joules(value) {
  if (Math.abs(value) >= 3599995) return `${(value / 3.6e6).toFixed(2)} kWh`;
  return Math.abs(value) >= 9999.95 ? `${(value / 1000).toFixed(2)} kJ` : threeDigits(value, "J");
}
function jouleSeconds(value) {
  const found = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([scale]) => Math.abs(value) >= 0.99995 * scale);
  if (!found) return threeDigits(value, "J s");
  const [scale, prefix] = found;
  return `${(value / scale).toFixed(Math.abs(value) < 9.995 * scale ? 2 : 1)} ${prefix}J s`;
}
const known = (value, show) => (value === null || value === undefined ? "–" : show(value));
const ratio = (after, before) => (before > 0 ? `× ${+(after / before).toPrecision(after < before / 10 ? 2 : 3)}` : "");

/** A word of a command as it is typed in a shell. */
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);

/** How much less energy than without sleep, or more: delays cost the whole node. */
function less(energy, spinning) {
  const share = 1 - energy / (spinning || 1);
  return share > -0.0005 ? `${percent(share)} less` : `${percent(-share)} more`;
}

function section(title, small, ...children) {
  return el("section", {}, el("h2", {}, title, small ? el("small", {}, small) : null), ...children);
}
const card = (...children) => el("div", { class: "card" }, ...children);

function legend(states = STATES) {
  return el("div", { class: "legend" }, states.map((s) =>
    el("span", {}, el("i", { class: s.thin ? "thin" : null, style: `background:var(${s.colour})` }), s.name)));
}

/** Reachable by the keyboard as long as there is more than is seen. */
const overflows = new ResizeObserver((entries) => {
  for (const box of new Set(entries.map(({ target }) => target.closest(".scroll, .plot")))) {
    if (box.scrollWidth > box.clientWidth) fill(box, { tabindex: "0", role: "group", "aria-label": "scrolls sideways" }, []);
    else for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
  }
});

/** What scrolls sideways where the window is narrower; `kind` is "scroll" or "plot". */
function sideways(kind, ...children) {
  const box = el("div", { class: kind }, ...children);
  [box, ...box.children].forEach((node) => overflows.observe(node));
  return box;
}

function totalOf(residency) {
  return STATES.reduce((sum, s) => sum + residency[s.key], 0);
}

/** The five residencies as one bar. */
function stack(residency, tall = false) {
  const total = totalOf(residency) || 1;
  const said = STATES.map((s) => `${s.name} ${percent(residency[s.key] / total)}`).join(", ");
  return el("div", { class: tall ? "stack tall" : "stack", role: "img", "aria-label": said, title: said.replaceAll(", ", "\n") },
    STATES.map((s) => el("b", { style: `width:${(residency[s.key] / total) * 100}%;background:var(${s.colour})` })));
}

function niceStep(span, steps) {
  const raw = span / steps, power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find((f) => f * power >= raw * 0.999);
}

/** An axis over a range of values: round steps, about so many, and how many digits after the point they take. */
function roundSteps(low, high, about) {
  const step = niceStep(high - low || about, about);
  const from = Math.floor(low / step + 1e-9), to = Math.ceil(high / step - 1e-9);
  return { low: from * step, high: to * step, at: Array.from({ length: to - from + 1 }, (_, i) => (from + i) * step),
    digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/** A share as a bar with its figure. */
function shareBar(share, colour) {
  return el("div", { class: "share" },
    el("div", { class: "track" }, el("div", { class: "fill", style: `width:${share * 100}%;background:var(${colour})` })),
    el("span", { class: "figure" }, percent(share)));
}

/**
 * A table that sorts by any column. Columns: {title, text, value(row), show(row), wide}; `show` gives text or
 * an element, `value` what to sort by. Shows `limit` rows until asked for all.
 */
function table(columns, rows, limit = 25) {
  const body = el("tbody");
  const more = el("button", { class: "plain", type: "button" });
  const heads = columns.map((c, index) => el("th", { class: c.text ? "text" : null, scope: "col" },
    c.value ? el("button", { type: "button", onclick: () => sortBy(index) }, c.title) : c.title));
  let shown = rows.slice();
  let all = rows.length <= limit;

  function draw() {
    body.replaceChildren(...(all ? shown : shown.slice(0, limit)).map((row) =>
      el("tr", {}, columns.map((c) => el("td", { class: [c.text ? "text" : "", c.kind || ""].join(" ").trim() || null }, c.show(row))))));
    more.textContent = all ? `show the first ${limit}` : `show all ${rows.length}`;
  }
  function sortBy(index) {
    const down = heads[index].getAttribute("aria-sort") !== "descending";
    const value = columns[index].value;
    heads.forEach((h, i) => (i === index ? h.setAttribute("aria-sort", down ? "descending" : "ascending") : h.removeAttribute("aria-sort")));
    shown = rows.slice().sort((a, b) => {
      const x = value(a), y = value(b);
      const order = typeof x === "string" ? x.localeCompare(y) : x - y;
      return down ? -order : order;
    });
    draw();
  }
  more.addEventListener("click", () => { all = !all; draw(); });
  draw();
  return el("div", {}, sideways("scroll", el("table", {}, el("thead", {}, el("tr", {}, heads)), body)),
    rows.length > limit ? more : null);
}

/** One tooltip for the whole page. */
const tip = (() => {
  const box = el("div", { class: "tip", role: "status", hidden: "" });
  return {
    box,
    show(event, text) {
      box.textContent = text;
      box.hidden = false;
      const { width, height } = box.getBoundingClientRect();
      box.style.left = `${Math.min(event.clientX + 14, innerWidth - width - 8)}px`;
      box.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18}px`;
    },
    hide() { box.hidden = true; },
  };
})();

const COLOURS = ["--computing", "--awake", "--asleep", "--io", "--transfer", "--soft"];
const MARKS = ["circle", "square", "triangle", "diamond", "cross"];

/** A point of the series of this number: series differ by shape, and by colour. */
function mark(index, x, y, size, more = {}) {
  const shape = MARKS[index % MARKS.length], s = size;
  const style = { fill: `var(${COLOURS[index % COLOURS.length]})`, "fill-opacity": 0.75, stroke: "var(--card)", ...more };
  if (shape === "circle") return svg("circle", { cx: x, cy: y, r: s, ...style });
  const d = { square: `M${x - s} ${y - s}h${2 * s}v${2 * s}h${-2 * s}z`, triangle: `M${x} ${y - 1.2 * s}l${1.2 * s} ${2.1 * s}h${-2.4 * s}z`,
    diamond: `M${x} ${y - 1.35 * s}l${1.35 * s} ${1.35 * s}l${-1.35 * s} ${1.35 * s}l${-1.35 * s} ${-1.35 * s}z`,
    cross: `M${x - s} ${y - s / 3}h${s * 2 / 3}v${-s * 2 / 3}h${s * 2 / 3}v${s * 2 / 3}h${s * 2 / 3}v${s * 2 / 3}h${-s * 2 / 3}v${s * 2 / 3}h${-s * 2 / 3}v${-s * 2 / 3}h${-s * 2 / 3}z` }[shape];
  return svg("path", { d, ...style });
}

/** The same point for a legend. */
const legendMark = (index) => svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true",
  style: "display:inline-block;width:14px;height:14px;vertical-align:-2px;margin-right:6px" }, mark(index, 8, 8, 5.5));
