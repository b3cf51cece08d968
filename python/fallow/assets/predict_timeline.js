// One rank's calls and gaps as they were, and below what each predictor made of them.
class GapView extends TimeView {
  constructor(timeline, react) {
    super();
    this.timeline = timeline;
    this.react = react;
    this.enter = [];
    this.exit = [];
    let at = timeline.start_ns;
    timeline.gap_ns.forEach((gap, i) => {
      this.enter.push(at + gap);
      at += gap + timeline.call_ns[i];
      this.exit.push(at);
    });
    this.rows = [null, ...timeline.rows];
    const full = [timeline.start_ns, at];
    const home = [full[0], this.exit[Math.min(this.exit.length - 1, 120)]];
    const longest = Math.max(...this.rows.map((row) => (row ? row.name.length : 0)));
    this.open(full, home, 30, "Gaps of a rank, and what was predicted.", Math.max(70, 16 + 6.6 * longest));
  }

  draw() {
    const g = this.begin();
    if (!g) return;
    const colours = Object.fromEntries(["--track", "--soft", "--asleep", "--awake", "--computing", "--ink"].map((name) => [name, tint(name)]));
    this.rows.forEach((row, index) => {
      const top = FRAME.top + index * this.pitch, full = this.pitch - 8;
      g.fillStyle = colours["--track"];
      g.fillRect(this.left, top, this.width - this.left - 4, full);
      g.fillStyle = colours["--soft"];
      g.textAlign = "right"; g.textBaseline = "middle";
      g.fillText(row ? row.name : "calls", this.left - 8, top + full / 2);
      for (let i = Math.max(0, firstAfter(this.exit, this.view[0]) - 1); i < this.enter.length && (i === 0 || this.exit[i - 1] < this.view[1]); ++i)
        if (row) this.drawRest(g, row, i, top, full, colours); else this.bar(g, this.enter[i], this.exit[i], top, full, colours["--computing"]);
    });
  }

  bar(g, from, to, top, height, colour) {
    const left = Math.max(this.left, this.x(from)), right = Math.min(this.width - 4, this.x(to));
    if (right < this.left || left > this.width - 4) return;
    g.fillStyle = colour;
    g.fillRect(left, top, Math.max(right - left, 0.5), height);
  }

  /** The rest after call i, what of it came too late, and as a line how long the gap was expected to be. */
  drawRest(g, row, i, top, full, colours) {
    const begin = this.exit[i], next = i + 1 < this.enter.length ? this.enter[i + 1] : Infinity;
    if (row.rest_ns[i] > 0) {
      const wake = Math.max(row.rest_ns[i], this.react.down), up = begin + wake + this.react.up;
      this.bar(g, begin, Math.min(up, next), top + 5, full - 10, colours["--asleep"]);
    }
    if (this.silenced(i, row)) this.bar(g, begin + row.silence_ns[i], next, top + 5, full - 10, colours["--asleep"]);
    const late = this.delay(i, row);
    if (late > 0) this.bar(g, next, next + late, top + 1, full - 2, colours["--awake"]);
    if (row.expected_ns[i] > 0) this.bar(g, begin, begin + row.expected_ns[i], top + full - 2, 2, colours["--ink"]);
  }

  /** Whether the gap after call i lasts longer than the silence after which a rest begins that ends with the next call. */
  silenced(i, row) {
    return row.silence_ns[i] > 0 && this.enter[i + 1] - this.exit[i] > row.silence_ns[i];
  }

  /** As rest_outcome() of the library counts it, of both rests. */
  delay(i, row) {
    const gap = this.enter[i + 1] - this.exit[i];
    return this.lateness(row.rest_ns[i], gap) + (this.silenced(i, row) ? this.lateness(gap, gap - row.silence_ns[i]) : 0);
  }

  lateness(rest, gap) {
    const { down, up } = this.react;
    if (!(rest > 0) || gap >= Math.max(rest, down) + up) return 0;
    if (gap >= rest) return Math.min(Math.max(rest, down) + up - gap, up + down);
    return Math.max(0, down - gap) + up;
  }

  describe(event) {
    const box = this.canvas.getBoundingClientRect();
    const row = this.rows[Math.floor((event.clientY - box.top - FRAME.top) / this.pitch)];
    const t = this.time(event.clientX - box.left);
    if (row === undefined || event.clientX - box.left < this.left) return "";
    const next = firstAfter(this.exit, t), i = next - 1;
    if (next < this.enter.length && t >= this.enter[next]) {
      return `${this.timeline.operations[this.timeline.operation[next]]}\n${seconds(this.timeline.call_ns[next] * 1e-9)}`;
    }
    if (i < 0 || next >= this.enter.length) return "";
    const gap = `gap of ${seconds(this.timeline.gap_ns[next] * 1e-9)} after ${this.timeline.operations[this.timeline.operation[i]]}`;
    if (!row) return gap;
    const expected = row.expected_ns[i] ? `expected ${seconds(row.expected_ns[i] * 1e-9)}` : "nothing expected";
    const rests = [row.rest_ns[i] ? `rest for ${seconds(row.rest_ns[i] * 1e-9)}` : "",
      this.silenced(i, row) ? `rest from a silence of ${seconds(row.silence_ns[i] * 1e-9)} on` : ""].filter((part) => part);
    if (!rests.length) return `${gap}\n${row.name}: ${expected}${row.expected_ns[i] ? ", no rest" : ""}`;
    const late = this.delay(i, row);
    return `${gap}\n${row.name}: ${expected}, ${rests.join(", ")}\n` + (late ? `call delayed by ${seconds(late * 1e-9)}` : "awake in time");
  }
}

function gapTimelineCard(report) {
  const timeline = report.timeline;
  if (!timeline || !timeline.gap_ns.length) return card(el("p", { class: "empty" }, "No calls in this window."));
  const view = new GapView(timeline, { down: report.react_down_s * 1e9, up: report.react_up_s * 1e9 });
  const button = (text, action) => el("button", { class: "plain", type: "button", onclick: action }, text);
  const key = (colour, name, thin) => el("span", {}, el("i", { class: thin ? "thin" : null, style: `background:var(${colour})` }), name);
  return card(el("div", { class: "legend" }, key("--computing", "in MPI"), key("--asleep", "at rest, transitions included"),
    key("--awake", "call delayed by a late wake-up"), key("--ink", "gap as expected", true)), view.canvas,
  button("zoom in", () => view.zoom(0.5)), button("zoom out", () => view.zoom(2)), button("the beginning", () => view.reset(view.home)),
  button("everything", () => view.reset(view.full)));
}
