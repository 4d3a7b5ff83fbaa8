"""The options of reads and writes, each as one record: parsed, checked, and refused where unknown."""
