"""`_delta_log`: its files to the state of a version, and the files that make reading it quick."""
