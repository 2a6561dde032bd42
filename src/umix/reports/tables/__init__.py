"""Tables of results: for the terminal, Markdown, LaTeX, CSV and JSON."""
