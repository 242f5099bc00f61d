"""Work over more objects than fit in memory: catalogues, tiles, and their distribution by Dask."""

from abut.scale.catalogue import Catalogue, CatalogueWriter
from abut.scale.distribute import TileDone, run_tiles
from abut.scale.tile_plan import Tile, TilePlan, plan_tiles
from abut.scale.tile_run import TileRun
from abut.scale.warm_cache import WarmCache, warm_cache

__all__ = [
    "Catalogue",
    "CatalogueWriter",
    "Tile",
    "TileDone",
    "TilePlan",
    "TileRun",
    "WarmCache",
    "plan_tiles",
    "run_tiles",
    "warm_cache",
]
