// Puts the page of a study together.
const report = JSON.parse(document.getElementById("data").textContent);

function header() {
  const t = report.trace;
  const meta = [`${t.ranks_studied.length} of ${plural(t.ranks, "rank")}`, plural(t.calls, "MPI call"), seconds(t.run_time_s), `gaps by ${t.clock} clock`,
    `link: ${seconds(report.react_down_s)} to rest, ${seconds(report.react_up_s)} back`];
  return el("header", {}, el("h1", {}, "Fallow: predictors on a trace"), el("div", { class: "command" }, t.program || t.paths.join(" ")),
    el("div", { class: "meta" }, meta.map((m) => el("span", {}, m))));
}

function warnings() {
  if (!report.notes.length) return null;
  return el("div", { class: "warnings" }, el("ul", {}, report.notes.map((note) => el("li", {}, note))));
}

function numbers() {
  const way = report.ways.find((w) => w.predictor === "adaptive") || report.ways.find((w) => w.predictor !== "oracle") || report.ways[0];
  const idle = way.idle_s / (report.trace.run_time_s * report.trace.ranks_studied.length || 1);
  const one = (label, value, more, mood = "") => el("div", { class: `card number ${mood}` }, el("div", { class: "label" }, label),
    el("div", { class: "value first" }, value), el("div", { class: "more" }, more));
  return el("div", { class: "numbers" },
    one("idle in long gaps", percent(idle), `of the run time, in gaps longer than ${seconds(report.react_down_s + report.react_up_s)}`),
    one(`at rest, ${way.name}`, percent(way.rest_share), `of the run; ${percent(way.rest_of_oracle_share)} of what the oracle rests`, "good"),
    one("delay", percent(way.delay_share, 3), `of the run; at worst ${percent(way.delay_worst_share, 3)} of the time since the process began`),
    one("calls predicted", percent(way.calls_predicted_share), `${percent(way.idle_predicted_share)} of the idle time`),
    way.cost_ns === null ? null : one("cost", `${way.cost_ns.toFixed(0)} ns`, `per call, on ${count(report.cost_calls)} calls`));
}

function thresholdOf(way) {
  if (way.threshold_s !== null) return seconds(way.threshold_s);
  if (!way.thresholds_s.length) return "–";
  const [least, median, most] = way.thresholds_s;
  return least === most ? seconds(median) : `${seconds(median)} (${seconds(least)} – ${seconds(most)})`;
}

function waysCard() {
  const columns = [
    { title: "predictor", text: true, value: (w) => w.name, show: (w) => w.name },
    { title: "threshold", value: (w) => w.threshold_s ?? w.thresholds_s[1] ?? 0, show: thresholdOf },
    { title: "calls predicted", value: (w) => w.calls_predicted_share, show: (w) => percent(w.calls_predicted_share) },
    { title: "gaps predicted", value: (w) => w.gaps_predicted_share, show: (w) => percent(w.gaps_predicted_share) },
    { title: "idle time predicted", value: (w) => w.idle_predicted_share, show: (w) => percent(w.idle_predicted_share) },
    { title: "at rest, of the oracle's", kind: "wide", value: (w) => w.rest_of_oracle_share, show: (w) => shareBar(w.rest_of_oracle_share, "--asleep") },
    { title: "delay", value: (w) => w.delay_share, show: (w) => percent(w.delay_share, 3) },
    { title: "worst so far", value: (w) => w.delay_worst_share, show: (w) => percent(w.delay_worst_share, 3) },
    { title: "late wake-ups", value: (w) => w.mispredictions, show: (w) => count(w.mispredictions) },
    { title: "ns per call", value: (w) => w.cost_ns ?? 0, show: (w) => (w.cost_ns === null || w.predictor === "oracle" ? "–" : w.cost_ns.toFixed(0)) },
  ];
  return card(table(columns, report.ways));
}

function ranksCard() {
  const way = report.ways.find((w) => w.predictor === "adaptive") || report.ways[0];
  const columns = [
    { title: "rank", value: (r) => r.rank, show: (r) => String(r.rank) },
    { title: "calls", value: (r) => r.calls, show: (r) => count(r.calls) },
    { title: "calls predicted", value: (r) => r.calls_predicted_share, show: (r) => percent(r.calls_predicted_share) },
    { title: "at rest, of the oracle's", kind: "wide", value: (r) => r.rest_of_oracle_share, show: (r) => shareBar(r.rest_of_oracle_share, "--asleep") },
    { title: "delay", value: (r) => r.delay_share, show: (r) => percent(r.delay_share, 3) },
    { title: "worst so far", value: (r) => r.delay_worst_share, show: (r) => percent(r.delay_worst_share, 3) },
  ];
  return card(el("h3", {}, way.name), table(columns, way.ranks, 16));
}

function nodesCard() {
  const columns = [
    { title: "predictor", text: true, value: (w) => w.name, show: (w) => w.name },
    { title: "at rest, of the oracle's", kind: "wide", value: (w) => w.rest_of_oracle_share, show: (w) => shareBar(w.rest_of_oracle_share, "--asleep") },
    { title: "of the run time", value: (w) => w.rest_share, show: (w) => percent(w.rest_share) },
    { title: "delay", value: (w) => w.delay_share, show: (w) => percent(w.delay_share, 3) },
    { title: "rank delayed most", value: (w) => w.delay_worst_rank_share, show: (w) => percent(w.delay_worst_rank_share, 3) },
  ];
  return card(table(columns, report.nodes.ways));
}

function page() {
  const histogram = { papers: report.gaps.papers };
  const react = report.react_down_s + report.react_up_s;
  return [header(), warnings(), numbers(),
    section("Predictors", `gaps are those longer than ${seconds(react)}; delay is a share of the run time`, waysCard()),
    section("Gaps", "between the calls of all ranks studied", card(papersTable(histogram, "--computing")), gapPlots(report.gaps, report.ways)),
    report.sweep.length ? section("Thresholds", "pps needs one; which, only trying tells", sweepPlot(report.sweep, report.ways)) : null,
    report.timeline ? section("Timeline", `rank ${report.timeline.rank}: click, then the wheel zooms; drag to move; or by plus, minus and the arrow keys`, gapTimelineCard(report)) : null,
    report.nodes ? section("Joined by node", `${plural(report.nodes.nodes.length, "link")}, each at rest only while all its ranks are predicted idle`, nodesCard()) : null,
    section("Ranks", "", ranksCard()),
    el("footer", {}, report.trace.paths.join(" "))];
}

document.getElementById("page").replaceChildren(...page().filter(Boolean));
document.body.append(tip.box);
