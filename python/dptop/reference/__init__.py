"""The paper, executable: one file per algorithm, written to be read; the slow twin of everything fast."""
