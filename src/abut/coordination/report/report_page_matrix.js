// The summary matrix: how many clashes there are between files, types or layers.

const AXES = [["type", "Types"], ["file", "Files"], ["layer", "Layers"]];
const MOST_LINES = 9;
const OTHERS = "others";

// A name without the prefix of IFC, which may break before capitals and after dots.
const broken = (name) => name.replace(/^Ifc(?=[A-Z])/, "").replace(/([a-z0-9])(?=[A-Z])|([._-])/g, "$1$2\u200b");

class Matrix {
  constructor(rows, filter, changed) {
    Object.assign(this, { rows, filter, changed });
    const distinct = (axis) => new Set([...rows.texts(`a_${axis}`), ...rows.texts(`b_${axis}`)]).size;
    const first = distinct("file") > 2 ? "file" : "type";
    this.axis = distinct(first) > 1 ? first : "file";
  }

  draw() {
    const axes = AXES.map(([axis, name]) => el("button", {
      type: "button", "aria-pressed": String(axis === this.axis),
      onclick: () => { this.axis = axis; this.filter.pair = null; this.changed(); },
    }, name));
    byId("axes").replaceChildren(...axes);
    byId("axis-name").textContent = AXES.find(([axis]) => axis === this.axis)[1].toLowerCase();
    byId("matrix").replaceChildren(this.table());
  }

  // Counts of each verdict by "x\ny", with x before y in the order of names.
  counted() {
    const totals = new Map();
    const pairs = [];
    for (const row of this.filter.chosen("pair")) {
      const names = [this.rows.along(this.axis, "a", row), this.rows.along(this.axis, "b", row)];
      for (const name of new Set(names)) totals.set(name, (totals.get(name) ?? 0) + 1);
      pairs.push([names, this.rows.get("verdict", row)]);
    }
    let names = [...totals.keys()].sort((x, y) => totals.get(y) - totals.get(x) || (x < y ? -1 : 1));
    const many = names.length > MOST_LINES;
    const place = new Map(names.slice(0, many ? MOST_LINES - 1 : MOST_LINES).map((name, k) => [name, k]));
    names = [...place.keys(), ...(many ? [OTHERS] : [])];
    const cells = new Map();
    for (const [[x, y], verdict] of pairs) {
      const [i, j] = [x, y].map((name) => place.get(name) ?? MOST_LINES - 1).sort((p, q) => p - q);
      const key = `${i},${j}`;
      if (!cells.has(key)) cells.set(key, new Map());
      cells.get(key).set(verdict, (cells.get(key).get(verdict) ?? 0) + 1);
    }
    return { names, cells, many };
  }

  table() {
    const { names, cells, many } = this.counted();
    if (!names.length) return el("p", { class: "quiet" }, "No clashes.");
    const sum = (cell) => [...cell.values()].reduce((x, y) => x + y, 0);
    const most = Math.max(...[...cells.values()].map(sum));
    const lines = names.map((name, i) => el("tr", {}, this.header(name, many && i === names.length - 1),
      ...names.map((other, j) => el("td", {}, j < i ? "" : this.cell(cells.get(`${i},${j}`), name, other, most, sum, many)))));
    const head = el("tr", {}, el("th"), ...names.map((name) => el("th", { scope: "col", title: name }, fileText(broken(name)))));
    return el("table", { class: "matrix" }, el("thead", {}, head), el("tbody", {}, ...lines));
  }

  header(name, others) {
    const made = el("th", { scope: "row", title: name }, fileText(broken(name)));
    if (!others) {
      made.style.cursor = "pointer";
      made.addEventListener("click", () => this.choose(name, null));
    }
    return made;
  }

  cell(counts, x, y, most, sum, many) {
    if (!counts) return el("span", { class: "cell empty" });
    const total = sum(counts);
    const bars = el("span", { class: "bars", "aria-hidden": "true" });
    const about = [];
    for (const verdict of this.rows.severity.keys()) {
      if (!counts.get(verdict)) continue;
      const bar = el("i", { tint: verdict });
      bar.style.flex = String(counts.get(verdict));
      bars.append(bar);
      about.push(`${counts.get(verdict)} ${verdict}`);
    }
    const pair = this.filter.pair;
    const made = el("button", {
      type: "button", class: "cell", title: `${x} / ${y}: ${about.join(", ")}`,
      "aria-pressed": String(Boolean(pair && pair.x === x && pair.y === y)),
      disabled: many && (x === OTHERS || y === OTHERS),
      onclick: () => this.choose(x, y),
    }, String(total), bars);
    made.style.setProperty("--share", String(Math.sqrt(total / most)));
    return made;
  }

  choose(x, y) {
    const pair = this.filter.pair;
    const same = pair && pair.x === x && pair.y === y;
    this.filter.pair = same ? null : { axis: this.axis, x, y };
    this.changed();
  }
}
