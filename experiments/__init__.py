"""The experiments of section 6 of the paper, and the frontier that it does not have. Nothing imports this package."""
