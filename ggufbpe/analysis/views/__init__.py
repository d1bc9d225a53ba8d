"""Shows findings: in words, as lines for a terminal, as JSON and as a page.

    explain_lines.py (terminal), explain_page.py (page) <- analysis/explain/, which has the sentences
    report_lines.py (terminal), report_page.py (JSON, page) <- analysis/verify/
    compare_lines.py (terminal, JSON), compare_page.py (page) <- analysis/verify/

drawing.py turns what rich draws into lines; html_page.py and templates/ make HTML with jinja2; terminal.py makes text
safe for both.
"""
