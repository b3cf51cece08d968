// Puts the page of a sweep together: what the policies save against what they cost, and every point.
const study = JSON.parse(document.getElementById("data").textContent);
const PLOT = { left: 64, right: 1060, width: 1100, top: 14, bottom: 330 };
const WORDS = { program: "program", platform: "platform", policy: "policy" };
const UNITS = { us: "µs", ghz: "GHz", w: "W" };
const compared = study.rows.filter((r) => r.slowdown !== undefined && r.slowdown !== null && r.policy_name !== "always-on");
const failed = study.rows.filter((r) => r.status !== "done");
const shareOf = (value, digits) => known(value, (v) => percent(v, digits));

/** A column of the study's words as a heading: option_threshold_us is "threshold, µs". */
function title(key) {
  const words = key.replace(/^(synth|machine|option)_/, "").split("_"), unit = words.length > 1 ? UNITS[words.at(-1)] : undefined;
  return WORDS[key] || (unit ? `${words.slice(0, -1).join(" ")}, ${unit}` : words.join(" "));
}
/** Its value as the study's file has it. */
const said = (key, value) => (typeof value === "number" && /(lead|budget|share|jitter)$/.test(key) ? `${Number((100 * value).toPrecision(6))} %` : String(value));
const point = (r) => study.varying.filter((k) => r[k] !== undefined && r[k] !== null).map((k) => `${title(k)} ${said(k, r[k])}`).join(", ");

function header() {
  const number = (key) => new Set(study.rows.map((r) => r[key])).size;
  const meta = [plural(study.rows.length, "point"), failed.length ? `${count(failed.length)} failed` : null, plural(number("program"), "program"), plural(number("platform"), "platform"), count(number("policy_name")) + (number("policy_name") === 1 ? " policy" : " policies"),
    study.results];
  return el("header", {}, el("h1", {}, "Fallow: a study of simulations"), el("div", { class: "command" }, study.name),
    el("div", { class: "meta" }, meta.filter(Boolean).map((m) => el("span", {}, m))));
}

function warnings() {
  const told = new Map(); // each once, with how many points it is of
  for (const r of study.rows) {
    const words = r.status !== "done" ? `failed: ${r.error}` : r.notes;
    if (words) told.set(words, [...(told.get(words) || []), r]);
  }
  if (!told.size) return null;
  return el("div", { class: "warnings" }, el("ul", {}, [...told].slice(0, 12).map(([words, of]) =>
    el("li", {}, `${of.length > 1 ? plural(of.length, "point") : point(of[0])}: ${words}`))));
}

function policies() {
  if (!study.policies.length) return card(el("p", { class: "empty" }, "There is no point to compare with always-on."));
  const columns = [
    { title: "policy", text: true, value: (p) => p.name, show: (p) => p.name },
    { title: "points", value: (p) => p.points, show: (p) => count(p.points) },
    { title: "saved, edge links", kind: "wide", value: (p) => p.saved_edge_links ?? -1, show: (p) => (p.saved_edge_links === null ? "–" : shareBar(Math.max(0, p.saved_edge_links), "--asleep")) },
    { title: "saved, all", value: (p) => p.saved_total ?? -1, show: (p) => shareOf(p.saved_total) },
    { title: "slowdown", value: (p) => p.slowdown, show: (p) => shareOf(p.slowdown, 3) },
    { title: "at worst", value: (p) => p.slowdown_worst, show: (p) => shareOf(p.slowdown_worst, 3) },
  ];
  return card(table(columns, study.policies));
}

function scatter(key) {
  const rows = compared.filter((r) => r[`saved_${key}`] !== undefined && r[`saved_${key}`] !== null);
  if (!rows.length) return el("p", { class: "empty" }, "No point has energy of these.");
  const names = study.policies.map((p) => p.name), saved = (r) => r[`saved_${key}`];
  const across = roundSteps(Math.min(0, ...rows.map((r) => r.slowdown)), Math.max(0, ...rows.map((r) => r.slowdown)) || 0.001, 5);
  const up = roundSteps(Math.min(0, ...rows.map(saved)), Math.max(0.01, ...rows.map(saved)), 5);
  const axisShare = (v, axis) => percent(v, Math.max(0, axis.digits - 2));
  const x = (v) => PLOT.left + ((v - across.low) / (across.high - across.low)) * (PLOT.right - PLOT.left);
  const y = (v) => PLOT.bottom - ((v - up.low) / (up.high - up.low)) * (PLOT.bottom - PLOT.top);
  const grid = [...across.at.flatMap((v) => [svg("line", { class: "grid", x1: x(v), x2: x(v), y1: PLOT.top, y2: PLOT.bottom }),
    svg("text", { x: x(v), y: PLOT.bottom + 18, "text-anchor": "middle" }, axisShare(v, across))]),
  ...up.at.flatMap((v) => [svg("line", { class: "grid", x1: PLOT.left, x2: PLOT.right, y1: y(v), y2: y(v) }),
    svg("text", { x: PLOT.left - 8, y: y(v) + 4, "text-anchor": "end" }, axisShare(v, up))])];
  const points = rows.map((r) => mark(names.indexOf(r.policy_name), x(r.slowdown), y(saved(r)), 5.5, {
    onmousemove: (event) => tip.show(event, `${point(r)}\nsaved ${percent(saved(r))}, slower by ${percent(r.slowdown, 3)}`), onmouseleave: tip.hide }));
  const label = `${study.components[key]}: saved against slowdown, a mark a point`;
  return sideways("plot", svg("svg", { class: "wide", viewBox: `0 0 ${PLOT.width} ${PLOT.bottom + 48}`, role: "img", "aria-label": label }, ...grid,
    svg("text", { x: PLOT.right, y: PLOT.bottom + 40, "text-anchor": "end" }, "slowdown, of always-on's run time"),
    svg("text", { x: PLOT.left + 6, y: PLOT.top + 12 }, "saved, of always-on's energy"), ...points));
}

/** The picture of the component that is chosen. */
function picture() {
  const keys = Object.keys(study.components);
  if (!compared.length || !keys.length) return null;
  const place = el("div"), choice = el("select", { "aria-label": "energy of" }, keys.map((k) => el("option", { value: k }, study.components[k])));
  const draw = () => place.replaceChildren(scatter(choice.value));
  choice.addEventListener("change", draw);
  choice.value = keys.includes("edge_links") ? "edge_links" : keys[0];
  draw();
  const legends = study.policies.map((p, i) => el("span", {}, legendMark(i), p.name));
  return section("What it saves, and what it costs", "modelled; each mark is a point: the higher the better, the further to the right the slower",
    card(el("label", { class: "choice" }, "energy of ", choice), el("div", { class: "legend" }, legends), place));
}

function points() {
  const numeric = (key) => study.rows.every((r) => r[key] === undefined || r[key] === null || typeof r[key] === "number");
  const words = study.varying.map((key) => ({ title: title(key), text: !numeric(key), value: (r) => r[key] ?? (numeric(key) ? -1 : ""), show: (r) => known(r[key], (v) => said(key, v)) }));
  const share = (key, heading, digits) => ({ title: heading, value: (r) => r[key] ?? -1, show: (r) => shareOf(r[key], digits) });
  const columns = [...words,
    { title: "run time", value: (r) => r.run_time_s ?? -1, show: (r) => known(r.run_time_s, seconds) },
    share("slowdown", "slowdown", 3),
    ...Object.entries(study.components).map(([key, name]) => share(`saved_${key}`, `saved, ${name}`)),
    { title: "mispredictions", value: (r) => r.mispredictions ?? -1, show: (r) => known(r.mispredictions, count) },
    { title: "", text: true, value: (r) => r.status, show: (r) => (r.status === "done" ? "" : r.status) },
  ];
  return card(table(columns, study.rows, 50));
}

function page() {
  return [header(), warnings(), section("Policies", "medians of their points, against always-on of the same program and machine", policies()), picture(),
    section("Every point", "what the study varies, and what came of it", points()), el("footer", {}, "Energies are modelled. What that assumes, fallow sim says of any of these points.")];
}

document.getElementById("page").replaceChildren(...page().filter(Boolean));
document.body.append(tip.box);
