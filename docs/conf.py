"""Sphinx configuration: `make docs` builds the site into build/docs, warnings being errors."""

from archie_env import __version__

project = "archie-env"
author = "The archie-env developers"
copyright = f"2026, {author}"
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"archie-env {version}"
html_static_path: list[str] = []
html_show_sourcelink = False
default_role = "py:obj"  # `Game` in a docstring links to the class
suppress_warnings = ["ref.python"]  # both trainers have a `Config`: such a name links to the first
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "description"
napoleon_google_docstring = True
