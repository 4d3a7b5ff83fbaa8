"""OPTIMIZE: small files joined, rows arranged along a curve, deleted rows left out; the rows stay what they are."""
