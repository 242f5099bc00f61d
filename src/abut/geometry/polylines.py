"""Join segments with equal ends into polylines."""

import numpy as np


def join_segments(segments: np.ndarray) -> list[np.ndarray]:
    """Return polylines (k, 3) that contain every segment (n, 2, 3) once.

    Segments join at ends with equal coordinates. Open polylines stop at ends of one segment or of
    more than two; the others are closed and repeat their first point.
    """
    segments = segments[(segments[:, 0] != segments[:, 1]).any(axis=1)]
    if len(segments) == 0:
        return []
    points, ends = np.unique(segments.reshape(-1, 3), axis=0, return_inverse=True)
    ends = ends.reshape(-1, 2)
    ends = np.unique(np.sort(ends, axis=1), axis=0)  # one segment may belong to several pairs
    degree = np.bincount(ends.ravel(), minlength=len(points))
    order = np.argsort(ends.ravel(), kind="stable")
    starts = np.concatenate([[0], np.cumsum(degree)])
    edges_at = (order // 2).tolist()
    first = starts.tolist()
    pairs = ends.tolist()
    used = [False] * len(pairs)

    def walk(edge: int, start: int) -> list[int]:
        line = [start]
        while not used[edge]:
            used[edge] = True
            low, high = pairs[edge]
            node = high if line[-1] == low else low
            line.append(node)
            if degree[node] != 2:
                break
            one, two = edges_at[first[node] : first[node] + 2]
            edge = two if one == edge else one
        return line

    lines = []
    for node in np.flatnonzero(degree != 2).tolist():
        for edge in edges_at[first[node] : first[node + 1]]:
            if not used[edge]:
                lines.append(walk(edge, node))
    for edge in range(len(pairs)):
        if not used[edge]:
            lines.append(walk(edge, pairs[edge][0]))
    return [points[line] for line in lines]
