"""mkdocs hook: LaTeX between $...$ and $$...$$ becomes MathML, so that formulas need neither scripts nor a network.

Only pages with a $$ formula are converted; elsewhere a dollar is a dollar. Code is left alone.
"""

import re

import latex2mathml.converter

CODE_OR_FORMULA = re.compile(r"(?P<code>^```.*?^```|`[^`\n]*`)|\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^$]+?)\$", re.DOTALL | re.MULTILINE)
PLACEHOLDER = "formula{}formula"


def on_page_markdown(markdown, page, **_):
    page.formulas = []
    if "$$" not in markdown:
        return markdown

    def replace(match):
        if match["code"] is not None:
            return match["code"]
        display = "block" if match["block"] is not None else "inline"
        latex = " ".join((match["block"] or match["inline"]).split())
        page.formulas.append(latex2mathml.converter.convert(latex, display=display))
        return PLACEHOLDER.format(len(page.formulas) - 1)

    return CODE_OR_FORMULA.sub(replace, markdown)


def on_page_content(html, page, **_):
    for at, formula in enumerate(page.formulas):
        html = html.replace(PLACEHOLDER.format(at), formula)
    return html
