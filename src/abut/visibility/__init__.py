"""Which faces may collide, told from what hides what in orthographic views."""
