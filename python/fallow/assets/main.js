// Puts the page together from one report, or from two side by side.
const FAMILY = { openmpi: "Open MPI", mpich: "MPICH", mpiabi: "MPI 5 ABI" };
const data = JSON.parse(document.getElementById("data").textContent);
const reports = data.reports || [data];
const two = reports.length === 2;
const NAMES = ["A", "B"];
const called = (index) => (two ? `${NAMES[index]}: ${reports[index].run.directory.split("/").pop()}` : "");

/** The library as it calls itself, and the families where that does not say it. */
function library({ mpi, families }) {
  if (families.length === 1 && mpi) return families[0] === "mpiabi" ? `${mpi} (${FAMILY.mpiabi})` : mpi;
  return families.map((f) => FAMILY[f] || f).join(", ");
}

function header() {
  return el("header", {}, el("h1", {}, two ? "Fallow: two runs" : "Fallow report"), reports.map((r, i) => {
    const where = r.run.hosts.length === 1 ? r.run.hosts[0] : `${r.run.hosts.length} nodes`;
    const meta = [r.run.started.replace("T", " "), `${plural(r.totals.ranks, "rank")} on ${where}`,
      library(r.run), `wait mode ${r.run.modes.join(", ")}`, plural(r.totals.calls, "MPI call")];
    if (r.run.signal !== null) meta.push(`ended by signal ${r.run.signal}`);
    else if (r.run.exit_status) meta.push(`exit status ${r.run.exit_status}`);
    return el("div", { style: i ? "margin-top:14px" : null },
      el("div", { class: "command" }, two ? `${NAMES[i]}  ` : "", r.run.command.map(quoted).join(" ") || r.run.program),
      el("div", { class: "meta" }, meta.map((m) => el("span", {}, m))));
  }));
}

/** What metered energy is of. */
const kinds = (metered) => [...new Set(metered.domains.filter((d) => d.counted).map((d) => d.kind))].sort().join(", ");

/** One headline number; `of(report)` gives {value, show, more, mood, of}, or null where a run lacks it. What differs
 * in what it is of has no ratio. */
function number(label, kind, of) {
  const found = reports.map(of);
  if (found.every((f) => f === null)) return null;
  const mood = two ? "" : found[0].mood;
  const values = found.map((f, i) => el("div", { class: i ? "value second" : "value first" },
    two ? el("span", { class: "tag" }, NAMES[i]) : null, f ? f.show : "–",
    i === 1 && f && found[0] && f.value !== undefined && f.of === found[0].of ? el("span", { class: "tag", style: "margin-left:.6em" }, ratio(f.value, found[0].value)) : null));
  return el("div", { class: `card number ${mood || ""}` }, el("div", { class: "label" }, label, kind ? " " : null,
    kind ? el("span", { class: "kind" }, kind) : null), values, el("div", { class: "more" }, two ? "" : found[0].more || ""));
}

/** Whether the delay that lasts passes the budget. */
const overBudget = (t) => t.slowdown_budget > 0 && t.wake_lasting_share_worst > t.slowdown_budget;

/** Ranks waited for cores. */
const waitedForCores = (t) => t.wait_burnt_s < 0.9 * t.residency.wait_awake_s;

/** What share of the time awake ranks had a core for. */
const coreHad = ({ residency: r, cpu_ranks_s }) => cpu_ranks_s / (r.computing_s + r.transfer_s + r.wait_awake_s || 1);
const MOSTLY_ON_CORES = 0.8;

/** What is to be said of the waits' time on cores, as the report in the terminal has it. */
function burnt(t) {
  if (waitedForCores(t)) return `at most, of ${seconds(t.residency.wait_awake_s)} awake: ranks waited for cores, too`;
  const share = `${percent(t.wait_burnt_s / (t.core_time_s || 1))} of core time`, awake = seconds(t.residency.wait_awake_s), had = coreHad(t);
  const less = seconds(t.wait_burnt_s) === awake ? "" : `of ${awake} awake; `;
  if (had <= 0 || had >= MOSTLY_ON_CORES) return `${less}${share}`;
  return `at most${less ? `, ${less}` : "; "}${share}. Ranks had a core for ${percent(had)} of their time awake`;
}

const DISTURBED_CORES = 0.05;

const processors = (number) => `${+number.toPrecision(3)} processor${number === 1 ? "" : "s"}`;

/** Ranks waited for cores, or others used some of one on the job's only node, or a limit did: as the report in the terminal has it. */
const coresAreShort = ({ totals: t, run }) =>
  waitedForCores(t) || ((run.hosts.length === 1 && run.other_busy_s) || 0) + (run.throttled_s || 0) > DISTURBED_CORES * run.run_time_s;

function numbers() {
  const cards = [
    number("run time", "", ({ totals: t }) => ({ value: t.run_time_s, show: seconds(t.run_time_s), more: `${seconds(t.core_time_s)} of core time` })),
    number("in MPI", "", ({ totals: t }) => ({ value: t.mpi_share, show: percent(t.mpi_share), more: `${seconds(t.mpi_share * t.core_time_s)} of core time` })),
    number("rested in waits", "", ({ totals: t }) => ({ value: t.residency.wait_asleep_s, show: seconds(t.residency.wait_asleep_s), mood: "good",
      more: `of core time; ${percent(t.wait_asleep_share)} of what was waited` })),
    number("burnt in waits", "", ({ totals: t }) => ({ value: t.wait_burnt_s, show: seconds(t.wait_burnt_s),
      more: burnt(t) })),
    number("throttled", "", ({ run: r }) => ((r.throttled_s || 0) > DISTURBED_CORES * r.run_time_s && r.processor_limit ? { value: r.throttled_s,
      show: seconds(r.throttled_s), more: `of core time; control groups give the command the time of ${processors(r.processor_limit)}` } : null)),
    number("wake-up delay", "", ({ totals: t, run }) => ({ value: t.wake_delay_share, show: percent(t.wake_delay_share, 2),
      mood: overBudget(t) ? "bad" : "",
      more: `of which ${percent(t.wake_absorbed_share, 2)} made good by later waits; ` +
        `worst rank's rest ${percent(t.wake_lasting_share_worst, 2)}, budget ${percent(t.slowdown_budget, 2)}` +
        (overBudget(t) && coresAreShort({ totals: t, run }) ? ", which does not bound sleeps where cores are short" : "") })),
    number("waking others", "", ({ totals: t }) => (t.wake_send_s > 0 ? { value: t.wake_send_s, show: seconds(t.wake_send_s),
      more: `${percent(t.wake_send_s / (t.core_time_s || 1), 2)} of core time, in the calls of those whom they waited for` } : null)),
    number("energy", "metered", ({ energy: { metered: m } }) => (m === null || m.energy_j === null ? null : { value: m.energy_j,
      show: joules(m.energy_j), of: kinds(m), more: `energy-delay ${jouleSeconds(m.energy_delay_js)}${m.coverage ? `; ${m.coverage}` : ""}` })),
    number("energy", "modelled", ({ energy: { modelled: m } }) => (m === null ? null : { value: m.energy_j, show: joules(m.energy_j),
      more: `${less(m.energy_j, m.energy_spinning_j)} than spinning, cores alone ${less(m.cores_j, m.cores_spinning_j)}; energy-delay ${jouleSeconds(m.energy_delay_js)}` })),
  ];
  return el("div", { class: "numbers" }, cards);
}

function warnings() {
  const lines = reports.flatMap((r, i) => {
    const h = r.health, tag = two ? `${NAMES[i]}: ` : "", out = [];
    if (h.ranks_read < h.ranks_expected) out.push(`${h.ranks_expected - h.ranks_read} of ${h.ranks_expected} ranks left no readable record`);
    h.unreadable.slice(0, 20).forEach((u) => out.push(`${u.file}: ${u.reason}`));
    if (h.unreadable.length > 20) out.push(`${h.unreadable.length - 20} more files could not be read`);
    out.push(...h.early.slice(0, 20));
    if (h.early.length > 20) out.push(`${h.early.length - 20} more places where ranks ended early`);
    if (h.threads_dropped) out.push(`not recorded: ${h.threads_dropped} thread${h.threads_dropped === 1 ? "" : "s"}, beyond 64 of a rank, without room on disk, or without access to it by then`);
    return out.concat(h.notes).map((line) => tag + line);
  });
  return lines.length ? el("div", { class: "warnings", role: "note" }, el("ul", {}, lines.map((l) => el("li", {}, l)))) : null;
}

const each = (make) => el("div", { class: two ? "pair" : "" }, reports.map((r, i) => make(r, called(i))));

function ranksCard(report, title) {
  const share = (s) => (r) => r.residency[s.key] / (r.core_time_s || 1);
  const columns = [
    { title: "rank", value: (r) => r.program * 2 ** 32 + r.rank, show: (r) => r.label },
    { title: "where the time went", text: true, kind: "wide", show: (r) => stack(r.residency) },
    ...STATES.map((s) => ({ title: s.name, value: share(s), show: (r) => percent(share(s)(r)) })),
    { title: "wake-up delay", value: (r) => r.wake_delay_share, show: (r) => percent(r.wake_delay_share, 2) },
    { title: "not made good", value: (r) => r.wake_lasting_share, show: (r) => percent(r.wake_lasting_share, 2) },
    { title: "CPU", value: (r) => r.cpu_user_s + r.cpu_system_s, show: (r) => seconds(r.cpu_user_s + r.cpu_system_s) },
    { title: "sleeps", value: (r) => r.sleeps, show: (r) => count(r.sleeps) },
  ];
  if (report.run.hosts.length > 1) columns.push({ title: "node", text: true, value: (r) => r.host, show: (r) => r.host });
  if (report.ranks.some((r) => r.end !== "finalized")) columns.push({ title: "end", text: true, value: (r) => r.end, show: (r) => r.end });
  return card(title ? el("h3", {}, title) : null, legend(), stack(report.totals.residency, true),
    report.ranks.length > 24 ? rankStrip(report.ranks) : null, el("div", { style: "height:14px" }), table(columns, report.ranks, 16));
}

const waitColumns = [
  { title: "time", value: (f) => f.time_s, show: (f) => seconds(f.time_s) },
  { title: "waits awake", value: (f) => f.wait_awake_s, show: (f) => seconds(f.wait_awake_s) },
  { title: "waits asleep", value: (f) => f.wait_asleep_s, show: (f) => seconds(f.wait_asleep_s) },
  { title: "wake-up delay", value: (f) => f.wake_delay_s, show: (f) => seconds(f.wake_delay_s) },
  { title: "data", value: (f) => f.size_bytes, show: (f) => size(f.size_bytes) },
];
const callColumn = { title: "calls", value: (f) => f.calls, show: (f) => count(f.calls) };

function functionsCard(report, title) {
  const all = report.functions.reduce((sum, f) => sum + f.time_s, 0) || 1;
  return card(title ? el("h3", {}, title) : null, table([
    { title: "function", text: true, value: (f) => f.function, show: (f) => f.function },
    { title: "share of MPI time", text: true, kind: "wide", value: (f) => f.time_s, show: (f) => shareBar(f.time_s / all, "--computing") },
    callColumn, ...waitColumns], report.functions, 16));
}

function sitesCard(report, title) {
  const place = (s) => el("span", {}, s.symbol, el("small", {}, s.source || (s.module ? `${s.module} +0x${s.offset.toString(16)}` : "")));
  return card(title ? el("h3", {}, title) : null, table([
    { title: "called from", text: true, kind: "place", value: (s) => s.symbol, show: place },
    { title: "function", text: true, value: (s) => s.function, show: (s) => s.function },
    { title: "comm. (size)", value: (s) => s.comm, show: (s) => (s.comm === 0xffff ? "several" : s.comm_size ? `${s.comm} (${s.comm_size})` : "–") },
    callColumn, ...waitColumns,
    { title: "longest wait", value: (s) => s.wait_max_s, show: (s) => seconds(s.wait_max_s) },
    { title: "gap before", value: (s) => s.gap_s / (s.calls || 1), show: (s) => seconds(s.gap_s / (s.calls || 1)) },
  ], report.sites, 16), report.sites_left_out ? el("p", { class: "note" }, `${plural(report.sites_left_out, "more call site")} took less time.`) : null);
}

const PARTS = { computing: "computing", transfer: "MPI work", wait_awake: "waiting awake", wait_asleep: "waiting asleep", io: "file access",
  unaccounted: "start and end", unused_cores: "unused cores", memory: "memory", nic: "network card", base: "rest of the node", switch_share: "switches" };

function energyTable(head, rows) {
  return sideways("scroll", el("table", {}, el("thead", {}, el("tr", {}, head.map((t, i) => el("th", { class: i === 0 ? "text" : null }, t)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((c, i) => el("td", { class: i === 0 ? "text" : null }, c)))))));
}

function energyCard(report, title) {
  const { metered, modelled } = report.energy;
  const watts = (j) => `${(j / (report.totals.run_time_s || 1)).toFixed(1)} W`;
  const out = [title ? el("h3", {}, title) : null];
  out.push(el("h3", {}, el("span", { class: "kind" }, "metered")));
  if (metered) {
    out.push(energyTable(["domain", "energy", "mean power", "in the sum"], metered.domains.map((d) =>
      [`${d.meter} ${d.domain}`, joules(d.energy_j), `${d.mean_w.toFixed(1)} W`, d.lost ? `lost: ${d.lost}` : d.counted ? "yes" : "no"])),
    metered.coverage ? el("p", { class: "note" }, metered.coverage) : null, el("ul", { class: "facts" }, metered.measures.map((m) => el("li", {}, m))));
  } else out.push(el("p", { class: "note" }, "No meter was read on this machine, so no energy was measured."));
  out.push(el("h3", { style: "margin-top:20px" }, el("span", { class: "kind" }, "modelled"), modelled ? ` on ${modelled.platform}` : ""));
  if (modelled) {
    out.push(energyTable(["part", "energy", "mean power", "share"], Object.entries(modelled.parts).filter(([, j]) => j > 0).map(([name, j]) =>
      [PARTS[name] || name, joules(j), watts(j), shareBar(j / (modelled.energy_j || 1), "--soft")])),
    el("h3", { style: "margin-top:16px" }, "What the model takes for granted"), el("ul", { class: "facts" }, modelled.assumptions.map((a) => el("li", {}, a))));
  } else out.push(el("p", { class: "note" }, "No platform model was applied."));
  return card(...out);
}

function page() {
  const options = (r) => Object.entries(r.run.options).map(([k, v]) => `${k} = ${v}`).join(", ");
  return [header(), numbers(), warnings(),
    section("Ranks", "core time since each thread's first MPI call", each(ranksCard)),
    section("Timeline", "the last calls of every rank: click, then the wheel zooms; drag to move; or by plus, minus and the arrow keys", each(timelineCard)),
    section("Gaps and waits", "gaps lie between MPI calls, waits inside them", each((r, title) => el("div", {},
      title ? el("h3", {}, title) : null, el("div", { class: "pair" }, histogramCard("Gaps", r.gaps, "--computing"), histogramCard("Waits", r.waits, "--asleep", "of the first are blocking calls that did not wait at all"))))),
    section("MPI functions", "", each(functionsCard)),
    section("Call sites", "place, function and communicator", each(sitesCard)),
    section("Energy", "metered and modelled figures are never added up", each(energyCard)),
    el("footer", {}, reports.map((r, i) => el("div", {}, `${two ? `${NAMES[i]}: ` : ""}${r.run.directory} · Fallow ${r.run.fallow_version} · ${options(r)}`)))];
}

document.body.classList.toggle("two", two);
document.getElementById("page").replaceChildren(...page().filter(Boolean));
document.body.append(tip.box);
