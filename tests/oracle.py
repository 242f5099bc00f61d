"""Slow truth in rational arithmetic, written independently of the library.

Two triangles, as convex hulls of three points, are compared through the linear programme that
their definition is: is there a point in both? Solved by clipping in exact fractions.
"""

from fractions import Fraction


def sign(x):
    """-1, 0 or 1."""
    return (x > 0) - (x < 0)


def exact(points):
    """Points of floats as tuples of fractions."""
    return [tuple(Fraction(float(x)) for x in p) for p in points]


def sub(p, q):
    """P - q."""
    return tuple(x - y for x, y in zip(p, q, strict=True))


def dot(p, q):
    """Inner product."""
    return sum(x * y for x, y in zip(p, q, strict=True))


def cross(p, q):
    """Vector product."""
    return (
        p[1] * q[2] - p[2] * q[1],
        p[2] * q[0] - p[0] * q[2],
        p[0] * q[1] - p[1] * q[0],
    )


def orient3d(a, b, c, d):
    """Sign of the volume of a, b, c, d."""
    a, b, c, d = exact([a, b, c, d])
    return sign(dot(cross(sub(b, a), sub(c, a)), sub(d, a)))


def orient2d(a, b, c):
    """Sign of the area of a, b, c."""
    a, b, c = exact([a, b, c])
    u, v = sub(b, a), sub(c, a)
    return sign(u[0] * v[1] - u[1] * v[0])


def clip(polygon, normal, offset):
    """Part of a convex polygon (or segment, or point) where dot(normal, x) <= offset."""
    kept = []
    for k, p in enumerate(polygon):
        q = polygon[(k + 1) % len(polygon)]
        fp, fq = dot(normal, p) - offset, dot(normal, q) - offset
        if fp <= 0:
            kept.append(p)
        if fp * fq < 0:
            t = fp / (fp - fq)
            kept.append(tuple(x + t * (y - x) for x, y in zip(p, q, strict=True)))
    return list(dict.fromkeys(kept))


def half_spaces(triangle):
    """Half-spaces (normal, offset) whose intersection is the closed triangle, segment or point."""
    a, b, c = triangle
    normal = cross(sub(b, a), sub(c, a))
    if any(normal):
        yield normal, dot(normal, a)
        yield tuple(-x for x in normal), -dot(normal, a)
        for p, q in ((a, b), (b, c), (c, a)):
            outward = cross(sub(q, p), normal)
            yield outward, dot(outward, p)
        return
    ends = max(((p, q) for p in triangle for q in triangle), key=lambda e: dot(sub(*e), sub(*e)))
    p, q = ends
    axis = sub(q, p)
    if any(axis):
        for e in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):  # the line, as planes through it
            n = cross(axis, e)
            if any(n):
                yield n, dot(n, p)
                yield tuple(-x for x in n), -dot(n, p)
        yield axis, dot(axis, q)
        yield tuple(-x for x in axis), -dot(axis, p)
        return
    for k in range(3):
        e = tuple(Fraction(int(i == k)) for i in range(3))
        yield e, p[k]
        yield tuple(-x for x in e), -p[k]


def intersection(a, b):
    """Corners of the intersection of two closed triangles of fractions; empty when apart."""
    polygon = list(dict.fromkeys(a))
    for normal, offset in half_spaces(b):
        if not polygon:
            return []
        polygon = clip(polygon, normal, offset)
    return polygon


def common_part(a, b):
    """Corners of the intersection of two closed triangles, exact; empty when they are apart."""
    return intersection(exact(a), exact(b))


def intersect_tri_tri(a, b):
    """Do two closed triangles share a point?"""
    return bool(common_part(a, b))


def intersect_neighbours(a, b, names_a=None, names_b=None):
    """Do two faces of one mesh meet beyond the corners they share?

    Corners are shared when their names are equal: vertex indices, or (by default) positions.
    """
    a, b = exact(a), exact(b)
    names_a, names_b = names_a or a, names_b or b
    if set(names_a) == set(names_b):
        return True
    shared = [p for p, name in zip(a, names_a, strict=True) if name in names_b]
    part = intersection(a, b)
    if not shared:
        return bool(part)
    edge = [min(shared), max(shared), max(shared)]  # at most two corners differ
    return any(not intersection([p, p, p], edge) for p in part)


def boxes_overlap(a, b):
    """Do the boxes of two triangles (arrays) overlap? Comparing floats is exact."""
    return (a.min(axis=0) <= b.max(axis=0)).all() and (b.min(axis=0) <= a.max(axis=0)).all()


def pairs_between(vertices_a, faces_a, vertices_b, faces_b):
    """Sorted pairs of faces of two meshes that share a point."""
    return [
        (i, j)
        for i, a in enumerate(vertices_a[faces_a])
        for j, b in enumerate(vertices_b[faces_b])
        if boxes_overlap(a, b) and intersect_tri_tri(a, b)
    ]


def pairs_within(vertices, faces, weld=True):
    """Sorted pairs of faces of one mesh that meet beyond what they share."""
    faces = [tuple(map(int, face)) for face in faces]
    corners = [vertices[list(face)] for face in faces]
    names = [None if weld else face for face in faces]
    return [
        (i, j)
        for i in range(len(faces))
        for j in range(i + 1, len(faces))
        if boxes_overlap(corners[i], corners[j])
        and intersect_neighbours(corners[i], corners[j], names[i], names[j])
    ]


def squared_distance_to_segment(p, a, b):
    """Of fractions, exact."""
    axis = sub(b, a)
    t = dot(sub(p, a), axis) / dot(axis, axis) if any(axis) else Fraction(0)
    t = min(max(t, Fraction(0)), Fraction(1))
    off = sub(p, tuple(x + t * y for x, y in zip(a, axis, strict=True)))
    return dot(off, off)


def squared_distance_to_triangle(p, triangle):
    """Squared distance of a point and a closed triangle, an exact fraction."""
    (p,) = exact([p])
    a, b, c = exact(triangle)
    normal = cross(sub(b, a), sub(c, a))
    if any(normal):
        turns = [dot(cross(sub(v, u), sub(p, u)), normal) >= 0 for u, v in ((a, b), (b, c), (c, a))]
        if all(turns):
            return dot(sub(p, a), normal) ** 2 / dot(normal, normal)
    return min(squared_distance_to_segment(p, u, v) for u, v in ((a, b), (b, c), (c, a)))


def _difference(p, q):
    return [x - y for x, y in zip(p, q, strict=True)]


def _product(u, v):
    return sum(x * y for x, y in zip(u, v, strict=True))


def _squared_to_segment(p, start, end):
    """Square of the distance of a point and a segment, all of fractions."""
    edge, r = _difference(end, start), _difference(p, start)
    length = _product(edge, edge)
    share = min(max(_product(r, edge) / length, Fraction(0)), Fraction(1)) if length else 0
    way = [x - share * e for x, e in zip(r, edge, strict=True)]
    return _product(way, way)


def _squared_to_tri(p, t):
    """Square of the distance of a point and a triangle, all of fractions."""
    least = min(_squared_to_segment(p, t[i], t[(i + 1) % 3]) for i in range(3))
    u, v, r = _difference(t[1], t[0]), _difference(t[2], t[0]), _difference(p, t[0])
    uu, uv, vv = _product(u, u), _product(u, v), _product(v, v)
    ru, rv = _product(r, u), _product(r, v)
    area = uu * vv - uv * uv
    along_u, along_v = vv * ru - uv * rv, uu * rv - uv * ru
    if area > 0 and along_u >= 0 and along_v >= 0 and along_u + along_v <= area:
        foot = [(along_u * x + along_v * y) / area for x, y in zip(u, v, strict=True)]
        way = _difference(r, foot)
        least = min(least, _product(way, way))
    return least


def _squared_between_edges(p, u, q, v):
    """Square of the distance of two lines where they are nearest inside both edges, else None."""
    w = _difference(q, p)
    uu, uv, vv = _product(u, u), _product(u, v), _product(v, v)
    wu, wv = _product(w, u), _product(w, v)
    size = uu * vv - uv * uv
    along_u, along_v = vv * wu - uv * wv, uv * wu - uu * wv
    if size == 0 or not (0 <= along_u <= size and 0 <= along_v <= size):
        return None
    way = [z + (along_v * y - along_u * x) / size for x, y, z in zip(u, v, w, strict=True)]
    return _product(way, way)


def _fractions(t):
    return [[Fraction(float(x)) for x in p] for p in t]


def squared_distance_point_tri(p, t):
    """Square of the distance of a point and a triangle, a fraction."""
    return _squared_to_tri(_fractions([p])[0], _fractions(t))


def squared_distance_tri_tri(a, b):
    """Square of the distance of two triangles that do not meet, a fraction."""
    a, b = _fractions(a), _fractions(b)
    least = min(*(_squared_to_tri(p, b) for p in a), *(_squared_to_tri(p, a) for p in b))
    for i in range(3):
        for j in range(3):
            u, v = _difference(a[(i + 1) % 3], a[i]), _difference(b[(j + 1) % 3], b[j])
            squared = _squared_between_edges(a[i], u, b[j], v)
            least = least if squared is None else min(least, squared)
    return least
