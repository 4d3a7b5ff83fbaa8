"""Code written for delta-spark runs as it is: its modules `delta`, its settings, sessions that others make."""
