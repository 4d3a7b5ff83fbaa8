"""Unity Catalog: a server that follows its specification, and the contract that it and the real one keep."""
