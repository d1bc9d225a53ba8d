"""How findings are shown, in a terminal and as a page."""
