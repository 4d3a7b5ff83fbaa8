"""Reports of what was done, and who listens to them."""
