"""Scene: many objects that move, deform and break."""

from abut.scene.impacts import SceneImpacts
from abut.scene.scene import Scene
from abut.scene.scene_results import SceneContacts, SceneDistances, SceneGaps

__all__ = ["Scene", "SceneContacts", "SceneDistances", "SceneGaps", "SceneImpacts"]
