"""What commands ask of a session, whatever its kind: one face, a module for each kind behind it."""
