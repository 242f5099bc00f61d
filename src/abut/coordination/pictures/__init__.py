"""Pictures of clashes."""
