// Puts the page of many runs together: sums, core time by day, programs, and every run.
const { overview } = JSON.parse(document.getElementById("data").textContent);
const { totals } = overview;
const DAYS = { left: 76, right: 1060, width: 1100, top: 14, bottom: 220 };
const MOST_DAYS = 62; // that are drawn day by day, else by month
const DAY_MS = 86400000;
const ofRuns = (n) => (n === totals.runs ? null : `of ${count(n)} of the ${plural(totals.runs, "run")}`);
const joined = (...parts) => parts.filter(Boolean).join("; ");

/** By how much energy sleeping made the runs cheaper, or dearer. */
const saved = (m) => m.energy_spinning_j - m.energy_j;

function header() {
  const day = (run) => run.started.slice(0, 10), [first, last] = [overview.runs[0], overview.runs.at(-1)].map(day);
  const meta = [plural(overview.programs.length, "program"), first === last ? first : `${first} to ${last}`, `run times together ${seconds(totals.run_time_s)}`];
  return el("header", {}, el("h1", {}, "Fallow: many runs"), el("div", { class: "command" }, plural(totals.runs, "run")),
    el("div", { class: "meta" }, meta.map((m) => el("span", {}, m))));
}

function number(label, kind, value, more, mood = "") {
  return el("div", { class: `card number ${mood}` }, el("div", { class: "label" }, label, kind ? " " : null, kind ? el("span", { class: "kind" }, kind) : null),
    el("div", { class: "value first" }, value), el("div", { class: "more" }, more));
}

function numbers() {
  const r = totals.residency, waited = r.wait_awake_s + r.wait_asleep_s, m = totals.modelled;
  return el("div", { class: "numbers" },
    number("core time", "", seconds(totals.core_time_s), `${percent(totals.mpi_share)} of it in MPI`),
    number("rested in waits", "", seconds(r.wait_asleep_s), `of core time; ${percent(totals.wait_asleep_share)} of ${seconds(waited)} that was waited`, "good"),
    number("burnt in waits", "", seconds(totals.wait_burnt_s), `at most, of ${seconds(r.wait_awake_s)} awake`),
    totals.metered.map((e) => number("energy", "metered", joules(e.energy_j), joined(e.kinds, ofRuns(e.runs)))),
    m ? number("energy", "modelled", joules(m.energy_j),
      joined(`${less(m.energy_j, m.energy_spinning_j)} than spinning: ${joules(Math.abs(saved(m)))} ${saved(m) >= 0 ? "saved" : "lost"}`, ofRuns(m.runs))) : null);
}

function warnings() {
  const lines = overview.not_read.slice(0, 20).map((n) => `left out: ${n.directory}: ${n.reason}`);
  if (overview.not_read.length > 20) lines.push(`left out: ${overview.not_read.length - 20} more`);
  lines.push(...overview.notes);
  return lines.length ? el("div", { class: "warnings", role: "note" }, el("ul", {}, lines.map((l) => el("li", {}, l)))) : null;
}

/** Core time in each state by day or month, those without runs among them. */
function periods() {
  const dated = overview.runs.filter((r) => /^\d{4}-\d\d-\d\d/.test(r.started));
  const days = dated.map((r) => Date.parse(r.started.slice(0, 10))).sort((a, b) => a - b);
  if (!days.length) return [];
  const digits = (days.at(-1) - days[0]) / DAY_MS < MOST_DAYS ? 10 : 7, found = new Map();
  for (let at = days[0]; at <= days.at(-1); at += DAY_MS) found.set(new Date(at).toISOString().slice(0, digits), { runs: 0 });
  for (const run of dated) {
    const period = found.get(run.started.slice(0, digits));
    period.runs += 1;
    for (const { key } of STATES) period[key] = (period[key] || 0) + run.sums.residency[key];
  }
  return [...found].map(([name, sums]) => ({ name, ...sums }));
}

function daysPlot(found) {
  const sum = (p) => STATES.reduce((all, { key }) => all + (p[key] || 0), 0), most = Math.max(...found.map(sum));
  const [unit, scale] = most >= 7200 ? ["h", 3600] : most >= 120 ? ["min", 60] : ["s", 1];
  const axis = roundSteps(0, most / scale || 1, 4), each = (DAYS.right - DAYS.left) / found.length;
  const y = (value) => DAYS.bottom - (value / axis.high) * (DAYS.bottom - DAYS.top);
  const grid = axis.at.flatMap((value) => [svg("line", { class: "grid", x1: DAYS.left, x2: DAYS.right, y1: y(value), y2: y(value) }),
    svg("text", { x: DAYS.left - 8, y: y(value) + 4, "text-anchor": "end" }, `${value.toFixed(axis.digits)} ${unit}`)]);
  const every = Math.ceil((found.length * 90) / (DAYS.right - DAYS.left));
  const columns = found.flatMap((p, i) => {
    const x = DAYS.left + i * each;
    let below = 0;
    const parts = STATES.map(({ key, colour }) => {
      const from = below;
      below += (p[key] || 0) / scale;
      return svg("rect", { x: x + each * 0.14, y: y(below), width: each * 0.72, height: y(from) - y(below), fill: `var(${colour})` });
    });
    const said = [`${p.name}: ${plural(p.runs, "run")}, ${seconds(sum(p))}`, ...STATES.map(({ key, name }) => `${name} ${percent((p[key] || 0) / (sum(p) || 1))}`)].join("\n");
    const name = i % every === 0 ? svg("text", { x: x + each / 2, y: DAYS.bottom + 18, "text-anchor": "middle" }, p.name) : null;
    return [...parts, name, svg("rect", { x, y: DAYS.top, width: each, height: DAYS.bottom - DAYS.top, fill: "transparent",
      onmousemove: (event) => tip.show(event, said), onmouseleave: tip.hide })];
  });
  return card(legend(), sideways("plot", svg("svg", { class: "wide", viewBox: `0 0 ${DAYS.width} ${DAYS.bottom + 26}`, role: "img",
    "aria-label": `Core time in each state, a column each from ${found[0].name} to ${found.at(-1).name}` }, ...grid, ...columns)));
}

const metered = (s) => s.metered.map((m) => joules(m.energy_j) + (totals.metered.length > 1 ? ` ${m.kinds}` : "")).join("; ") || "–";
const sums = (row) => row.sums;
const several = (of) => new Set(overview.runs.map(of)).size > 1;
const mode = (r) => r.modes.join(", ");
const sumColumns = [
  { title: "core time", value: (r) => sums(r).core_time_s, show: (r) => seconds(sums(r).core_time_s) },
  { title: "in MPI", value: (r) => sums(r).mpi_share, show: (r) => percent(sums(r).mpi_share) },
  { title: "waits awake", value: (r) => sums(r).residency.wait_awake_s, show: (r) => seconds(sums(r).residency.wait_awake_s) },
  { title: "waits asleep", value: (r) => sums(r).residency.wait_asleep_s, show: (r) => seconds(sums(r).residency.wait_asleep_s) },
  { title: "of waits", value: (r) => sums(r).wait_asleep_share, show: (r) => percent(sums(r).wait_asleep_share) },
  totals.metered.length ? { title: "energy, metered", value: (r) => sums(r).metered[0]?.energy_j ?? -1, show: (r) => metered(sums(r)) } : null,
  { title: "energy, modelled", value: (r) => sums(r).modelled?.energy_j ?? -1, show: (r) => known(sums(r).modelled, (m) => joules(m.energy_j)) },
  { title: "than spinning", value: (r) => (sums(r).modelled ? -sums(r).modelled.energy_j / (sums(r).modelled.energy_spinning_j || 1) : -2),
    show: (r) => known(sums(r).modelled, (m) => less(m.energy_j, m.energy_spinning_j)) },
].filter(Boolean);
const timeColumn = { title: "where the time went", text: true, kind: "wide", show: (r) => stack(sums(r).residency) };

function programs() {
  return card(legend(), table([
    { title: "program", text: true, value: (p) => p.program, show: (p) => p.program },
    { title: "runs", value: (p) => sums(p).runs, show: (p) => count(sums(p).runs) },
    timeColumn, ...sumColumns], overview.programs, 24));
}

function ended(r) {
  if (r.signal !== null) return `signal ${r.signal}`;
  if (r.exit_status) return `status ${r.exit_status}`;
  return r.ranks < r.ranks_expected ? `${r.ranks_expected - r.ranks} of ${r.ranks_expected} ranks lack` : r.exit_status === null ? "not known" : "well";
}

function runs() {
  const record = (r) => el("span", { title: r.command.map(quoted).join(" ") || null }, r.directory.split("/").pop());
  return card(el("p", { class: "note" }, "delay: by sleeps, not made good by later waits, of the rank that has most of it"), table([
    { title: "record", text: true, value: (r) => r.directory, show: record },
    { title: "program", text: true, value: (r) => r.program, show: (r) => r.program },
    { title: "started", text: true, value: (r) => r.started, show: (r) => r.started.replace("T", " ").slice(0, 16) },
    { title: "ranks", value: (r) => r.ranks, show: (r) => count(r.ranks) },
    several((r) => r.nodes) ? { title: "nodes", value: (r) => r.nodes, show: (r) => count(r.nodes) } : null,
    { title: "run time", value: (r) => sums(r).run_time_s, show: (r) => seconds(sums(r).run_time_s) },
    ...sumColumns,
    { title: "delay", value: (r) => r.wake_lasting_share_worst, show: (r) => percent(r.wake_lasting_share_worst, 2) },
    several(mode) ? { title: "mode", text: true, value: mode, show: mode } : null,
    { title: "ended", text: true, value: ended, show: ended },
  ].filter(Boolean), overview.runs.slice().reverse(), 40));
}

function models() {
  return overview.platforms.map((p) => card(el("h3", {}, el("span", { class: "kind" }, "modelled"), ` on ${p.platform}, ${plural(p.runs, "run")}`),
    el("ul", { class: "facts" }, p.assumptions.map((a) => el("li", {}, a)))));
}

function page() {
  const found = periods();
  return [header(), numbers(), warnings(),
    found.length > 1 ? section("Core time", found[0].name.length === 10 ? "by the day on which a run was started" : "by the month in which a run was started", daysPlot(found)) : null,
    section("Programs", "told by the names of their files; those with most core time first", programs()),
    section("Runs", "the latest first; each has a report of its own: fallow report on its record", runs()),
    overview.platforms.length ? section("What the model takes for granted", "metered and modelled figures are never added up", models()) : null,
    el("footer", {}, `Fallow ${overview.fallow_version}`)];
}

document.getElementById("page").replaceChildren(...page().filter(Boolean));
document.body.append(tip.box);
