"""Fairpool: fair GPU and compute sharing for AI and ML teams."""
