"""The specification of a run: task, method and settings, with presets as defaults."""
