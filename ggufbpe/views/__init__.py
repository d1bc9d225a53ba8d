"""How findings are shown: in words, as lines for a terminal, as JSON and as a page.

explain.py (words, page), explain_lines.py (terminal) <- trace/
report.py (JSON, page), report_lines.py (terminal) <- verification/
page.py and terminal.py have what all pages and all lines are made of
"""
