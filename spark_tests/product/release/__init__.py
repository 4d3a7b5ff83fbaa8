"""What a release is made of: versions, distributions, workflows, the public surface."""
