"""Pages for people: plain HTML that works by itself, a little script that makes it smooth, nothing from anywhere else."""
