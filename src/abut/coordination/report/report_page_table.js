// The table: only the rows in sight are elements, so that thousands of rows stay usable.

const ROW_HEIGHT = 50;
const MARGIN = 6; // rows beyond the window
const HEADS = [
  ["verdict", "Verdict"], ["size", "Size"], ["a", "Part a"], ["b", "Part b"],
  ["check", "Check"], ["group", "Group"],
];

class Table {
  constructor(rows, choose) {
    Object.assign(this, { rows, choose });
    this.sorting = ["verdict", 1];
    this.list = []; // of { row, more, inner }
    this.open = new Set(); // groups
    this.chosen = null;
    byId("scroll").parentElement.classList.toggle("one-check", rows.texts("check").length < 2);
    this.scroll = byId("scroll");
    this.scroll.addEventListener("scroll", () => this.paint());
    this.scroll.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.paint()).observe(this.scroll);
  }

  // Show rows; one row stands for each group if they are grouped.
  show(chosen, grouped) {
    const sorted = this.sorted(chosen);
    this.list = [];
    const seen = new Map();
    for (const row of sorted) {
      const group = this.rows.get("group", row);
      if (!grouped || !group) this.list.push({ row, more: 0 });
      else if (seen.has(group)) seen.get(group).push(row);
      else {
        seen.set(group, []);
        this.list.push({ row, group });
      }
    }
    if (grouped) {
      this.list = this.list.flatMap((item) => {
        const others = seen.get(item.group) ?? [];
        item.more = others.length;
        return this.open.has(item.group) ? [item, ...others.map((row) => ({ row, more: 0, inner: true }))] : [item];
      });
    }
    this.again = () => this.show(chosen, grouped);
    byId("body").style.height = `${Math.max(this.list.length, 1) * ROW_HEIGHT}px`;
    this.head();
    this.paint();
  }

  sorted(chosen) {
    const [name, way] = this.sorting;
    const rows = this.rows;
    const compare = new Intl.Collator(undefined, { numeric: true }).compare;
    const depth = (row) => rows.get("depth", row) ?? 0;
    const size = (p, q) => depth(q) - depth(p) || (rows.get("distance", p) ?? 0) - (rows.get("distance", q) ?? 0);
    const by = {
      verdict: (p, q) => rows.severity.get(rows.get("verdict", p)) - rows.severity.get(rows.get("verdict", q)),
      size,
      a: (p, q) => compare(rows.name("a", p), rows.name("a", q)),
      b: (p, q) => compare(rows.name("b", p), rows.name("b", q)),
      check: (p, q) => compare(rows.get("check", p), rows.get("check", q)),
      group: (p, q) => compare(rows.get("group", p), rows.get("group", q)),
    }[name];
    return [...chosen].sort((p, q) => way * by(p, q) || size(p, q) || p - q);
  }

  head() {
    const cells = HEADS.map(([name, label]) => {
      const [now, way] = this.sorting;
      const sort = name === now ? (way > 0 ? "ascending" : "descending") : null;
      return el("button", {
        type: "button", role: "columnheader", "aria-sort": sort, class: name === "size" ? "number" : "",
        onclick: () => { this.sorting = [name, name === now ? -way : 1]; this.again(); },
      }, label + (sort ? (way > 0 ? " ↓" : " ↑") : ""));
    });
    byId("head").replaceChildren(...cells);
  }

  paint() {
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / ROW_HEIGHT) - MARGIN);
    const stop = Math.min(this.list.length, first + Math.ceil(this.scroll.clientHeight / ROW_HEIGHT) + 2 * MARGIN);
    const made = [];
    for (let k = first; k < stop; k++) made.push(this.line(this.list[k], k));
    if (!this.list.length) made.push(el("p", { class: "none-found" }, "No clash passes the filter."));
    byId("body").replaceChildren(...made);
  }

  line(item, k) {
    const rows = this.rows;
    const { row } = item;
    const status = rows.get("status", row);
    const verdict = rows.get("verdict", row);
    const [size, unit, word] = rows.size(row).replace("at most ", "\u2264\u00a0").split(" ");
    const made = el("div", {
      class: `row ${status} ${row === this.chosen ? "chosen" : ""} ${item.inner ? "inner" : ""}`,
      role: "row", "data-row": row, "aria-rowindex": k + 1, onclick: () => this.choose(row),
    },
    el("span", { class: "badge", tint: verdict }, el("b", {}, verdict), rows.hasStatuses ? el("small", {}, status) : null),
    el("span", { class: "number two" }, el("span", {}, size ? `${size} ${unit}` : "–"), el("small", {}, word ?? "")),
    this.part("a", row), this.part("b", row),
    el("span", { class: "two" }, fileText(rows.get("check", row))),
    el("span", {}, this.groupMark(item)));
    made.style.top = `${k * ROW_HEIGHT}px`;
    return made;
  }

  part(side, row) {
    return el("span", { class: "two" }, fileText(this.rows.name(side, row)), fileText(this.rows.about(side, row), "small"));
  }

  groupMark(item) {
    const group = this.rows.get("group", item.row);
    if (!item.more) return el("span", { class: "quiet", title: group }, group.slice(0, 6));
    const toggle = (event) => {
      event.stopPropagation();
      if (!this.open.delete(group)) this.open.add(group);
      this.again();
    };
    const open = this.open.has(group);
    return el("button", { type: "button", class: "more", "aria-expanded": String(open), title: `Group ${group}`, onclick: toggle },
      `${open ? "▾" : "▸"} +${item.more}`);
  }

  // Mark a row, and scroll to it where it is out of sight; its group opens.
  mark(row) {
    this.chosen = row;
    let k = this.list.findIndex((item) => item.row === row);
    if (row !== null && k < 0 && this.list.some((item) => item.group === this.rows.get("group", row))) {
      this.open.add(this.rows.get("group", row));
      this.again();
      k = this.list.findIndex((item) => item.row === row);
    }
    if (k >= 0) {
      const top = k * ROW_HEIGHT;
      const { scrollTop, clientHeight } = this.scroll;
      if (top < scrollTop) this.scroll.scrollTop = top;
      else if (top + ROW_HEIGHT > scrollTop + clientHeight) this.scroll.scrollTop = top + ROW_HEIGHT - clientHeight;
    }
    this.paint();
  }

  // The row some places after the chosen one.
  beside(step) {
    if (!this.list.length) return null;
    const k = this.list.findIndex((item) => item.row === this.chosen);
    return this.list[Math.min(Math.max(k + step, 0), this.list.length - 1)].row;
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / ROW_HEIGHT) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const row = this.beside(steps[event.key]);
    if (row !== null) this.choose(row);
  }
}
