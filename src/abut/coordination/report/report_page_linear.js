// Vectors and matrices in columns, as WebGL takes them.

const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const plus = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const times = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const norm = (a) => Math.hypot(...a);

// Projection times view of a camera at ``eye`` with unit vectors ``right``, ``up`` and ``ahead``.
function projected({ eye, right, up, ahead }, tangent, aspect, near, far) {
  const sx = 1 / (tangent * aspect);
  const sy = 1 / tangent;
  const p = (far + near) / (far - near);
  const q = (2 * far * near) / (far - near);
  const out = new Float32Array(16);
  for (let k = 0; k < 3; k++) {
    out[4 * k] = sx * right[k];
    out[4 * k + 1] = sy * up[k];
    out[4 * k + 2] = p * ahead[k];
    out[4 * k + 3] = ahead[k];
  }
  out[12] = -sx * dot(right, eye);
  out[13] = -sy * dot(up, eye);
  out[14] = -p * dot(ahead, eye) - q;
  out[15] = -dot(ahead, eye);
  return out;
}

// Positions of a shape relative to a point of the world, rounded after the subtraction.
function placed(shape, pose, middle) {
  const { points } = shape;
  const out = new Float32Array(points.length);
  for (let k = 0; k < points.length; k += 3) {
    for (let i = 0; i < 3; i++) {
      out[k + i] = pose[4 * i] * points[k] + pose[4 * i + 1] * points[k + 1]
        + pose[4 * i + 2] * points[k + 2] + (pose[4 * i + 3] - middle[i]);
    }
  }
  return out;
}

// Ends of the edges that are sharp or have other than two faces.
function sharpEdges(points, faces) {
  const normals = new Float32Array(faces.length);
  for (let f = 0; f < faces.length; f += 3) {
    const [a, b, c] = [0, 1, 2].map((k) => points.subarray(3 * faces[f + k], 3 * faces[f + k] + 3));
    const n = cross(minus(b, a), minus(c, a));
    const length = norm(n) || 1;
    normals.set([n[0] / length, n[1] / length, n[2] / length], f);
  }
  const edges = new Map();
  const count = points.length / 3;
  for (let f = 0; f < faces.length; f += 3) {
    for (let k = 0; k < 3; k++) {
      const p = faces[f + k];
      const q = faces[f + ((k + 1) % 3)];
      const key = Math.min(p, q) * count + Math.max(p, q);
      if (!edges.has(key)) edges.set(key, [p, q, f, 1, true]);
      else {
        const edge = edges.get(key);
        edge[3] += 1;
        edge[4] &&= dot(normals.subarray(f, f + 3), normals.subarray(edge[2], edge[2] + 3)) > 0.87;
      }
    }
  }
  const out = [];
  for (const [p, q, , uses, smooth] of edges.values()) {
    if (uses === 2 && smooth) continue;
    out.push(...points.subarray(3 * p, 3 * p + 3), ...points.subarray(3 * q, 3 * q + 3));
  }
  return new Float32Array(out);
}
