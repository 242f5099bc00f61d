"""``python -m benchmarks.papers`` rewrites the tables and figures of docs/papers."""

from benchmarks.papers.pages import pages, renewed

for path in pages():
    path.write_text(renewed(path.read_text()))
    print(path)
