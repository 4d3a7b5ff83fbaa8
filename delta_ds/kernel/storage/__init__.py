"""Storage: filesystems and object stores, and publishing commits on them."""
