// Histograms and the picture of many ranks.
const EDGES = [20e-6, 200e-6];

function binLabel(b) {
  if (b.high_s === null) return `> ${seconds(b.low_s)}`;
  return b.low_s === 0 ? `< ${seconds(b.high_s)}` : `${seconds(b.low_s)} – ${seconds(b.high_s)}`;
}

function papersTable(histogram, colour) {
  return sideways("scroll", el("table", {},
    el("thead", {}, el("tr", {}, el("th", { class: "text" }, "length"), el("th", {}, "number"), el("th", {}, "share of number"),
      el("th", {}, "time"), el("th", {}, "share of time"))),
    el("tbody", {}, histogram.papers.map((b) => el("tr", {}, el("td", { class: "text" }, binLabel(b)), el("td", {}, count(b.count)),
      el("td", {}, shareBar(b.count_share, "--soft")), el("td", {}, seconds(b.time_s)), el("td", {}, shareBar(b.time_share, colour)))))));
}

/** One panel of bars over powers of two; returns its parts. */
function panel(bins, key, colour, box, x) {
  const top = Math.max(...bins.map((b) => b[key]), 1e-9);
  const parts = [];
  for (const b of bins) {
    const left = x(Math.max(b.low_s, b.high_s / 2)), right = x(b.high_s);
    const height = (b[key] / top) * box.height;
    const said = `${seconds(b.low_s)} – ${seconds(b.high_s)}\n${count(b.count)} (${percent(b.count_share)})\n` +
      `${seconds(b.time_s)} (${percent(b.time_share)} of the time)`;
    parts.push(svg("rect", { x: left + 1, y: box.top + box.height - height, width: Math.max(1, right - left - 2), height,
      rx: 2, fill: `var(${colour})` }));
    parts.push(svg("rect", { x: left, y: box.top, width: right - left, height: box.height, fill: "transparent",
      onmousemove: (event) => tip.show(event, said), onmouseleave: tip.hide }));
  }
  parts.push(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: box.top + box.height, y2: box.top + box.height }));
  parts.push(svg("text", { x: box.left - 8, y: box.top + 11, "text-anchor": "end" }, percent(top, 0)));
  parts.push(svg("text", { x: box.left - 8, y: box.top + box.height, "text-anchor": "end" }, "0"));
  parts.push(svg("text", { x: box.left, y: box.top - 6 }, box.title));
  return parts;
}

function logPlot(histogram, colour) {
  const bins = histogram.log2.map((b) => ({ ...b, high_s: b.high_s ?? b.low_s * 2 }));
  if (!bins.length) return el("p", { class: "empty" }, "none");
  const low = Math.log(Math.min(1e-6, Math.max(bins[0].low_s, 1e-9)));
  const high = Math.log(Math.max(1e-3, bins[bins.length - 1].high_s));
  const left = 52, right = 632;
  const x = (s) => left + ((Math.log(Math.max(s, 1e-9)) - low) / (high - low)) * (right - left);
  const axis = [];
  for (let power = -9; power <= 4; ++power) {
    const at = x(10 ** power);
    if (at < left - 1 || at > right + 1) continue;
    axis.push(svg("line", { class: "grid", x1: at, x2: at, y1: 214, y2: 219 }),
      svg("text", { x: at, y: 233, "text-anchor": at > right - 16 ? "end" : "middle" }, seconds(10 ** power)));
  }
  for (const edge of EDGES) {
    axis.push(svg("line", { class: "edge", x1: x(edge), x2: x(edge), y1: 20, y2: 214 }));
  }
  return sideways("plot", svg("svg", { viewBox: "0 0 640 240", role: "img",
    "aria-label": "Number and time by length, in powers of two; the dashed lines stand at 20 and 200 microseconds" },
    ...panel(bins, "count_share", "--soft", { left, right, top: 24, height: 78, title: "share of number" }, x),
    ...panel(bins, "time_share", colour, { left, right, top: 130, height: 84, title: "share of time" }, x), ...axis));
}

function histogramCard(title, histogram, colour, none) {
  const nothing = none ? el("p", { class: "empty" }, `${count(histogram.none_count)} ${none}`) : null;
  return card(el("h3", {}, title), papersTable(histogram, colour), nothing, logPlot(histogram, colour));
}

/** Every rank as one thin column, for programs with many. */
function rankStrip(ranks) {
  const width = 1000 / ranks.length;
  const parts = [];
  ranks.forEach((rank, index) => {
    const total = totalOf(rank.residency) || 1;
    let y = 0;
    for (const s of STATES) {
      const height = (rank.residency[s.key] / total) * 120;
      parts.push(svg("rect", { x: index * width, y, width: width + 0.3, height, fill: `var(${s.colour})` }));
      y += height;
    }
  });
  return sideways("plot", svg("svg", { viewBox: "0 0 1000 120", preserveAspectRatio: "none", style: "height:120px",
    role: "img", "aria-label": "Share of time in each state, one column a rank" }, ...parts));
}
