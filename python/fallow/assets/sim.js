// The page of a simulation: policies side by side, energy by component, ranks, links, what is assumed.
const PARTS = [
  { key: "edge_links", name: "edge links", colour: "--asleep" },
  { key: "upper_links", name: "upper links", colour: "--transfer" },
  { key: "switches", name: "switches", colour: "--computing" },
  { key: "cards", name: "network cards", colour: "--io" },
  { key: "cores", name: "cores", colour: "--awake" },
  { key: "nodes", name: "rest of nodes", colour: "--soft" },
];
const RANK_STATES = [
  { key: "computing_s", name: "computing", colour: "--computing" },
  { key: "in_calls_s", name: "in calls", colour: "--transfer" },
  { key: "waiting_s", name: "waiting awake", colour: "--awake" },
  { key: "resting_s", name: "resting", colour: "--asleep", thin: true },
];
const data = JSON.parse(document.getElementById("data").textContent);
const sims = data.simulations, base = sims[0];
const shareText = (value) => (value === null || value === undefined ? "–" : percent(value));
const signed = (share) => `${share > -5e-6 ? "+" : "−"}${percent(Math.abs(share), 3)}`;

function header() {
  const p = data.program, m = data.machine;
  return el("header", {}, el("h1", {}, "Fallow simulation"), el("div", { class: "command" }, p.name || "(program unknown)"),
    el("div", { class: "meta" }, el("span", {}, plural(p.ranks, "rank")), el("span", {}, plural(p.events, "call")),
      el("span", {}, `machine ${m.name}`), el("span", {}, m.topology), el("span", {}, "all energy is modelled")),
    p.notes.length ? el("div", { class: "warnings" }, el("ul", {}, p.notes.map((n) => el("li", {}, n)))) : null);
}

function numbers() {
  const others = sims.slice(1);
  const real = others.filter((s) => s.policy !== "oracle" && s.options.core !== "oracle"); // that one knows every gap in advance: a bound
  const best = (real.length ? real : others).reduce((a, b) => ((b.saved_share.total ?? -1) > (a?.saved_share.total ?? -1) ? b : a), null);
  const number = (label, value, more) => el("div", { class: "card number" }, el("div", { class: "label" }, label), el("div", { class: "value first" }, value),
    el("div", { class: "more" }, more));
  return el("div", { class: "numbers" },
    number("run time, always on", seconds(base.run_time_s), `${plural(data.program.ranks, "rank")} on ${data.machine.name}`),
    number("energy, always on", joules(base.energy_model_j.total), drawn().map((p) => p.name).join(", ")),
    best ? number(real.length && real.length < others.length ? "most saved, the oracle aside" : "most saved", shareText(best.saved_share.total), best.label) : null,
    best ? number("at a slowdown of", signed(best.slowdown), best.label) : null);
}

function policies() {
  const columns = [
    { title: "policy", text: true, kind: "place", value: (s) => s.label, show: (s) => s.label },
    { title: "run time", value: (s) => s.run_time_s, show: (s) => seconds(s.run_time_s) },
    { title: "slowdown", value: (s) => s.slowdown, show: (s) => signed(s.slowdown) },
    { title: "energy", value: (s) => s.energy_model_j.total, show: (s) => joules(s.energy_model_j.total) },
    { title: "saved", value: (s) => s.saved_share.total, show: (s) => shareText(s.saved_share.total) },
    { title: "edge links saved", value: (s) => s.saved_share.edge_links ?? 0, show: (s) => shareText(s.saved_share.edge_links) },
    { title: "edge links at rest", value: (s) => s.rest_share.edge_links ?? 0, show: (s) => shareText(s.rest_share.edge_links) },
    { title: "upper links at rest", value: (s) => s.rest_share.upper_links ?? 0, show: (s) => shareText(s.rest_share.upper_links) },
    { title: "cores at rest", value: (s) => s.rest_share.cores ?? 0, show: (s) => shareText(s.rest_share.cores) },
    { title: "mispredicted", value: (s) => s.mispredictions, show: (s) => count(s.mispredictions) },
    { title: "late messages", value: (s) => s.late_messages, show: (s) => count(s.late_messages) },
    { title: "they waited", value: (s) => s.wake_delay_s, show: (s) => seconds(s.wake_delay_s) },
  ];
  return section("Policies", "against everything always on", card(table(columns, sims)));
}

const drawn = () => PARTS.filter((p) => base.energy_model_j[p.key] > 0);

/** Energy of each component, and below it what is saved of it and how long it rests. */
function components() {
  const cell = (s, p) => {
    const saved = s === base ? [] : [`${shareText(s.saved_share[p.key])} saved`];
    const rest = s.rest_share[p.key] === null ? [] : [`${shareText(s.rest_share[p.key])} at rest`];
    return el("span", {}, joules(s.energy_model_j[p.key]), [...saved, ...rest].map((t) => el("small", {}, t)));
  };
  return table([{ title: "policy", text: true, kind: "place", value: (s) => s.label, show: (s) => s.label },
    ...drawn().map((p) => ({ title: p.name, value: (s) => s.energy_model_j[p.key], show: (s) => cell(s, p) }))], sims);
}

function energies() {
  const top = Math.max(...sims.map((s) => s.energy_model_j.total), 1e-12);
  const row = (s) => {
    const said = PARTS.map((p) => `${p.name} ${joules(s.energy_model_j[p.key])}, ${shareText(s.rest_share[p.key])} at rest`).join("\n");
    return el("tr", {}, el("td", { class: "text place" }, s.label),
      el("td", { class: "wide" }, el("div", { class: "stack tall", role: "img", "aria-label": said, title: said },
        PARTS.map((p) => el("b", { style: `width:${(s.energy_model_j[p.key] / top) * 100}%;background:var(${p.colour})` })))),
      el("td", {}, joules(s.energy_model_j.total)), el("td", {}, shareText(s.saved_share.total)));
  };
  return section("Energy", "modelled, by component", card(legend(drawn()), sideways("scroll", el("table", {},
    el("thead", {}, el("tr", {}, ["policy", "by component", "total", "saved"].map((t, i) => el("th", { class: i < 2 ? "text" : null, scope: "col" }, t)))),
    el("tbody", {}, sims.map(row)))), sideways("plot", components())));
}

function rankStates(r) {
  const total = RANK_STATES.reduce((sum, s) => sum + r[s.key], 0) || 1;
  const said = RANK_STATES.map((s) => `${s.name} ${percent(r[s.key] / total)}`).join("\n");
  return el("div", { class: "stack", role: "img", "aria-label": said, title: said },
    RANK_STATES.map((s) => el("b", { style: `width:${(r[s.key] / total) * 100}%;background:var(${s.colour})` })));
}

/** A card whose content follows the policy that is chosen. */
function chosen(title, small, render, has = (s) => s.ranks.length || s.links.length) {
  const usable = sims.filter(has);
  if (!usable.length) return null;
  const place = el("div");
  const choice = el("select", { "aria-label": "policy" }, usable.map((s, i) => el("option", { value: i }, s.label)));
  const draw = () => place.replaceChildren(render(usable[choice.value]));
  choice.addEventListener("change", draw);
  choice.value = usable.length - 1;
  draw();
  return section(title, small, card(el("label", { class: "choice" }, "policy ", choice), place));
}

function ranks(s) {
  const columns = [
    { title: "rank", value: (r) => r.rank, show: (r) => String(r.rank) },
    { title: "time", text: true, kind: "wide", show: rankStates },
    { title: "computing", value: (r) => r.computing_s, show: (r) => seconds(r.computing_s) },
    { title: "waiting awake", value: (r) => r.waiting_s, show: (r) => seconds(r.waiting_s) },
    { title: "resting", value: (r) => r.resting_s, show: (r) => seconds(r.resting_s) },
    { title: "calls", value: (r) => r.calls, show: (r) => count(r.calls) },
    { title: "mispredicted", value: (r) => r.mispredictions, show: (r) => count(r.mispredictions) },
  ];
  return el("div", {}, legend(RANK_STATES), table(columns, s.ranks));
}

function links(s) {
  const names = { up: "card to switch", down: "switch to card", upper: "between switches" };
  const rest = (l) => (l.low_s + l.deep_s) / (s.run_time_s || 1);
  const columns = [
    { title: "link", text: true, value: (l) => names[l.kind], show: (l) => names[l.kind] },
    { title: "number", value: (l) => l.number, show: (l) => String(l.number) },
    { title: "at rest", kind: "wide", value: rest, show: (l) => shareBar(rest(l), "--asleep") },
    { title: "sending", value: (l) => l.busy_s, show: (l) => seconds(l.busy_s) },
    { title: "rests", value: (l) => l.rests, show: (l) => count(l.rests) },
    { title: "late messages", value: (l) => l.late, show: (l) => count(l.late) },
    { title: "they waited", value: (l) => l.delay_s, show: (l) => seconds(l.delay_s) },
  ];
  return table(columns, s.links);
}

function assumed() {
  return section("What these figures assume", null, card(el("ul", { class: "facts" }, data.assumptions.map((a) => el("li", {}, a)))));
}

// Link rows: idle is the empty track; at rest is thin, as a sleeping core is.
const LINK_STATES = [
  { name: "link sending", colour: "--computing" },
  { name: "link at rest", colour: "--asleep", thin: true },
  { name: "link in its deeper rest", colour: "--accent", thin: true },
  { name: "link changing width", colour: "--io" },
];
const TIME_STATES = [...STATES.map((s) => (s.key === "wait_asleep_s" ? { ...s, name: "core at rest" } : s)), ...LINK_STATES];

function linkRow(row) {
  const s = { start: [], end: [], state: [], event: [] };
  const spans = [];
  for (let i = 0; i < row.spans.length; i += 3) spans.push([row.spans[i], row.spans[i + 1], row.spans[i + 2]]);
  spans.sort((a, b) => a[0] - b[0]);
  for (const [begin, duration, state] of spans) {
    s.start.push(begin); s.end.push(begin + duration); s.state.push(STATES.length + state); s.event.push(-1);
  }
  const name = `link ${row.direction ? "from" : "to"} switch`;
  return { label: row.direction ? "↓ link" : "↑ link", segments: s, events: spans.length ? [spans[0], spans.at(-1)] : [],
    describe: (t, i) => `node ${row.node}, ${name}: ${TIME_STATES[t.state[i]].name.replace("link ", "")}\n${seconds((t.end[i] - t.start[i]) * 1e-9)}` };
}

function rankRow(row, from) {
  const events = [];
  for (let i = 0; i < row.spans.length; i += 5) {
    const [begin, duration, name, awake, asleep] = row.spans.slice(i, i + 5);
    events.push([begin, duration, name, awake / 1000, asleep / 1000, -1, 0]);
  }
  // What it computes after its last call here, or without any, is no call's.
  const segments = segmentsOf({ events, from }, []), at = events.length ? events.at(-1)[0] + events.at(-1)[1] : from;
  if (row.until_ns > at) {
    segments.start.push(at); segments.end.push(row.until_ns); segments.state.push(0); segments.event.push(-1);
  }
  if (!events.length) events.push([from, Math.max(0, row.until_ns - from), 0, 0, 0, -1, 0]);
  return { rank: row.rank, thread: 0, events, segments };
}

function timelineOf(s) {
  const t = s.timeline, perNode = data.machine.ranks_per_node, rows = [];
  for (const row of t.ranks) {
    rows.push(rankRow(row, t.from_ns));
    if (row.rank % perNode !== 0) continue;
    rows.push(...t.links.filter((l) => l.node === row.rank / perNode).map(linkRow));
  }
  return { rows, functions: t.functions, kinds: t.functions.map(() => ""), states: TIME_STATES, resting: "at rest" };
}

function drawTimeline(s) {
  const view = new TimelineView(timelineOf(s));
  const start = Math.min(...view.segments.filter((x) => x.start.length).map((x) => x.start[0]));
  const end = Math.max(...view.segments.filter((x) => x.end.length).map((x) => x.end.at(-1)));
  const window = s.timeline;  // calls and rests that cross its ends are drawn within
  view.full = [Math.max(window.from_ns, Math.min(start, view.full[0])), Math.min(window.to_ns ?? Infinity, Math.max(end, view.full[1]))];
  const span = Math.min(view.full[1] - view.full[0], 12e6);
  view.home = [view.full[0], view.full[0] + span];
  view.view = view.home.slice();
  const button = (text, action) => el("button", { class: "plain", type: "button", onclick: action }, text);
  const until = s.timeline.complete_until_ns;
  return el("div", {}, legend(TIME_STATES.filter((x) => x.name !== "file access")), view.canvas, button("zoom in", () => view.zoom(0.5)),
    button("zoom out", () => view.zoom(2)), button("the beginning", () => view.reset(view.home)), button("everything", () => view.reset(view.full)), view.note(),
    until === null ? null : el("p", { class: "note" }, `Drawn until ${seconds(until * 1e-9)}; beyond, there is more than a page holds: choose a window (--window).`));
}

function timelines() {
  return chosen("Timeline", "calls of ranks, what their cores and links did: click, then the wheel zooms; drag to move; or by plus, minus and the arrow keys", drawTimeline, (s) => s.timeline && s.timeline.ranks.length);
}

const PATH_STATES = [
  { key: "computing_s", name: "computing", colour: "--computing" },
  { key: "in_calls_s", name: "in calls", colour: "--io" },
  { key: "transfer_s", name: "messages under way", colour: "--transfer" },
  { key: "link_wake_s", name: "links waking", colour: "--awake" },
  { key: "core_wake_s", name: "cores waking", colour: "--asleep" },
];

function criticalPath() {
  const render = (s) => {
    const p = s.critical_path, whole = s.run_time_s || 1;
    const said = PATH_STATES.map((x) => `${x.name} ${percent(p.total[x.key] / whole)}`).join("\n");
    const columns = [
      { title: "rank", value: (r) => r.rank ?? -1, show: (r) => (r.rank === null ? "not known any more" : String(r.rank)) },
      { title: "share of the path", kind: "wide", value: (r) => r.total_s, show: (r) => shareBar(r.total_s / whole, "--computing") },
      ...PATH_STATES.map((x) => ({ title: x.name, value: (r) => r[x.key], show: (r) => seconds(r[x.key]) })),
    ];
    return el("div", {}, legend(PATH_STATES), el("div", { class: "stack tall", role: "img", "aria-label": said, title: said },
      PATH_STATES.map((x) => el("b", { style: `width:${(p.total[x.key] / whole) * 100}%;background:var(${x.colour})` }))),
      el("p", { class: "note" }, `${PATH_STATES.map((x) => `${x.name} ${seconds(p.total[x.key])}`).join(" · ")} · over ${count(p.messages)} messages`),
      table(columns, p.ranks.slice().sort((a, b) => b.total_s - a.total_s), 10));
  };
  return chosen("Critical path", "what the run time consists of", render, (s) => s.critical_path);
}

document.getElementById("page").replaceChildren(...[header(), numbers(), policies(), energies(), timelines(), criticalPath(),
  chosen("Ranks", "what each did", ranks), chosen("Links", "what each carried and how it rested", links), assumed(),
  el("footer", {}, "Everything on this page is modelled; nothing was measured.")].filter((x) => x !== null), tip.box);
