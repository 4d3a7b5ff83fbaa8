"""The seam between this package and the kinds of sessions: one face, a module for each kind behind it."""
