"""Parts of models: loading, columns, sets, surfaces and candidate pairs."""
