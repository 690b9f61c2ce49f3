"""How good an extraction model is: a labelled set of turns, the real extraction over it, and the scores."""
