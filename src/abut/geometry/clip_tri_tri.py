"""The polygon in which two coplanar triangles overlap."""

import warp as wp

POLYGON_SIZE = wp.constant(7)  # three edges cut a triangle to at most six corners; one to spare


@wp.func
def clip_polygon(polygon: wp.array[wp.vec3d], count: wp.int32, p: wp.vec3d, inward: wp.vec3d):
    """Cut away the part of a convex polygon beyond a line; returns the number of its corners."""
    cut = wp.zeros(shape=(POLYGON_SIZE,), dtype=wp.vec3d)
    kept = wp.int32(0)
    for i in range(count):
        u = polygon[i]
        v = polygon[(i + 1) % count]
        at_u = wp.dot(inward, u - p)
        at_v = wp.dot(inward, v - p)
        if at_u >= wp.float64(0.0) and kept < POLYGON_SIZE:
            cut[kept] = u
            kept += 1
        if at_u * at_v < wp.float64(0.0) and kept < POLYGON_SIZE:
            cut[kept] = u + (v - u) * (at_u / (at_u - at_v))
            kept += 1
    for i in range(kept):
        polygon[i] = cut[i]
    return kept


@wp.func
def clip_tri_tri(a: wp.mat33d, b: wp.mat33d, polygon: wp.array[wp.vec3d]):
    """Write the overlap of two coplanar triangles into ``polygon``; returns its corner count.

    The corners run as those of ``a``. ``polygon`` has POLYGON_SIZE elements.

    Guarantee:
        Approximate: Sutherland and Hodgman 1974, in rounded coordinates.
    """
    normal = wp.cross(b[1] - b[0], b[2] - b[0])
    for i in range(3):
        polygon[i] = a[i]
    count = wp.int32(3)
    for i in range(3):
        count = clip_polygon(polygon, count, b[i], wp.cross(normal, b[(i + 1) % 3] - b[i]))
    return count


@wp.func
def polygon_area_vector(polygon: wp.array[wp.vec3d], count: wp.int32):
    """Return the area of a polygon times its unit normal."""
    out = wp.vec3d()
    for i in range(2, count):
        out += wp.cross(polygon[i - 1] - polygon[0], polygon[i] - polygon[0])
    return wp.float64(0.5) * out


@wp.func
def polygon_centroid(polygon: wp.array[wp.vec3d], count: wp.int32):
    """Return the centroid of a convex polygon; the mean of its corners if it has no area."""
    total = wp.float64(0.0)
    weighted = wp.vec3d()
    mean = wp.vec3d()
    for i in range(count):
        mean += polygon[i] / wp.float64(count)
    for i in range(2, count):
        u = polygon[i - 1] - polygon[0]
        v = polygon[i] - polygon[0]
        area = wp.length(wp.cross(u, v))
        total += area
        weighted += area * (u + v) / wp.float64(3.0)
    if total > wp.float64(0.0):
        mean = polygon[0] + weighted / total
    return mean
