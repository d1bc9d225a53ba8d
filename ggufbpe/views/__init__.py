"""How findings are shown: in words, as lines for a terminal, as JSON and as a page.

explain.py (words), explain_page.py (page), explain_lines.py (terminal) <- trace/
report.py (JSON, page), report_lines.py (terminal), compare_lines.py (terminal, JSON) <- verification/
drawing.py: what rich draws, as lines; page.py and templates/: what jinja2 draws, as HTML
terminal.py: text that is made safe for either, and JSON
"""
