"""Tests of `dptop.spark` on a real cluster: `make test-spark`."""
