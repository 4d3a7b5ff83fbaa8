"""What the package does, room by room: mirrors the package."""
