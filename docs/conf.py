"""How Sphinx builds the site; `make docs` calls it on a copy of this folder with the reference."""

import dragoman

project = "Dragoman"
copyright = "the Dragoman authors"
release = version = dragoman.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["decisions/template.md"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
html_theme = "furo"
html_title = f"Dragoman {release}"
html_theme_options = {"footer_icons": []}
html_copy_source = False
html_show_sourcelink = False
html_static_path: list[str] = []
# A page that was opened as a file may read no other: there the search shows titles alone.
_TITLES = 'if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;'
html_js_files = [(None, {"body": _TITLES})]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
