// A report of sections: text, a table, bars, and where values differ.
const data = JSON.parse(document.getElementById("data").textContent);
const SERIES = ["--soft", "--computing", "--asleep", "--awake", "--io", "--transfer"];
const STRIPS = ["--computing", "--transfer", "--awake", "--io", "--asleep"]; // program, MPI; a link's lanes

/** Text in which backquotes set code apart, as in Markdown. */
const prose = (text) => text.split("`").map((piece, i) => (i % 2 ? el("code", {}, piece) : piece));

function dataTable(s) {
  const head = el("thead", {}, el("tr", {}, s.header.map((h, i) => el("th", { class: i === 0 ? "text" : null, scope: "col" }, h))));
  return sideways("scroll", el("table", {}, head, el("tbody", {}, s.rows.map((row) =>
    el("tr", {}, row.map((cell, i) => el("td", { class: i === 0 ? "text" : null }, cell)))))));
}

/** Grouped bars, as wide as they need; values below zero hang from the line. */
function barChart(b) {
  const each = 16, gap = 22, left = 56, height = 220, top = 12;
  const values = b.groups.flatMap(([, v]) => v).filter((v) => v !== null);
  const high = Math.max(...values, 0) || 1, low = Math.min(...values, 0);
  const y = (v) => top + ((high - v) / (high - low)) * height;
  const longest = Math.max(...b.groups.map(([name]) => name.length));
  const group = Math.max(b.series.length * each + gap, longest * 7 + 12), width = left + b.groups.length * group;
  const parts = [];
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100].find((x) => (high - low) / x <= 6) || high;
  for (let v = Math.ceil(low / step) * step; v <= high; v += step) {
    parts.push(svg("line", { class: "grid", x1: left, x2: width, y1: y(v), y2: y(v) }),
      svg("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, `${+v.toFixed(2)} ${b.unit}`));
  }
  b.groups.forEach(([name, group_values], g) => {
    const x = left + g * group + (group - b.series.length * each) / 2;
    group_values.forEach((v, i) => {
      if (v === null) return;
      const said = `${name}\n${b.series[i]}: ${+v.toPrecision(4)} ${b.unit}`;
      parts.push(svg("rect", { x: x + i * each, y: Math.min(y(v), y(0)), width: each - 2, height: Math.max(1, Math.abs(y(v) - y(0))), rx: 2,
        fill: `var(${SERIES[i % SERIES.length]})`, onmousemove: (event) => tip.show(event, said), onmouseleave: tip.hide }));
    });
    parts.push(svg("text", { x: x + (b.series.length * each) / 2, y: top + height + 18, "text-anchor": "middle" }, name));
  });
  return el("div", {}, legend(b.series.map((name, i) => ({ name, colour: SERIES[i % SERIES.length] }))),
    sideways("scroll", svg("svg", { viewBox: `0 0 ${width} ${top + height + 28}`, style: `width:${width}px;max-width:none`, role: "img",
      "aria-label": b.groups.map(([n, v]) => `${n}: ${v.map((x, i) => `${b.series[i]} ${x}`).join(", ")}`).join("; ") }, ...parts)));
}

/** Rows of states over time. */
function stripChart(s) {
  const left = 84, width = 1000, each = 14, top = 4, span = s.to_us - s.from_us;
  const x = (t) => left + (Math.min(Math.max(t, s.from_us), s.to_us) - s.from_us) / span * (width - left);
  const parts = [];
  s.rows.forEach(([label, between, spans], i) => {
    const y = top + i * each;
    const put = (from, to, state) => {
      const said = `${label}: ${s.states[state]}\n${seconds((to - from) * 1e-6)}`;
      parts.push(svg("rect", { x: x(from), y, width: Math.max(0.3, x(to) - x(from)), height: each - 3, fill: `var(${STRIPS[state % STRIPS.length]})`,
        onmousemove: (event) => tip.show(event, said), onmouseleave: tip.hide }));
    };
    parts.push(svg("text", { x: left - 6, y: y + each - 5, "text-anchor": "end" }, label));
    put(s.from_us, s.to_us, between);
    spans.filter(([a, b]) => b > s.from_us && a < s.to_us).forEach(([a, b, state]) => put(a, b, state));
  });
  const bottom = top + s.rows.length * each + 14;
  parts.push(svg("text", { x: left, y: bottom }, `${(s.from_us / 1000).toFixed(3)} ms`), svg("text", { x: width, y: bottom, "text-anchor": "end" }, `${(s.to_us / 1000).toFixed(3)} ms`));
  return el("div", {}, el("h3", {}, s.caption), legend(s.states.map((name, i) => ({ name, colour: STRIPS[i % STRIPS.length] }))),
    sideways("scroll", svg("svg", { viewBox: `0 0 ${width} ${bottom + 8}`, class: "strips", role: "img", "aria-label": s.caption }, ...parts)));
}

document.getElementById("page").replaceChildren(
  el("header", {}, el("h1", {}, "Fallow"), el("div", { class: "command" }, data.title), data.intro.map((t) => el("p", { class: "meta" }, t))),
  ...data.sections.map((s) => section(s.title, null, card(...s.text.map((t) => el("p", { class: "note" }, prose(t))),
    ...(s.strips || []).map(stripChart), s.bars ? barChart(s.bars) : null, s.rows.length ? dataTable(s) : null,
    s.differences.length ? sideways("plot", el("h3", {}, "Where they differ, and why"), el("ul", {}, s.differences.map((d) => el("li", {}, prose(d))))) : null))),
  data.notes.length ? section("Notes", null, card(el("ul", {}, data.notes.map((n) => el("li", {}, prose(n)))))) : "",
  el("footer", {}, "Published values are read from the text of the publication; ours are simulated, and all energy is modelled."), tip.box);
