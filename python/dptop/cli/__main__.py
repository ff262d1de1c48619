"""`python -m dptop.cli`."""

from dptop.cli import main

if __name__ == "__main__":
    main()
