"""The page in the browser: nodes, panel, rows, sequences."""
