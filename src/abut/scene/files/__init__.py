"""Files of scenes and robots: URDF, MJCF, SRDF, planning scenes."""
