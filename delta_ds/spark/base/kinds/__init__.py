"""What differs between the kinds of sessions, classic and Spark Connect, whatever is asked of them."""
