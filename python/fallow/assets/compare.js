// Puts the page of a comparison together: what each quantity is with Fallow by what it is without, every run, and both as tables.
const { comparison, notes } = JSON.parse(document.getElementById("data").textContent);
const SHOWN = { s: seconds, J: joules, "J s": jouleSeconds };
const AXIS = { left: 176, right: 860, width: 1100 };
const RUNS = { left: 76, right: 628, width: 640, top: 14, bottom: 190 };
const TRIED = [
  { name: "run time", unit: "s", of: (t) => t.run_time_s },
  { name: "CPU time", unit: "s", of: (t) => t.cpu_s },
  { name: "energy, metered", unit: "J", of: (t) => t.metered_j },
  { name: "energy, modelled", unit: "J", of: (t) => t.modelled_j },
];
const metric = (name) => comparison.metrics.find((m) => m.name === name);
const sides = (m) => [m?.bare, m?.fallow].map((side) => side?.n ?? 0);
const counted = comparison.trials.slice(0, sides(metric("run time")).reduce((a, b) => a + b, 0)); // without one that was interrupted
const three = (value) => value.toFixed(3);
const judged = (r) => (r.high < 1 ? "good" : r.low > 1 ? "bad" : "");

function header() {
  const [bare, fallow] = sides(metric("run time"));
  const mode = comparison.options.mode ? `mode ${comparison.options.mode}` : null;
  const meta = [`${plural(bare, "run")} without and ${count(fallow)} with Fallow, alternating`, mode, `Fallow ${comparison.fallow_version}`, comparison.directory];
  return el("header", {}, el("h1", {}, "Fallow: with and without"), el("div", { class: "command" }, comparison.command.join(" ")),
    el("div", { class: "meta" }, meta.filter(Boolean).map((m) => el("span", {}, m))));
}

function warnings() {
  if (!comparison.warnings.length) return null;
  return el("div", { class: "warnings" }, el("ul", {}, comparison.warnings.map((w) => el("li", {}, w))));
}

function numbers() {
  const one = (label, value, more, mood = "") => el("div", { class: `card number ${mood}` }, el("div", { class: "label" }, label),
    el("div", { class: "value first" }, value), el("div", { class: "more" }, more));
  const cards = TRIED.map(({ name }) => metric(name)).filter((m) => m?.ratio).map((m) =>
    one(m.name, `× ${three(m.ratio.median)}`, `${three(m.ratio.low)} to ${three(m.ratio.high)}; ${SHOWN[m.unit](m.bare.median)} without`, judged(m.ratio)));
  const awake = metric("waits awake")?.fallow, asleep = metric("waits asleep")?.fallow;
  if (awake && asleep && awake.median + asleep.median > 0) {
    cards.push(one("waits asleep", percent(asleep.median / (awake.median + asleep.median)), "of the time in waits, with Fallow"));
  }
  return el("div", { class: "numbers" }, cards);
}

/** A line from the lowest to the highest ratio that the runs allow, and a point at that of the medians; at 1 nothing changes. */
function ratioPlot() {
  const rows = comparison.metrics.filter((m) => m.ratio);
  if (!rows.length) return el("p", { class: "empty" }, "There is nothing to compare with.");
  const axis = roundSteps(Math.min(1, ...rows.map((m) => m.ratio.low)), Math.max(1, ...rows.map((m) => m.ratio.high)), 4);
  const x = (value) => AXIS.left + ((value - axis.low) / (axis.high - axis.low || 1)) * (AXIS.right - AXIS.left);
  const bottom = 16 + 30 * rows.length;
  const grid = axis.at.flatMap((value) => [svg("line", { class: "grid", x1: x(value), x2: x(value), y1: 8, y2: bottom }),
    svg("text", { x: x(value), y: bottom + 16, "text-anchor": "middle" }, value.toFixed(Math.max(axis.digits, 1)))]);
  const drawn = rows.flatMap((m, i) => {
    const y = 26 + 30 * i, r = m.ratio, colour = { good: "var(--asleep)", bad: "var(--awake)" }[judged(r)] || "var(--soft)";
    return [svg("text", { x: AXIS.left - 12, y: y + 4, "text-anchor": "end" }, m.name),
      svg("line", { x1: x(r.low), x2: x(r.high), y1: y, y2: y, style: `stroke:${colour};stroke-width:4;stroke-linecap:round` }),
      svg("circle", { cx: x(r.median), cy: y, r: 6.5, fill: colour, stroke: "var(--card)", "stroke-width": 2 }),
      svg("text", { x: AXIS.right + 16, y: y + 4 }, `${three(r.median)}   (${three(r.low)} to ${three(r.high)})`)];
  });
  const said = rows.map((m) => `${m.name} ${three(m.ratio.median)}, ${three(m.ratio.low)} to ${three(m.ratio.high)}`).join("; ");
  return sideways("plot", svg("svg", { class: "wide", viewBox: `0 0 ${AXIS.width} ${bottom + 26}`, role: "img", "aria-label": `With Fallow by without: ${said}` },
    ...grid, svg("line", { class: "edge", x1: x(1), x2: x(1), y1: 2, y2: bottom }), ...drawn));
}

/** Every run as a point, in the order in which they were made, and the medians as lines. */
function runsPlot({ name, unit, of }) {
  const points = counted.filter((t) => of(t) !== null);
  const values = points.map(of), least = Math.min(...values), most = Math.max(...values);
  const room = (most - least) * 0.06 || Math.abs(most) * 0.05 || 1;
  const axis = roundSteps(least - room, most + room, 4), last = Math.max(...counted.map((t) => t.number), 2);
  const x = (number) => RUNS.left + 16 + ((number - 1) / (last - 1)) * (RUNS.right - RUNS.left - 32);
  const y = (value) => RUNS.bottom - ((value - axis.low) / (axis.high - axis.low)) * (RUNS.bottom - RUNS.top);
  const grid = axis.at.flatMap((value) => [svg("line", { class: "grid", x1: RUNS.left, x2: RUNS.right, y1: y(value), y2: y(value) }),
    svg("text", { x: RUNS.left - 8, y: y(value) + 4, "text-anchor": "end" }, `${value.toFixed(axis.digits)} ${unit}`)]);
  const every = Math.ceil(last / 20);
  const turns = counted.filter((t) => (t.number - 1) % every === 0).map((t) => svg("text", { x: x(t.number), y: RUNS.bottom + 18, "text-anchor": "middle" }, String(t.number)));
  const m = metric(name);
  const medians = [[m.bare, "--awake", "6 5"], [m.fallow, "--asleep", null]].filter(([side]) => side).map(([side, colour, dashes]) =>
    svg("line", { x1: RUNS.left, x2: RUNS.right, y1: y(side.median), y2: y(side.median), style: `stroke:var(${colour});stroke-width:1.5`, "stroke-dasharray": dashes }));
  const marks = points.map((t) => {
    const colour = t.with_fallow ? "var(--asleep)" : "var(--awake)";
    const said = `run ${t.number}, ${t.with_fallow ? "with Fallow" : "without"}\n${name} ${SHOWN[unit](of(t))}`;
    return svg("circle", { cx: x(t.number), cy: y(of(t)), r: 6, fill: t.with_fallow ? colour : "var(--card)", stroke: colour, "stroke-width": 2.5,
      onmousemove: (event) => tip.show(event, said), onmouseleave: tip.hide });
  });
  return card(el("h3", {}, name), sideways("plot", svg("svg", { viewBox: `0 0 ${RUNS.width} ${RUNS.bottom + 26}`, role: "img", "aria-label": `${name} of each run` },
    ...grid, ...turns, ...medians, ...marks)));
}

function runsSection() {
  const tried = TRIED.filter(({ name, of }) => metric(name) && counted.some((t) => of(t) !== null));
  if (!tried.length) return null;
  const circle = (colour, filled) => svg("svg", { viewBox: "0 0 14 14", style: "display:inline-block;width:13px;height:13px;vertical-align:-2px;margin-right:6px", "aria-hidden": "true" },
    svg("circle", { cx: 7, cy: 7, r: 5, fill: filled ? colour : "none", stroke: colour, "stroke-width": 2.5 }));
  return section("Runs", "in the order in which they were made; axes do not begin at zero",
    el("div", { class: "legend" }, el("span", {}, circle("var(--awake)", false), "without (median: dashed line)"),
      el("span", {}, circle("var(--asleep)", true), "with Fallow (median: line)")),
    el("div", { class: "pair" }, tried.map(runsPlot)));
}

function figures() {
  const side = (s, unit) => known(s, (v) => SHOWN[unit](v.median));
  const range = (s, unit) => known(s, (v) => `${SHOWN[unit](v.low)} to ${SHOWN[unit](v.high)}`);
  const columns = [
    { title: "", text: true, show: (m) => m.name },
    { title: "without", show: (m) => side(m.bare, m.unit) },
    { title: "range", show: (m) => range(m.bare, m.unit) },
    { title: "with Fallow", show: (m) => side(m.fallow, m.unit) },
    { title: "range", show: (m) => range(m.fallow, m.unit) },
    { title: "ratio", show: (m) => known(m.ratio, (r) => three(r.median)) },
    { title: "its spread", show: (m) => known(m.ratio, (r) => `${three(r.low)} to ${three(r.high)}`) },
  ];
  const modelled = comparison.metrics.filter((m) => m.name.endsWith("modelled")), rows = comparison.metrics.filter((m) => !modelled.includes(m));
  return [card(el("h3", {}, "Measured"), table(columns, rows)), modelled.length ? card(el("h3", {}, "Modelled"), table(columns, modelled)) : null,
    el("ul", { class: "note" }, notes.map((note) => el("li", {}, note)))];
}

const ended = (t) => (t.signal !== null ? `signal ${t.signal}` : `status ${t.exit_status}`);

function trials() {
  const columns = [
    { title: "run", value: (t) => t.number, show: (t) => String(t.number) },
    { title: "", text: true, value: (t) => Number(t.with_fallow), show: (t) => (t.with_fallow ? "with Fallow" : "without") },
    { title: "run time", value: (t) => t.run_time_s, show: (t) => seconds(t.run_time_s) },
    { title: "CPU time", value: (t) => t.cpu_s, show: (t) => seconds(t.cpu_s) },
    { title: "waits awake", value: (t) => t.wait_awake_s ?? -1, show: (t) => known(t.wait_awake_s, seconds) },
    { title: "waits asleep", value: (t) => t.wait_asleep_s ?? -1, show: (t) => known(t.wait_asleep_s, seconds) },
    { title: "energy, metered", value: (t) => t.metered_j ?? -1, show: (t) => known(t.metered_j, joules) },
    { title: "energy, modelled", value: (t) => t.modelled_j ?? -1, show: (t) => known(t.modelled_j, joules) },
    { title: "cores that others used", value: (t) => t.other_cores ?? -1, show: (t) => known(t.other_cores, (v) => v.toFixed(2)) },
    { title: "ended", text: true, value: ended, show: (t) => ended(t) + (t.number > counted.length ? ", not counted" : "") },
    { title: "record", text: true, value: (t) => t.directory, show: (t) => t.directory },
  ];
  return card(table(columns, comparison.trials, 40));
}

function page() {
  return [header(), warnings(), numbers(),
    section("Ratios", "with Fallow by without, of medians; the line is the spread, and at 1 nothing changes", card(ratioPlot())),
    runsSection(),
    section("Figures", "medians of the runs, and from the smallest to the largest", figures()),
    section("Every run", "each has a report of its own: fallow report on its record", trials()),
    el("footer", {}, comparison.directory)];
}

document.getElementById("page").replaceChildren(...page().filter(Boolean));
document.body.append(tip.box);
