"""Sweeps of byway's lab on schedulers that people have.

`byway_lab.sweep` calls the program, and knows no scheduler. `byway_lab.dask` places tasks on the
workers of Dask.
"""
