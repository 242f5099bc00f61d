// The view of a clash in three dimensions.

const SURFACE_VERTEX = `#version 300 es
layout(location = 0) in vec3 at;
uniform mat4 view;
out vec3 place;
void main() { place = at; gl_Position = view * vec4(at, 1.0); }`;
const SURFACE_FRAGMENT = `#version 300 es
precision highp float;
in vec3 place;
uniform vec3 eye, lamp;
uniform vec4 color;
out vec4 shown;
void main() {
  vec3 n = normalize(cross(dFdx(place), dFdy(place)));
  vec3 way = normalize(eye - place);
  if (dot(n, way) < 0.0) n = -n;
  float light = 0.34 + 0.44 * max(dot(n, lamp), 0.0) + 0.22 * (0.5 + 0.5 * n.z) + 0.10 * dot(n, way);
  shown = vec4(color.rgb * light * color.a, color.a);
}`;
const LINE_VERTEX = `#version 300 es
layout(location = 0) in vec2 corner;
layout(location = 1) in vec3 start;
layout(location = 2) in vec3 stop;
uniform mat4 view;
uniform vec2 size;
uniform float radius, nearer;
out vec2 along;
flat out float reach;
void main() {
  vec4 p = view * vec4(start, 1.0), q = view * vec4(stop, 1.0);
  float least = 1e-4 * max(abs(p.w), abs(q.w)) + 1e-12;
  if (p.w < least && q.w < least) { gl_Position = vec4(2.0, 2.0, 2.0, 1.0); return; }
  if (p.w < least) p = mix(q, p, (q.w - least) / (q.w - p.w));
  if (q.w < least) q = mix(p, q, (p.w - least) / (p.w - q.w));
  vec2 a = p.xy / p.w * size, b = q.xy / q.w * size;
  float far = distance(a, b);
  vec2 ahead = far > 1e-4 ? (b - a) / far : vec2(1.0, 0.0);
  vec4 end = corner.x < 0.0 ? p : q;
  vec2 off = (ahead * corner.x + vec2(-ahead.y, ahead.x) * corner.y) * (radius + 1.0);
  gl_Position = vec4(end.xy + off / size * end.w, end.z - nearer * end.w, end.w);
  along = vec2((corner.x < 0.0 ? 0.0 : far) + corner.x * (radius + 1.0), corner.y * (radius + 1.0));
  reach = far;
}`;
const LINE_FRAGMENT = `#version 300 es
precision highp float;
in vec2 along;
flat in float reach;
uniform float radius;
uniform vec4 color;
out vec4 shown;
void main() {
  float off = length(vec2(along.x - clamp(along.x, 0.0, reach), along.y));
  float share = color.a * clamp(radius + 0.5 - off, 0.0, 1.0);
  if (share <= 0.0) discard;
  shown = vec4(color.rgb * share, share);
}`;
const TANGENT = Math.tan((45 / 2) * (Math.PI / 180));
const INK = [0.07, 0.1, 0.16];

class Viewer {
  constructor(canvas) {
    this.canvas = canvas;
    const gl = canvas.getContext("webgl2", { antialias: true, stencil: true });
    if (!gl) throw new Error("no WebGL 2");
    this.gl = gl;
    this.surface = this.program(SURFACE_VERTEX, SURFACE_FRAGMENT, ["view", "eye", "lamp", "color"]);
    this.line = this.program(LINE_VERTEX, LINE_FRAGMENT, ["view", "size", "radius", "nearer", "color"]);
    this.corners = this.buffer(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 1, -1, -1, 1, 1, 1]));
    this.options = { glass: false, around: true };
    this.held = [];
    this.parts = [];
    this.listen();
    new ResizeObserver(() => this.redraw()).observe(canvas);
  }

  program(vertex, fragment, uniforms) {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    const at = {};
    for (const name of uniforms) at[name] = gl.getUniformLocation(program, name);
    return { program, at };
  }

  buffer(target, data) {
    const { gl } = this;
    const made = gl.createBuffer();
    gl.bindBuffer(target, made);
    gl.bufferData(target, data, gl.STATIC_DRAW);
    return made;
  }

  // Vertex arrays of a surface, and of lines given as pairs of ends.
  surfaceArray(points, faces) {
    const { gl } = this;
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    const buffers = [this.buffer(gl.ARRAY_BUFFER, points)];
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
    buffers.push(this.buffer(gl.ELEMENT_ARRAY_BUFFER, faces));
    gl.bindVertexArray(null);
    this.held.push({ array, buffers });
    return { array, count: faces.length };
  }

  lineArray(ends) {
    const { gl } = this;
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.corners);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    const buffers = [this.buffer(gl.ARRAY_BUFFER, new Float32Array(ends))];
    for (const k of [1, 2]) {
      gl.enableVertexAttribArray(k);
      gl.vertexAttribPointer(k, 3, gl.FLOAT, false, 24, 12 * (k - 1));
      gl.vertexAttribDivisor(k, 1);
    }
    gl.bindVertexArray(null);
    this.held.push({ array, buffers });
    return { array, count: ends.length / 6 };
  }

  // Show a view: parts are { points, faces } relative to its middle, a and b first.
  show(view, parts) {
    this.clear();
    this.view = view;
    this.parts = parts.map(({ points, faces }) => ({
      surface: this.surfaceArray(points, faces), edges: this.lineArray(sharpEdges(points, faces)),
    }));
    this.lines = this.lineArray(view.lines.flat(2));
    const [a, b] = view.points;
    this.apart = this.lineArray(view.lines.length || norm(minus(a, b)) === 0 ? [] : [...a, ...b]);
    this.dots = [this.lineArray([...a, ...a]), this.lineArray([...b, ...b])];
    this.reach = Math.max(...parts.map(({ points }) => points.reduce((x, y) => Math.max(x, Math.abs(y)), 0)), view.size);
    this.home();
  }

  clear() {
    const { gl } = this;
    for (const { array, buffers } of this.held) {
      gl.deleteVertexArray(array);
      for (const buffer of buffers) gl.deleteBuffer(buffer);
    }
    this.held = [];
    this.parts = [];
  }

  home() {
    const { eye } = this.view;
    this.far = norm(eye);
    this.azimuth = Math.atan2(eye[1], eye[0]);
    this.elevation = Math.asin(eye[2] / this.far);
    this.target = [0, 0, 0];
    this.redraw();
  }

  camera() {
    const [e, a] = [this.elevation, this.azimuth];
    const ahead = [-Math.cos(e) * Math.cos(a), -Math.cos(e) * Math.sin(a), -Math.sin(e)];
    const right = [-Math.sin(a), Math.cos(a), 0];
    return { eye: minus(this.target, times(ahead, this.far)), right, up: cross(right, ahead), ahead };
  }

  redraw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.draw(); });
  }

  draw() {
    const { gl, canvas } = this;
    if (!this.parts.length || !canvas.clientWidth) return;
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    canvas.width = Math.round(canvas.clientWidth * scale);
    canvas.height = Math.round(canvas.clientHeight * scale);
    gl.viewport(0, 0, canvas.width, canvas.height);
    const camera = this.camera();
    const aspect = canvas.width / canvas.height;
    const tangent = TANGENT * Math.max(1, 4 / 3 / aspect);
    const far = this.far + norm(this.target) + 2 * this.reach;
    this.matrix = projected(camera, tangent, aspect, Math.max(this.far / 60, far / 20000), far);
    this.scale = scale;
    gl.useProgram(this.surface.program);
    gl.uniformMatrix4fv(this.surface.at.view, false, this.matrix);
    gl.uniform3fv(this.surface.at.eye, camera.eye);
    const lamp = plus(plus(times(camera.right, -0.6), times(camera.up, 0.8)), times(camera.ahead, -0.9));
    gl.uniform3fv(this.surface.at.lamp, times(lamp, 1 / norm(lamp)));
    gl.useProgram(this.line.program);
    gl.uniformMatrix4fv(this.line.at.view, false, this.matrix);
    gl.uniform2f(this.line.at.size, canvas.width / 2, canvas.height / 2);
    this.paint();
  }

  paint() {
    const { gl } = this;
    const [red, ...colors] = ["clash", "a", "b"].map(themeColor);
    const glass = this.view.glass.map((own) => own || this.options.glass);
    gl.clearColor(0, 0, 0, 0);
    gl.depthMask(true);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LEQUAL);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    for (const k of [0, 1]) if (!glass[k]) this.part(k, [...colors[k], 1], 0.5);
    gl.depthMask(false);
    if (this.options.around) for (let k = 2; k < this.parts.length; k++) this.part(k, [0.55, 0.6, 0.67, 0.1], 0.22);
    for (const k of [0, 1]) if (glass[k]) this.part(k, [...colors[k], 0.26], 0.5);
    gl.depthMask(true);
    if (this.view.same) {
      gl.clear(gl.DEPTH_BUFFER_BIT);
      this.drawSurface(this.parts[0].surface, [...red, 0.5]);
    } else if (this.view.solid && !this.view.cut.includes(true)) {
      this.common(0, 1, red);
      this.common(1, 0, red);
    }
    gl.disable(gl.DEPTH_TEST);
    this.drawLines(this.lines, [...red, 1], 1.1);
    this.drawLines(this.apart, [...red, 1], 1.3);
    for (const k of [0, 1]) {
      this.drawLines(this.dots[k], [1, 1, 1, 1], 5.2);
      this.drawLines(this.dots[k], [...colors[k].map((x) => 0.75 * x), 1], 3.8);
    }
  }

  part(k, color, edge) {
    this.drawSurface(this.parts[k].surface, color);
    this.drawLines(this.parts[k].edges, [...INK, edge * Math.max(color[3], 0.55)], 0.45);
  }

  // Draw in red the front faces of part ``own`` that lie inside part ``other``: the nearest ones,
  // by counting faces of the other part before them.
  common(own, other, red) {
    const { gl } = this;
    gl.clear(gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
    gl.colorMask(false, false, false, false);
    gl.enable(gl.CULL_FACE);
    this.drawSurface(this.parts[own].surface, [0, 0, 0, 1]);
    gl.disable(gl.CULL_FACE);
    gl.enable(gl.STENCIL_TEST);
    gl.depthMask(false);
    gl.depthFunc(gl.LESS);
    gl.stencilFunc(gl.ALWAYS, 0, 255);
    gl.stencilOpSeparate(gl.FRONT, gl.KEEP, gl.KEEP, gl.INCR_WRAP);
    gl.stencilOpSeparate(gl.BACK, gl.KEEP, gl.KEEP, gl.DECR_WRAP);
    this.drawSurface(this.parts[other].surface, [0, 0, 0, 1]);
    gl.colorMask(true, true, true, true);
    gl.stencilFunc(gl.NOTEQUAL, 0, 255);
    gl.stencilOp(gl.KEEP, gl.KEEP, gl.KEEP);
    gl.depthFunc(gl.EQUAL);
    gl.enable(gl.CULL_FACE);
    this.drawSurface(this.parts[own].surface, [...red, 0.72]);
    gl.disable(gl.CULL_FACE);
    gl.disable(gl.STENCIL_TEST);
    gl.depthFunc(gl.LEQUAL);
    gl.depthMask(true);
  }

  drawSurface({ array, count }, color) {
    const { gl } = this;
    gl.useProgram(this.surface.program);
    gl.uniform4fv(this.surface.at.color, color);
    gl.bindVertexArray(array);
    gl.drawElements(gl.TRIANGLES, count, gl.UNSIGNED_INT, 0);
  }

  drawLines({ array, count }, color, radius) {
    if (!count) return;
    const { gl } = this;
    gl.useProgram(this.line.program);
    gl.uniform4fv(this.line.at.color, color);
    gl.uniform1f(this.line.at.radius, radius * this.scale);
    gl.uniform1f(this.line.at.nearer, 2e-4);
    gl.bindVertexArray(array);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
  }

  turn(dx, dy) {
    this.azimuth -= dx;
    this.elevation = Math.min(Math.max(this.elevation + dy, -1.55), 1.55);
    this.redraw();
  }

  pan(dx, dy) {
    const { right, up } = this.camera();
    const step = (2 * TANGENT * this.far) / this.canvas.clientHeight;
    this.target = plus(this.target, plus(times(right, -dx * step), times(up, dy * step)));
    this.redraw();
  }

  zoom(factor) {
    this.far = Math.min(Math.max(this.far * factor, this.view.size / 400), 40 * this.reach);
    this.redraw();
  }

  listen() {
    const { canvas } = this;
    const held = new Map();
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, [event.clientX, event.clientY]);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!held.has(event.pointerId)) return;
      const [x, y] = held.get(event.pointerId);
      const now = [event.clientX, event.clientY];
      const [dx, dy] = [now[0] - x, now[1] - y];
      if (held.size === 2) {
        const other = [...held].find(([id]) => id !== event.pointerId)[1];
        this.zoom(Math.hypot(x - other[0], y - other[1]) / Math.max(Math.hypot(now[0] - other[0], now[1] - other[1]), 1));
        this.pan(dx / 2, dy / 2);
      } else if (event.shiftKey || event.buttons & 6) this.pan(dx, dy);
      else this.turn(dx * 0.008, dy * 0.008);
      held.set(event.pointerId, now);
    });
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (event) => held.delete(event.pointerId));
    }
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("dblclick", () => this.home());
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * (event.deltaMode ? 0.05 : 0.0015)));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const turns = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
      if (event.key in turns) this.turn(...turns[event.key]);
      else if (event.key === "+" || event.key === "-") this.zoom(event.key === "+" ? 0.85 : 1.18);
      else return;
      event.preventDefault();
    });
  }
}

// A colour of the theme as numbers.
function themeColor(name) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  return [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16) / 255);
}
