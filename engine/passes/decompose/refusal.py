"""Why a collective is not decomposed."""

from __future__ import annotations


class Refusal(Exception):
    """Ends the search at one collective; the message is the reason in a few words, as the verdict shows it."""
