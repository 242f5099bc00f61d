"""The verbs: validate, launch stages in order, wrap arrays."""
