"""The manual as a site: Sphinx reads the Markdown of the repository where it lies.

    sphinx-build -W --keep-going -c docs/site -b html . build/site

The source folder is the repository's root, so that a link means the same here and in the file. A link
to a page or a heading that is not there is an error.
"""

import os
import pathlib
import posixpath
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import debian_furo
import public_headers
from sphinx import addnodes
from sphinx.transforms import SphinxContentsFilter
from sphinx.util.nodes import make_refnode

project = "Paceline"
author = copyright = "The Paceline maintainers"
extensions = ["myst_parser"]
root_doc = "docs/index"
source_suffix = {".md": "markdown"}
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**.md", "experiments/**.md", "tests/**.md"]
exclude_patterns = ["build", ".cache", ".git", "carry", "training-loop", "**/node_modules"]

myst_heading_anchors = 4
# JSON and YAML of the pages are shortened by "...", which their lexers refuse.
suppress_warnings = ["misc.highlighting_failure"]

# Straight quotes and three dots are what commands take and what pages say of outputs.
smartquotes = False

html_theme = "furo"
html_title = "Paceline"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_show_sphinx = False
html_show_copyright = False
# A page that was opened from disk cannot read others, from which the search would take its extracts.
html_show_search_summary = False
html_copy_source = False
pygments_dark_style = "native"


def add_headers(app, document, source):
    if document == "docs/headers":
        source[0] = source[0].replace(public_headers.MARK, public_headers.as_markdown(pathlib.Path(app.srcdir)))


def link_to_folder(app, environment, node, content):
    """A link to a folder of the repository goes to its README, if it has one, and else is its text."""
    if node.get("reftype") != "any":
        return None
    root = pathlib.Path(app.srcdir)
    folder = (root / environment.doc2path(node["refdoc"], base=False)).parent / node["reftarget"]
    if not folder.is_dir():
        return None
    readme = os.path.relpath(folder.resolve(), root.resolve()) + "/README"
    if readme not in environment.all_docs:
        return content
    return make_refnode(app.builder, node["refdoc"], readme, "", content)


def leave_out_repetitions(app, tree):
    """A pattern of the navigation names all pages of a folder; those that stand above it are left out."""
    named = set()
    for entries in tree.findall(addnodes.toctree):
        entries["entries"] = [entry for entry in entries["entries"] if entry[1] not in named]
        named.update(document for _, document in entries["entries"])


def hide_contents(app, document, template, context, tree):
    """The first page has no headings, and so no list of them beside it."""
    if document == root_doc:
        context["furo_hide_toc"] = True


def repair_theme(app, error):
    if not error and app.builder.name == "html":
        debian_furo.repair(pathlib.Path(app.outdir) / "_static")


def show_file(translator, node):
    """A link to a file of the repository opens it; Sphinx would have the browser save it."""
    translator.body.append(translator.starttag(node, "a", "", CLASS="reference internal", href=posixpath.join(
        translator.builder.dlpath, urllib.parse.quote(node["filename"]))))
    translator.context.append("</a>")


def end_of_file(translator, node):
    translator.body.append(translator.context.pop())


def setup(app):
    app.add_node(addnodes.download_reference, override=True, html=(show_file, end_of_file))
    # Lists of headings have the text of a heading's link to a file, as Sphinx does with links to pages.
    SphinxContentsFilter.visit_download_reference = SphinxContentsFilter.visit_pending_xref
    app.connect("source-read", add_headers)
    app.connect("missing-reference", link_to_folder)
    app.connect("doctree-read", leave_out_repetitions)
    app.connect("html-page-context", hide_contents, priority=900)  # after the theme
    app.connect("build-finished", repair_theme)
