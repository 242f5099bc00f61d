"""The documentation site: ``sphinx-build -W -c docs . OUT`` from the root of the checkout.

The sources are the pages that people also read in the repository, so the root is that of the
checkout, and links between docs, design notes and examples hold in both places.
"""

import importlib.metadata
import logging
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
logging.getLogger("traitlets").setLevel(logging.ERROR)
sys.path.insert(0, str(ROOT / "src"))

project = "abut"
author = copyright = "the abut authors"
try:
    release = importlib.metadata.version("abut")
except importlib.metadata.PackageNotFoundError:
    release = "0"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
root_doc = "docs/home"
include_patterns = [
    "docs/**",
    "design/*.md",
    "benchmarks/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = ["docs/conf.py", "docs/static/**"]

html_theme = "furo"
html_title = f"abut {release}"
html_static_path = ["static"]
html_css_files = ["abut.css"]
html_extra_path = ["static/site_root"]
html_copy_source = False
pygments_style, pygments_dark_style = "tango", "monokai"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
nb_output_stderr = "remove"

autodoc_typehints = "none"  # signatures of Warp arrays are longer than the text
autodoc_member_order = "bysource"
autoclass_content = "class"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Guarantee", "returns_style"), ("Args", "params_style")]
napoleon_use_rtype = False
napoleon_use_ivar = True
copybutton_prompt_text = r">>> |\$ "
copybutton_prompt_is_regexp = True


def _plain_links(_app, _name, source):
    """Show links to files that are not pages of the site as plain names."""
    source[0] = re.sub(
        r"\[([^\]]+)\]\(((?:\.\./)*(?:src|tests|tools|examples|benchmarks)(?:/[^)]*)?)\)",
        lambda found: found[0] if found[2].endswith("benchmarks/README.md") else found[1],
        source[0],
    )


def _no_types_of_properties(_app, what, _name, _object, _options, lines):
    """Napoleon takes the words before a colon for a type, where no line is before them."""
    if what in ("property", "attribute"):
        lines.insert(0, "")


def setup(app):
    """Connect the hooks."""
    app.connect("source-read", _plain_links)
    app.connect("autodoc-process-docstring", _no_types_of_properties, priority=100)
