"""Many simulations: on this machine or a cluster, resumable, results in Parquet."""
