"""Shows findings: in words, as lines for a terminal, as JSON and as a page.

explain_words.py (words), explain_page.py (page), explain_lines.py (terminal) <- analysis/explain/ report_page.py
(JSON, page), report_lines.py (terminal), compare_lines.py (terminal, JSON) <- analysis/verify/ drawing.py: what rich
draws, as lines; html_page.py and templates/: what jinja2 draws, as HTML terminal.py: text that is made safe for
either, and JSON
"""
