// Plots of a study: gaps by number and cumulative idle time with the chosen thresholds, and rest against threshold.
const PLOT = { width: 640, left: 52, right: 628 };

/** A logarithmic axis of durations from `low` to `high` seconds. */
function logAxis(low, high, right = PLOT.right) {
  const from = Math.log(low), span = Math.log(high) - from || 1;
  return (s) => PLOT.left + ((Math.log(Math.max(s, low)) - from) / span) * (right - PLOT.left);
}

function ticks(x, low, high, top, bottom, right = PLOT.right) {
  const parts = [];
  for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; ++power) {
    const at = x(10 ** power);
    parts.push(svg("line", { class: "grid", x1: at, x2: at, y1: top, y2: bottom + 5 }),
      svg("text", { x: at, y: bottom + 19, "text-anchor": at > right - 16 ? "end" : "middle" }, seconds(10 ** power)));
  }
  return parts;
}

/** An axis for shares up to `most`: round steps, and where it ends. */
function shareAxis(most) {
  const step = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1].find((s) => most <= 5 * s) || 0.2;
  return { step, end: step * Math.max(1, Math.ceil(most / step - 1e-9)) };
}

function shareScale(top, bottom, axis, right = PLOT.right) {
  return Array.from({ length: Math.round(axis.end / axis.step) + 1 }, (_, i) => i * axis.step).flatMap((share) => {
    const y = bottom - (share / axis.end) * (bottom - top);
    return [svg("line", { class: "grid", x1: PLOT.left, x2: right, y1: y, y2: y }),
      svg("text", { class: "tick", x: PLOT.left - 8, y: y + 4, "text-anchor": "end" }, percent(share, axis.step < 0.01 ? 1 : 0))];
  });
}

/** Thresholds that ways ended with, each once: what stands at the same place is named together. */
function thresholdMarks(ways) {
  const marks = new Map();
  for (const way of ways) {
    const at = way.threshold_s ?? way.thresholds_s[1];
    if (at === undefined || at === null) continue;
    marks.set(at, new Set([...(marks.get(at) || []), way.predictor]));
  }
  return [...marks].sort((a, b) => a[0] - b[0]);
}

const LETTER = 6.8;  // about what a letter of a label takes

/** Each label in the first row in which it stands on no other one. */
function drawMarks(marks, x, top, bottom) {
  const rows = [];  // the stretches that are taken in each
  return marks.flatMap(([at, names]) => {
    const text = `${[...names].join(", ")} ${seconds(at)}`, width = LETTER * text.length + 10;
    const end = x(at) + width > PLOT.right && x(at) - width > 0;
    const from = end ? x(at) - width : x(at), to = from + width;
    let row = rows.findIndex((taken) => taken.every(([a, b]) => to <= a || from >= b));
    if (row < 0) row = rows.push([]) - 1;
    rows[row].push([from, to]);
    return [svg("line", { class: "mark", x1: x(at), x2: x(at), y1: top, y2: bottom }),
      svg("text", { class: "mark", x: x(at) + (end ? -5 : 5), y: top + 11 + 14 * row, "text-anchor": end ? "end" : "start" }, text)];
  });
}

/** Where labels of the given heights stand, 13 apart or more and none below `bottom`; heights ascend. */
function labelHeights(heights, bottom) {
  const places = [];
  for (const [i, at] of heights.entries()) places.push(i ? Math.max(at, places[i - 1] + 13) : at);
  for (let i = places.length - 1, most = bottom; i >= 0; --i, most = places[i + 1] - 13) places[i] = Math.min(places[i], most);
  return places;
}

const binLow = (b) => Math.max(b.low_s, 1e-7 / 10 ** 0.125);
const binHigh = (b) => b.high_s ?? b.low_s * 10 ** 0.125;

function gapPlots(gaps, ways) {
  if (!gaps.bins.length) return el("p", { class: "empty" }, "no gaps");
  const low = Math.min(1e-6, binLow(gaps.bins[0])), high = Math.max(1e-3, binHigh(gaps.bins.at(-1)));
  const x = logAxis(low, high), marks = thresholdMarks(ways);
  const top = 24, bottom = 200;
  const axis = shareAxis(Math.max(...gaps.bins.map((b) => b.count_share)));
  const bars = gaps.bins.flatMap((b) => {
    const left = x(binLow(b)), right = x(binHigh(b)), height = (b.count_share / axis.end) * (bottom - top);
    const said = `${seconds(b.low_s)} – ${b.high_s === null ? "" : seconds(b.high_s)}\n${count(b.count)} gaps (${percent(b.count_share, 2)})\n` +
      `${seconds(b.time_s)} (${percent(b.time_share, 2)} of the time)`;
    return [svg("rect", { x: left + 0.5, y: bottom - height, width: Math.max(1, right - left - 1), height, rx: 1.5, fill: "var(--soft)" }),
      svg("rect", { x: left, y: top, width: right - left, height: bottom - top, fill: "transparent",
        onmousemove: (event) => tip.show(event, said), onmouseleave: tip.hide })];
  });
  let sum = 0;
  const path = gaps.bins.map((b) => {
    sum += b.time_share;
    return `L${x(binHigh(b)).toFixed(1)} ${(bottom - sum * (bottom - top)).toFixed(1)}`;
  });
  const start = `M${x(binLow(gaps.bins[0])).toFixed(1)} ${bottom}`;
  const frame = (label, ...parts) => sideways("plot", svg("svg", { viewBox: `0 0 ${PLOT.width} 226`, role: "img", "aria-label": label }, ...parts));
  return el("div", { class: "pair" },
    card(el("h3", {}, "Number of gaps by length"), frame("Histogram of gaps",
      ...shareScale(top, bottom, axis), ...ticks(x, low, high, top, bottom), ...bars, ...drawMarks(marks, x, top, bottom))),
    card(el("h3", {}, "Idle time in gaps up to this length"), frame("Cumulative idle time",
      ...shareScale(top, bottom, shareAxis(1)), ...ticks(x, low, high, top, bottom),
      svg("path", { d: `${start}${path.join("")}L${PLOT.right} ${bottom - sum * (bottom - top)}`, class: "curve", style: "stroke:var(--computing)" }),
      ...drawMarks(marks, x, top, bottom))));
}

/** As it was given, so that no two leads read alike. */
const leadText = (share) => `${Number((100 * share).toPrecision(6))} %`;

/** Share of the run at rest by threshold, one curve a lead, and as level lines what needs none to be given. */
function sweepPlot(sweep, ways) {
  if (!sweep.length) return null;
  const leads = [...new Set(sweep.map((p) => p.lead))];
  const low = Math.min(...sweep.map((p) => p.threshold_s)), high = Math.max(...sweep.map((p) => p.threshold_s));
  const level = ["oracle", "adaptive", "spps"].map((name) => ways.find((w) => w.predictor === name)).filter(Boolean);
  const axis = shareAxis(Math.max(...sweep.map((p) => p.rest_share), ...level.map((w) => w.rest_share)) || 1);
  const right = 1080, x = logAxis(low, high, right), top = 12, bottom = 230, y = (share) => bottom - (share / axis.end) * (bottom - top);
  const curves = leads.flatMap((lead, i) => {
    const points = sweep.filter((p) => p.lead === lead), colour = `stroke:var(${COLOURS[i % COLOURS.length]})`;
    const said = (p) => `pps, threshold ${seconds(p.threshold_s)}, lead ${leadText(p.lead)}\nat rest ${percent(p.rest_share)} of the run, ` +
      `${percent(p.rest_of_oracle_share)} of the oracle's\ncalls predicted ${percent(p.calls_predicted_share)}\ndelay ${percent(p.delay_share, 3)}`;
    return [svg("path", { class: "curve", style: colour, d: points.map((p, n) => `${n ? "L" : "M"}${x(p.threshold_s).toFixed(1)} ${y(p.rest_share).toFixed(1)}`).join("") }),
      ...points.map((p) => mark(i, x(p.threshold_s), y(p.rest_share), 4.5, { "fill-opacity": 1,
        onmousemove: (event) => tip.show(event, said(p)), onmouseleave: tip.hide }))];
  });
  level.sort((a, b) => b.rest_share - a.rest_share);
  const places = labelHeights(level.map((w) => y(w.rest_share) + 4), bottom + 4);
  const levels = level.flatMap((w, i) => {
    const at = y(w.rest_share);
    return [svg("line", { class: "edge", x1: PLOT.left, x2: right, y1: at, y2: at }),
      svg("text", { x: right + 8, y: places[i] }, w.name)];
  });
  return card(el("h3", {}, "Share of the run at rest by grouping threshold"),
    el("div", { class: "legend" }, leads.map((lead, i) => el("span", {}, legendMark(i), `pps, lead ${leadText(lead)}`)),
    el("span", {}, "dashed: predictors that need none to be given")),
    sideways("plot", svg("svg", { class: "wide", viewBox: "0 0 1200 256", role: "img", "aria-label": "Rest by threshold" },
      ...shareScale(top, bottom, axis, right), ...ticks(x, low, high, top, bottom, right), ...levels, ...curves)));
}
