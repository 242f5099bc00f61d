// Rows of the report, and the filter that chooses some of them.

class Rows {
  constructor(facts) {
    this.count = facts.count;
    this.columns = facts.columns;
    this.severity = new Map(facts.verdicts.map((name, k) => [name, k]));
    this.order = new Map(facts.statuses.map((name, k) => [name, k]));
    this.groups = new Map();
    for (let row = 0; row < this.count; row++) {
      const group = this.get("group", row);
      if (!group) continue;
      if (!this.groups.has(group)) this.groups.set(group, []);
      this.groups.get(group).push(row);
    }
    this.words = [];
    this.hasStatuses = facts.earlier !== null || this.texts("status").some((name) => name !== "new");
  }

  get(name, row) {
    const column = this.columns[name];
    return column.texts ? column.texts[column.rows[row]] : column.rows[row];
  }

  texts(name) {
    return this.columns[name].texts;
  }

  // Depth or distance, for people.
  size(row) {
    const distance = this.get("distance", row);
    if (distance > 0) return `${lengthText(distance)} apart`;
    const depth = this.get("depth", row);
    if (depth === null) return "depth unknown";
    const error = this.get("depth_error", row);
    if (error > depth) return `at most ${lengthText(depth + error)} deep`;
    return depth > 0 ? `${lengthText(depth)} deep` : "";
  }

  name(side, row) {
    return this.get(`${side}_name`, row).trim() || this.get(`${side}_id`, row) || this.get(side, row);
  }

  about(side, row) {
    const texts = [this.get(`${side}_type`, row), this.get(`${side}_layer`, row)];
    return texts.filter((text) => text.trim()).join(" · ");
  }

  haystack(row) {
    if (!(row in this.words)) {
      const names = ["id", "note", "check", "change"];
      for (const side of "ab") for (const x of ["name", "type", "layer", "id", "file"]) names.push(`${side}_${x}`);
      this.words[row] = names.map((name) => this.get(name, row)).join("\n").toLowerCase();
    }
    return this.words[row];
  }

  // What a row is called along an axis of the matrix.
  along(axis, side, row) {
    const text = this.get(`${side}_${axis}`, row);
    return (axis === "file" ? baseName(text) : text).trim() || "(none)";
  }
}

class Filter {
  constructor(rows) {
    this.rows = rows;
    this.search = "";
    this.verdicts = new Set();
    this.statuses = new Set();
    this.check = null;
    this.pair = null; // { axis, x, y }; y is null for all
    this.group = null;
  }

  passes(row, without = null) {
    const rows = this.rows;
    if (without !== "verdict" && this.verdicts.size && !this.verdicts.has(rows.get("verdict", row))) return false;
    if (without !== "status" && this.statuses.size && !this.statuses.has(rows.get("status", row))) return false;
    if (this.check !== null && rows.get("check", row) !== this.check) return false;
    if (this.group !== null && rows.get("group", row) !== this.group) return false;
    if (without !== "pair" && this.pair && !this.inPair(row)) return false;
    return this.search.split(/\s+/).every((word) => !word || rows.haystack(row).includes(word));
  }

  inPair(row) {
    const { axis, x, y } = this.pair;
    const a = this.rows.along(axis, "a", row);
    const b = this.rows.along(axis, "b", row);
    if (y === null) return a === x || b === x;
    return (a === x && b === y) || (a === y && b === x);
  }

  chosen(without = null) {
    const out = [];
    for (let row = 0; row < this.rows.count; row++) if (this.passes(row, without)) out.push(row);
    return out;
  }

  counts(name) {
    const out = new Map();
    for (const row of this.chosen(name)) {
      const value = this.rows.get(name, row);
      out.set(value, (out.get(value) ?? 0) + 1);
    }
    return out;
  }

  // Labels of what is filtered, each with a function that ends it.
  labels() {
    const out = [];
    if (this.search) out.push([`“${this.search}”`, () => (this.search = byId("search").value = "")]);
    for (const one of this.verdicts) out.push([one, () => this.verdicts.delete(one)]);
    for (const one of this.statuses) out.push([one, () => this.statuses.delete(one)]);
    if (this.check !== null) out.push([`check ${this.check}`, () => (this.check = null)]);
    if (this.group !== null) out.push([`group ${this.group}`, () => (this.group = null)]);
    if (this.pair) {
      const { x, y } = this.pair;
      out.push([y === null ? x : `${x} / ${y}`, () => (this.pair = null)]);
    }
    return out;
  }
}
