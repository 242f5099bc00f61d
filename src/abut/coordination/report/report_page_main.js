// The page: header, problems, filters, and what follows a click.

const PRINTED = 2000; // rows on paper

class Accepted {
  constructor(changed) {
    this.marks = new Map();
    this.changed = changed;
  }

  get(id) { return this.marks.get(id); }

  add(id, reason, depth) { this.marks.set(id, { reason, depth }); this.changed(); }

  remove(id) { this.marks.delete(id); this.changed(); }

  // The list that ``--compare`` and the next run take: id, by, reason, depth.
  text() {
    const lines = [...this.marks].map(([id, { reason, depth }]) => csvLine([id, "", reason, depth ?? ""]));
    return csvLine(["id", "by", "reason", "depth"]) + lines.join("");
  }
}

class Page {
  constructor(facts) {
    this.facts = facts;
    this.rows = new Rows(facts);
    this.filter = new Filter(this.rows);
    this.matrix = new Matrix(this.rows, this.filter, () => this.update());
    this.table = new Table(this.rows, (row) => this.choose(row));
    this.accepted = new Accepted(() => this.filters());
    this.detail = new Detail(this.rows, facts, (step) => this.choose(this.table.beside(step)), this.accepted);
    this.grouped = this.rows.groups.size > 0 && this.rows.groups.size < this.rows.count;
    this.header();
    this.controls();
    this.update();
    const asked = decodeURIComponent(location.hash.replace(/^#clash=/, ""));
    const ids = this.rows.columns.id;
    const found = ids.texts.indexOf(asked);
    this.choose(found >= 0 ? ids.rows.indexOf(found) : this.table.list[0]?.row ?? null);
    document.documentElement.dataset.state = "ready";
  }

  header() {
    const { facts, rows } = this;
    byId("title").textContent = facts.title;
    document.title = facts.title;
    const files = new Set(["a_file", "b_file"].flatMap((name) => rows.texts(name)));
    const texts = [`${new Date(facts.created).toLocaleString(undefined, { dateStyle: "long", timeStyle: "short" })}`];
    if (facts.part_count) texts.push(`${facts.part_count.toLocaleString()} parts`);
    texts.push(`${files.size} ${files.size === 1 ? "file" : "files"} with clashes`);
    if (facts.earlier) texts.push(`compared with ${new Date(facts.earlier).toLocaleDateString(undefined, { dateStyle: "long" })}`);
    byId("subtitle").textContent = texts.join(" · ");
    const skipped = facts.skipped.map(([file, id, name, kind, reason]) =>
      fileText(`${name || id} (${[kind, baseName(file)].filter(Boolean).join(", ")}): ${reason}`));
    this.warn(facts.problems.map((text) => fileText(text)), "problem", "problems", true);
    this.warn(skipped, "object was not checked", "objects were not checked", false);
    const settings = el("dl", {}, ...facts.settings.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, fileText(value))]));
    if (facts.settings.length) byId("facts").append(el("details", {}, el("summary", {}, "Settings"), settings));
    const left = facts.views_left_out;
    const note = "Positions in these views are rounded to 1/65535 of the size of a part, or of its piece near the clash.";
    byId("footer").textContent = `abut clash report. ${left ? `${left} clashes have no view in three dimensions, to keep this file small. ` : ""}${note}`;
  }

  warn(items, one, many, open) {
    if (!items.length) return;
    const list = el("ul", {}, ...items.map((item) => el("li", {}, item)));
    byId("warnings").append(el("details", { class: "notice", open: open && items.length < 4 },
      el("summary", {}, `${items.length} ${items.length === 1 ? one : many}`), list));
  }

  controls() {
    const { filter } = this;
    byId("search").addEventListener("input", (event) => {
      filter.search = event.target.value.trim().toLowerCase();
      this.update();
    });
    const checks = this.rows.texts("check");
    const options = [el("option", { value: "" }, "All checks"), ...checks.map((name, k) => el("option", { value: k + 1 }, name))];
    byId("check").replaceChildren(...options);
    byId("check").hidden = checks.length < 2;
    byId("check").addEventListener("change", (event) => {
      filter.check = event.target.value ? checks[event.target.value - 1] : null;
      this.update();
    });
    byId("grouped").checked = this.grouped;
    byId("grouped").addEventListener("change", (event) => { this.grouped = event.target.checked; this.update(); });
    byId("csv").addEventListener("click", () => save("clashes.csv", "text/csv", this.csv()));
    byId("print").addEventListener("click", () => window.print());
    window.addEventListener("beforeprint", () => this.print());
    const root = document.documentElement;
    byId("theme").addEventListener("click", () => {
      root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
      this.detail.viewer?.redraw();
    });
  }

  update() {
    this.tiles();
    this.matrix.draw();
    const chosen = this.filter.chosen();
    this.table.show(chosen, this.grouped);
    byId("shown").textContent = chosen.length === this.rows.count
      ? `${chosen.length.toLocaleString()} clashes` : `${chosen.length.toLocaleString()} of ${this.rows.count.toLocaleString()}`;
    byId("check").value = this.filter.check === null ? "" : this.rows.texts("check").indexOf(this.filter.check) + 1;
    this.filters();
  }

  tiles() {
    const { facts, filter } = this;
    const toggle = (set, name) => () => { if (!set.delete(name)) set.add(name); this.update(); };
    const verdicts = filter.counts("verdict");
    byId("verdicts").replaceChildren(...facts.verdicts.map((name) => el("button", {
      type: "button", tint: name, class: `tile ${verdicts.get(name) ? "" : "none"}`,
      "aria-pressed": String(filter.verdicts.has(name)), onclick: toggle(filter.verdicts, name),
    }, el("b", {}, (verdicts.get(name) ?? 0).toLocaleString()), el("span", {}, name))));
    const statuses = filter.counts("status");
    const shown = this.rows.hasStatuses ? facts.statuses : [];
    byId("statuses").replaceChildren(...shown.filter((name) => statuses.get(name) || filter.statuses.has(name)).map((name) => el("button", {
      type: "button", class: "chip", "aria-pressed": String(filter.statuses.has(name)), onclick: toggle(filter.statuses, name),
    }, `${statuses.get(name) ?? 0} ${name}`)));
  }

  filters() {
    const made = this.filter.labels().map(([label, end]) => el("button", {
      type: "button", class: "chip", title: "Remove this filter", onclick: () => { end(); this.update(); },
    }, fileText(label), " ✕"));
    const count = this.accepted.marks.size;
    if (count) made.push(el("button", { type: "button", class: "chip", "aria-pressed": "true", onclick: () =>
      save("accepted.csv", "text/csv", this.accepted.text()) }, `Save ${count} accepted`));
    byId("filters").replaceChildren(...made);
  }

  choose(row) {
    if (row !== null) location.replace(`#clash=${encodeURIComponent(this.rows.get("id", row))}`);
    this.table.mark(row);
    this.detail.show(row);
  }

  csv() {
    const names = Object.keys(this.facts.columns);
    const lines = this.table.sorted(this.filter.chosen()).map((row) => csvLine(names.map((name) => this.rows.get(name, row))));
    return "\ufeff" + csvLine(names) + lines.join("");
  }

  // Rows for paper, with pictures.
  print() {
    const { rows } = this;
    for (const details of document.querySelectorAll("details")) details.open = true;
    const chosen = this.table.sorted(this.filter.chosen());
    const part = (side, row) => [fileText(rows.name(side, row)), fileText(rows.about(side, row), "small"),
      fileText(rows.get(`${side}_id`, row), "small")];
    const lines = chosen.slice(0, PRINTED).map((row) => el("tr", {},
      el("td", {}, hasBlock(`p${row}`) ? el("img", { alt: "", src: pictureUrl(row) }) : ""),
      el("td", {}, el("b", {}, rows.get("verdict", row)), el("small", {}, rows.size(row)), el("small", {}, rows.get("status", row))),
      el("td", {}, ...part("a", row)), el("td", {}, ...part("b", row)),
      el("td", {}, fileText(rows.get("check", row)), el("small", {}, !rows.get("group", row) ? "" : `group ${rows.get("group", row)}`)),
      el("td", {}, fileText([rows.get("note", row), rows.get("change", row)].filter(Boolean).join("; ")))));
    const head = el("tr", {}, ...["", "Verdict", "Part a", "Part b", "Check", "Notes"].map((name) => el("th", {}, name)));
    const filters = this.filter.labels().map(([label]) => label).join(", ");
    const count = chosen.length > PRINTED ? `the first ${PRINTED} of ${chosen.length}` : String(chosen.length);
    byId("printed").replaceChildren(
      el("h2", {}, `Clashes: ${count}${filters ? ` (${filters})` : ""}`),
      el("table", { class: "printed" }, el("thead", {}, head), el("tbody", {}, ...lines)));
  }
}

async function start() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
  if (!("DecompressionStream" in window)) {
    byId("warnings").append(el("p", { class: "notice" }, "This report needs a browser of 2023 or later."));
    return;
  }
  new Page(await blockJson("facts"));
}

start();
