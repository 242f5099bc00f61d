"""Reports of clashes: tables, JSON, a page, and their comparison."""
