"""Draws a page by node, in a document that only keeps what is put into it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from fallow import report_html

DOCUMENT = """
class Node {
  constructor(tag) { Object.assign(this, { tag, attributes: {}, children: [], classList: { toggle() {} } }); }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  removeAttribute(name) { delete this.attributes[name]; }
  addEventListener() {}
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  set textContent(text) { this.children = [text]; }
  get textContent() { return this.children.map((c) => (typeof c === "string" ? c : c.textContent)).join(""); }
  all(tag) { return [...(this.tag === tag ? [this] : []), ...this.children.flatMap((c) => (c instanceof Node ? c.all(tag) : []))]; }
}
const page = new Node("main"), data = new Node("script");
globalThis.document = { documentElement: new Node("html"), body: new Node("body"), createElement: (tag) => new Node(tag),
  createElementNS: (_, tag) => new Node(tag), getElementById: (id) => ({ page, data })[id] };
globalThis.ResizeObserver = class { observe() {} };
globalThis.matchMedia = () => new Node("query");
globalThis.getComputedStyle = () => ({ getPropertyValue: () => "" });
globalThis.addEventListener = () => {};
globalThis.devicePixelRatio = 1;
globalThis.requestAnimationFrame = () => 0;
Node.prototype.getContext = () => new Proxy({}, { get: () => () => ({ width: 0 }), set: () => true });
Node.prototype.getBoundingClientRect = () => ({ left: 0, top: 0, width: 1000, height: 200 });
"""
ASK = """
const drawn = page.all("svg").filter((s) => s.attributes["aria-label"]).map((s) => ({ label: s.attributes["aria-label"],
  circles: s.all("circle").map((c) => c.attributes), paths: s.all("path").map((p) => p.attributes), texts: s.all("text").map((t) => t.textContent) }));
console.log(JSON.stringify({ text: page.textContent, drawn, rows: page.all("tbody").map((b) => b.all("tr").length),
  numbers: page.all("div").filter((d) => /^card number/.test(d.attributes.class ?? "")).map((d) => [d.attributes.class, d.textContent]) }));
"""


def draw(page: str, scripts: tuple[str, ...], folder: Path) -> tuple[dict[str, Any], Any]:
    """What `page` shows, and the data in it: its text, pictures by label, tables by their rows, and large numbers."""
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    texts = [report_html.asset(name) for name in scripts]
    assert all(text in page for text in texts)
    (folder / "page.js").write_text("\n".join([DOCUMENT, f"data.children = [{json.dumps(data[1])}];", "(() => {", *texts, "})();", ASK]))
    done = subprocess.run(["node", folder / "page.js"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), json.loads(data[1])
