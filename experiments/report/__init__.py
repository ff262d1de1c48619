"""Raw rows -> figures, verdicts on claims, the page."""
