"""Scene: many objects that move, deform and break."""

from abut.scene.contacts import SceneContacts
from abut.scene.gaps import SceneDistances, SceneGaps
from abut.scene.impacts import SceneImpacts
from abut.scene.scene import Scene

__all__ = ["Scene", "SceneContacts", "SceneDistances", "SceneGaps", "SceneImpacts"]
