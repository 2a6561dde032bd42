"""The HTML report: what it says and how it is drawn."""
