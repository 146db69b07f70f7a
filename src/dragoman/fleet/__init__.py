"""Several daemons on one database: each session has one owner, and can be used from every node."""
