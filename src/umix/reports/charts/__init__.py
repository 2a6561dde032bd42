"""The figures of a report, one kind per file: rows of plain data, and the chart that draws them."""
