"""FSCK: hold a table's log and files against each other, and say what to do about what does not fit."""
