"""BCF files of clashes."""
