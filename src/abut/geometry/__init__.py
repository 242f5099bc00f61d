"""Device functions about points, segments and triangles; one question per file."""
