"""LibreChat's own memory API, `/api/memories`: its panel works on memagent's memories when a proxy sends these paths here.

Routes, checks, texts and statuses are those of spec/librechat.md §5. Where LibreChat errs, ours is right: a changed value
counts against `tokenLimit` too, and a rename is one step.
"""
