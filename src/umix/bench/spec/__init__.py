"""What a run is: task, method and settings, with presets as defaults."""
