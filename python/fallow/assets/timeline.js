// Timelines. The one of a run: one row a thread, zoomed with the wheel, moved by dragging, drawn on a canvas. A
// sleeping core is drawn as a thin line, so that rest can be told from work without colour. Rows may bring their own
// label, segments and words for them; `timeline.states` stands for STATES then.
const MAX_ROWS = 4000; // three pixels each: what a canvas can hold
const FRAME = { left: 62, top: 6, axis: 26 };

const rowName = (row) => row.label || `rank ${row.rank}`;

/** Flat arrays of what a row did: start, end, state, event. A wait is drawn first awake, then asleep. */
function segmentsOf(row, kinds) {
  const out = { start: [], end: [], state: [], event: [] };
  const put = (start, end, state, event) => {
    if (end <= start) return;
    out.start.push(start); out.end.push(end); out.state.push(state); out.event.push(event);
  };
  let at = row.from ?? (row.events.length ? row.events[0][0] : 0);
  row.events.forEach(([enter, duration, name, awake, asleep], index) => {
    const leave = enter + duration;
    put(at, enter, 0, -1);
    if (kinds[name] === "io") put(enter, leave, 4, index);
    else {
      const awakeEnd = Math.min(leave, enter + awake * 1000);
      const asleepEnd = Math.min(leave, awakeEnd + asleep * 1000);
      put(enter, awakeEnd, 2, index);
      put(awakeEnd, asleepEnd, 3, index);
      put(asleepEnd, leave, 1, index);
    }
    at = leave;
  });
  return out;
}

function firstAfter(values, limit) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < limit) low = middle + 1; else high = middle;
  }
  return low;
}

/** A canvas over time that zooms and moves. A subclass has `rows`, calls `open` with its spans, and draws. */
class TimeView {
  open(full, home, pitch, label, left = FRAME.left) {
    this.left = left;
    this.full = full;
    this.home = home;
    this.view = home.slice();
    this.pitch = pitch;
    this.height = FRAME.top + this.rows.length * pitch + FRAME.axis;
    this.canvas = el("canvas", { tabindex: "0", style: `height:${this.height}px`, role: "img",
      "aria-label": `${label} Plus and minus zoom, the arrow keys move, 0 shows all.` });
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    // Whether the page's dark colours hold, as its style sheet asks: on paper they do not.
    matchMedia("screen and (prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  x(t) { return this.left + ((t - this.view[0]) / (this.view[1] - this.view[0])) * (this.width - this.left - 4); }
  time(x) { return this.view[0] + ((x - this.left) / (this.width - this.left - 4)) * (this.view[1] - this.view[0]); }

  zoom(factor, centre = (this.view[0] + this.view[1]) / 2) {
    const span = Math.min(this.full[1] - this.full[0], Math.max(2000, (this.view[1] - this.view[0]) * factor));
    const share = (centre - this.view[0]) / (this.view[1] - this.view[0]);
    this.set(centre - share * span, span);
  }
  pan(by) { this.set(this.view[0] + by, this.view[1] - this.view[0]); }
  set(start, span) {
    const from = Math.max(this.full[0], Math.min(start, this.full[1] - span));
    this.view = [from, from + span];
    requestAnimationFrame(() => this.draw());
  }
  reset(view) { this.set(view[0], view[1] - view[0]); }

  /** A context that is ready to be drawn on, its axis drawn; null while the canvas has no width. */
  begin() {
    const scale = devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    if (!this.width) return null;
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    const g = this.canvas.getContext("2d");
    g.scale(scale, scale);
    g.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    this.drawAxis(g);
    return g;
  }

  drawAxis(g) {
    const span = this.view[1] - this.view[0], step = niceStep(span, Math.max(2, this.width / 140));
    const bottom = FRAME.top + this.rows.length * this.pitch;
    g.strokeStyle = tint("--line"); g.fillStyle = tint("--soft");
    g.textAlign = "center"; g.textBaseline = "top";
    for (let t = Math.ceil(this.view[0] / step) * step; t <= this.view[1]; t += step) {
      g.beginPath(); g.moveTo(this.x(t), FRAME.top); g.lineTo(this.x(t), bottom + 4); g.stroke();
      const digits = Math.max(0, -Math.floor(Math.log10(step * 1e-6) + 1e-9));
      if (this.x(t) > this.left + 20 && this.x(t) < this.width - 30) g.fillText(`${(t * 1e-6).toFixed(digits)} ms`, this.x(t), bottom + 8);
    }
  }

  listen() {
    const c = this.canvas;
    let dragged = null;
    c.addEventListener("wheel", (event) => {
      if (document.activeElement !== c && !event.ctrlKey) return; // who passes by scrolls the page on: a timeline may be taller than the window
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        this.pan((event.deltaX || event.deltaY) * ((this.view[1] - this.view[0]) / this.width));
      } else this.zoom(Math.exp(event.deltaY * 0.0015), this.time(event.offsetX));
      event.preventDefault();
    }, { passive: false });
    c.addEventListener("pointerdown", (event) => { dragged = event.clientX; c.setPointerCapture(event.pointerId); });
    c.addEventListener("pointerup", () => { dragged = null; });
    c.addEventListener("pointermove", (event) => {
      if (dragged !== null) {
        this.pan((dragged - event.clientX) * ((this.view[1] - this.view[0]) / (this.width - this.left)));
        dragged = event.clientX;
      }
      const text = this.describe(event);
      if (text) tip.show(event, text); else tip.hide();
    });
    c.addEventListener("pointerleave", tip.hide);
    c.addEventListener("dblclick", () => this.reset(this.home));
    const keys = { "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1.7), 0: () => this.reset(this.full),
      ArrowLeft: () => this.pan((this.view[0] - this.view[1]) / 8), ArrowRight: () => this.pan((this.view[1] - this.view[0]) / 8) };
    c.addEventListener("keydown", (event) => { if (keys[event.key]) { keys[event.key](); event.preventDefault(); } });
  }
}

class TimelineView extends TimeView {
  constructor(timeline) {
    super();
    this.timeline = timeline;
    const rows = timeline.rows.filter((row) => row.events.length);
    this.rows = rows.slice(0, MAX_ROWS);
    this.leftOut = rows.length - this.rows.length + (timeline.rows_left_out ?? 0);
    this.states = timeline.states || STATES;
    this.segments = this.rows.map((row) => row.segments || segmentsOf(row, timeline.kinds));
    const starts = this.rows.map((row) => row.events[0][0]);
    const ends = this.rows.map((row) => row.events.at(-1)[0] + row.events.at(-1)[1]);
    const full = [Math.min(...starts), Math.max(...ends)];
    const common = [Math.max(...starts), Math.max(...ends)];
    const home = common[0] < Math.min(...ends) ? common : full;
    this.open(full, home, Math.max(3, Math.min(24, Math.floor(720 / this.rows.length))), "Timeline of all ranks.");
  }

  draw() {
    const g = this.begin();
    if (!g) return;
    const colours = this.states.map((s) => tint(s.colour));
    this.rows.forEach((row, index) => this.drawRow(g, row, this.segments[index], index, colours));
  }

  drawRow(g, row, s, index, colours) {
    const top = FRAME.top + index * this.pitch, full = this.pitch - (this.pitch > 8 ? 4 : 1), thin = Math.max(1, Math.round(full * 0.3));
    g.fillStyle = tint("--track");
    g.fillRect(FRAME.left, top, this.width - FRAME.left - 4, full);
    if (index % Math.ceil(14 / this.pitch) === 0) {
      g.fillStyle = tint("--soft");
      g.textAlign = "right"; g.textBaseline = "middle";
      g.fillText(rowName(row), FRAME.left - 8, top + full / 2);
    }
    for (let i = firstAfter(s.end, this.view[0]); i < s.start.length && s.start[i] < this.view[1]; ++i) {
      const left = Math.max(FRAME.left, this.x(s.start[i])), right = Math.min(this.width - 4, this.x(s.end[i]));
      const asleep = this.states[s.state[i]].thin;
      if (asleep) {
        g.fillStyle = tint("--card");
        g.fillRect(left, top, right - left, full - thin);
      }
      g.fillStyle = colours[s.state[i]];
      g.fillRect(left, asleep ? top + full - thin : top, Math.max(right - left, 0.25), asleep ? thin : full);
    }
    const last = row.events.at(-1), end = this.x(last[0] + last[1]);
    if (row.end && row.end !== "finalized" && end >= FRAME.left && end < this.width) {
      g.fillStyle = tint("--awake");
      g.textAlign = "left"; g.textBaseline = "middle";
      g.fillText(" ✕ record ends", end, top + full / 2);
    }
  }

  /** What is not drawn, in words. */
  note() {
    return this.leftOut ? el("p", { class: "note" }, `The first ${count(MAX_ROWS)} rows are drawn; ${plural(this.leftOut, "row")} below them would not fit.`) : null;
  }

  describe(event) {
    const box = this.canvas.getBoundingClientRect();
    const index = Math.floor((event.clientY - box.top - FRAME.top) / this.pitch);
    const t = this.time(event.clientX - box.left), row = this.rows[index], s = this.segments[index];
    if (!row || event.clientX - box.left < FRAME.left) return "";
    const i = firstAfter(s.end, t);
    if (i >= s.start.length || s.start[i] > t) return "";
    if (row.describe) return row.describe(s, i);
    if (s.event[i] < 0) return `${rowName(row)}: computing\n${seconds((s.end[i] - s.start[i]) * 1e-9)}`;
    const [, duration, name, awake, asleep, peer, bytes] = row.events[s.event[i]];
    const lines = [`${rowName(row)}: ${this.timeline.functions[name]}, ${seconds(duration * 1e-9)}`];
    if (awake || asleep) lines.push(`waits: ${seconds(awake * 1e-6)} awake, ${seconds(asleep * 1e-6)} ${this.timeline.resting ?? "asleep"}`);
    if (bytes) lines.push(size(bytes));
    if (peer >= 0) lines.push(`peer ${peer}`);
    return lines.join("\n");
  }
}

function timelineCard(report, title) {
  if (!report.timeline.rows.some((row) => row.events.length)) return card(el("p", { class: "empty" }, "No calls were recorded."));
  const rows = report.timeline.rows.map((row) => ({ ...row, label: row.thread ? row.label : `rank ${row.label}` }));
  const view = new TimelineView({ ...report.timeline, rows });
  const button = (text, action) => el("button", { class: "plain", type: "button", onclick: action }, text);
  return card(title ? el("h3", {}, title) : null, legend(), view.canvas, button("zoom in", () => view.zoom(0.5)), button("zoom out", () => view.zoom(2)),
    button("where all ranks' records reach", () => view.reset(view.home)), button("everything", () => view.reset(view.full)), view.note());
}
