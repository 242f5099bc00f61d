"""Catalogues of objects on disk, tiles of them, and their distribution by Dask."""
