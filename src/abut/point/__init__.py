"""Questions asked from a point: which face is nearest, and is the point inside?"""
