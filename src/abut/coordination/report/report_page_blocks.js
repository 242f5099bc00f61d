// Blocks of the page: texts that are decoded when they are needed. Texts of files become text
// nodes, never markup.

const byId = (id) => document.getElementById(id);

function bytesOf(base64) {
  const raw = atob(base64);
  const out = new Uint8Array(raw.length);
  for (let k = 0; k < raw.length; k++) out[k] = raw.charCodeAt(k);
  return out;
}

async function inflated(base64) {
  const stream = new Blob([bytesOf(base64)]).stream();
  return new Response(stream.pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer();
}

const block = (id) => byId(`block-${id}`);
const hasBlock = (id) => block(id) !== null;

async function blockJson(id) {
  return JSON.parse(new TextDecoder().decode(await inflated(block(id).textContent)));
}

const pictureUrl = (row) => `data:image/png;base64,${block(`p${row}`).textContent}`;

// A shape: corners of faces, and positions in the frame of its part.
async function shapeOf(id) {
  const buffer = await inflated(block(id).textContent);
  const [vertexCount, faceCount] = new Uint32Array(buffer, 0, 2);
  const box = new Float64Array(buffer, 8, 6);
  const moves = new Uint16Array(buffer.slice(56, 56 + 6 * vertexCount));
  const points = new Float64Array(3 * vertexCount);
  for (let axis = 0; axis < 3; axis++) {
    let at = 0;
    for (let k = 0; k < vertexCount; k++) {
      at = (at + moves[axis * vertexCount + k]) & 0xffff;
      points[3 * k + axis] = box[axis] + box[3 + axis] * at;
    }
  }
  const start = 56 + 6 * vertexCount;
  const faces = new Uint32Array(buffer.slice(start, start + 12 * faceCount));
  for (let k = 1; k < faces.length; k++) faces[k] = faces[k] + faces[k - 1];
  return { points, faces };
}

// An element with attributes and children; texts become text nodes.
function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "tint") made.style.setProperty("--tint", `var(--${value})`);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// A text of a file: shown in its own direction, so that it cannot turn what is around it.
const fileText = (text, tag = "span") => el(tag, { class: "text", dir: "auto" }, text);

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const baseName = (path) => path.split(/[\\/]/).pop();

function lengthText(metres) {
  if (metres === null) return "unknown";
  if (metres > 0 && metres < 1e-6) return "<0.001 mm";
  if (Math.abs(metres) >= 1) return `${Number(metres.toPrecision(3))} m`;
  return `${Number((1000 * metres).toPrecision(3))} mm`;
}

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// Fields for spreadsheets: quoted, and never a formula.
function csvLine(fields) {
  const quoted = fields.map((field) => {
    let text = String(field ?? "");
    if (typeof field === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return quoted.join(",") + "\r\n";
}
