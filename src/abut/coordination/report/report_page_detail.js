// The panel about one clash: picture, view in three dimensions, facts, acceptance.

class Detail {
  constructor(rows, facts, step, accepted) {
    Object.assign(this, { rows, facts, step, accepted });
    this.panel = byId("detail");
    this.canvas = el("canvas", { tabindex: "0", "aria-label": "View in three dimensions" });
    this.shapes = new Map();
    this.turn = 0; // of the clash that is being loaded
  }

  show(row) {
    this.row = row;
    this.turn += 1;
    if (row === null) {
      this.panel.replaceChildren(el("p", { class: "none-found" }, "Choose a clash."));
      return;
    }
    const stage = this.stage(row);
    this.panel.replaceChildren(stage, this.tools(), this.texts(row));
    this.panel.scrollTop = 0;
    this.load(row, stage, this.turn).catch((error) => {
      stage.append(el("p", {}, `The view cannot be shown: ${error.message}.`));
    });
  }

  stage(row) {
    const stage = el("div", { class: "stage", id: "stage" });
    if (hasBlock(`p${row}`)) stage.append(el("img", { alt: "", src: pictureUrl(row) }));
    if (hasBlock(`v${row}`)) stage.append(this.canvas);
    else {
      const why = this.rows.get("status", row) === "gone"
        ? "This clash is gone." : "Left out of this file to keep it small: the view in three dimensions.";
      stage.append(el("p", {}, why));
    }
    return stage;
  }

  async load(row, stage, turn) {
    if (!hasBlock(`v${row}`)) return;
    const view = await blockJson(`v${row}`);
    const parts = await Promise.all(view.parts.map((part) => this.part(part, view.middle)));
    if (turn !== this.turn) return;
    this.viewer ??= new Viewer(this.canvas);
    this.viewer.show(view, parts);
    this.viewer.draw();
    stage.classList.add("ready");
    if (view.cut.includes(true)) stage.append(el("p", {}, "Large parts are cut to the faces around the clash."));
  }

  async part(number, middle) {
    const [name, ...pose] = this.facts.parts[number];
    if (!this.shapes.has(name)) {
      if (this.shapes.size > 300) this.shapes.clear();
      this.shapes.set(name, shapeOf(name));
    }
    const shape = await this.shapes.get(name);
    return { points: placed(shape, pose, middle), faces: shape.faces };
  }

  tools() {
    const options = this.options ??= { glass: false, around: true };
    const made = el("div", { class: "stage-tools no-print" });
    for (const [name, label] of [["glass", "Glass"], ["around", "Surroundings"]]) {
      const button = el("button", { type: "button", "aria-pressed": String(options[name]), onclick: () => {
        options[name] = !options[name];
        button.setAttribute("aria-pressed", String(options[name]));
        if (this.viewer) Object.assign(this.viewer.options, options);
        this.viewer?.redraw();
      } }, label);
      made.append(button);
    }
    made.append(el("button", { type: "button", onclick: () => this.viewer?.home() }, "Reset view"));
    return made;
  }

  texts(row) {
    const { rows } = this;
    const verdict = rows.get("verdict", row);
    const size = rows.size(row);
    const head = el("div", { class: "nav" },
      el("h2", { class: "badge", tint: verdict }, el("b", {}, capital(verdict) + (size ? `, ${size}` : ""))),
      el("span", { class: "no-print" },
        el("button", { type: "button", "aria-label": "Previous", onclick: () => this.step(-1) }, "↑"), " ",
        el("button", { type: "button", "aria-label": "Next", onclick: () => this.step(1) }, "↓")));
    return el("div", { class: "inner-pad" }, head, this.partText(row, "a"), this.partText(row, "b"), this.about(row), this.accept(row));
  }

  partText(row, side) {
    const { rows } = this;
    const get = (name) => rows.get(`${side}_${name}`, row);
    const file = baseName(get("file"));
    return el("div", { class: "part", tint: side },
      el("div", {}, fileText(rows.name(side, row), "b")),
      el("div", { class: "quiet" }, fileText([rows.about(side, row), file].filter(Boolean).join(" · "))),
      el("div", {}, copied(get("id"))));
  }

  about(row) {
    const { rows } = this;
    const get = (name) => rows.get(name, row);
    const list = el("dl", { class: "about" });
    const say = (name, ...texts) => list.append(el("dt", {}, name), el("dd", { class: "text", dir: "auto" }, ...texts));
    const depth = get("depth");
    const error = get("depth_error");
    if (get("distance") > 0) say("Distance", lengthText(get("distance")));
    else if (depth > 0 && error > 1e-3 * depth) say("Depth", `${lengthText(depth)} to ${lengthText(depth + error)}`);
    else if (depth !== 0) say("Depth", depth === null ? "unknown: a part is open" : lengthText(depth));
    if (get("regions") > 0) say("Regions", String(get("regions")));
    const place = ["x", "y", "z"].map((x) => get(`a_${x}`));
    if (!place.includes(null)) say("Place", copied(place.map((x) => x.toFixed(3)).join(", ")), " m");
    say("Check", get("check"));
    if (get("group")) {
      const count = rows.groups.get(get("group")).length;
      say("Group", `${get("group")}${count > 1 ? `, ${count} clashes` : ""}`);
    }
    if (rows.hasStatuses) say("Status", get("status") + (get("change") ? `: ${get("change")}` : ""));
    const [by, reason] = [get("accepted_by"), get("accepted_reason")];
    if (by || reason) say("Accepted", [by && `by ${by}`, reason].filter(Boolean).join(": "));
    if (get("note")) say("Note", get("note"));
    say("Id", copied(get("id")));
    return list;
  }

  // Mark a clash as accepted, for a list that the next run reads.
  accept(row) {
    const { accepted, rows } = this;
    const id = rows.get("id", row);
    if (rows.get("status", row) === "gone") return null;
    const given = accepted.get(id);
    const reason = el("input", { type: "text", placeholder: "Reason", "aria-label": "Reason", value: given?.reason ?? "" });
    const button = el("button", { type: "button", "aria-pressed": String(Boolean(given)), onclick: () => {
      if (given) accepted.remove(id);
      else accepted.add(id, reason.value, rows.get("depth", row));
      this.panel.lastChild.lastChild.replaceWith(this.accept(row));
    } }, given ? "Accepted ✓" : "Accept");
    reason.addEventListener("keydown", (event) => { if (event.key === "Enter" && !given) button.click(); });
    return el("div", { class: "accept no-print" }, reason, button);
  }
}

// A text that a click copies.
function copied(text) {
  const made = el("button", { type: "button", class: "copy", title: "Copy", onclick: async () => {
    await navigator.clipboard?.writeText(text).catch(() => null);
    made.textContent = "copied";
    setTimeout(() => { made.textContent = text; }, 700);
  } }, text);
  return made;
}
