"""Presses keys and moves the mouse of an X server, by its XTEST extension: to Qt they are a person's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CDLL, c_char_p, c_int, c_ubyte, c_uint, c_ulong, c_void_p

LIBRARIES = ("libX11.so.6", "libXtst.so.6")
LEFT, WHEEL_UP, WHEEL_DOWN = 1, 4, 5
"""Numbers of the mouse's buttons; a notch of the wheel is a click of one."""
KEYSYMS = {
    "Backspace": 0xFF08,
    "Return": 0xFF0D,
    "Escape": 0xFF1B,
    "Left": 0xFF51,
    "Up": 0xFF52,
    "Down": 0xFF54,
    "Shift": 0xFFE1,
    "Ctrl": 0xFFE3,
}
"""Keys that print nothing, from X's keysymdef.h; the others have the number of their letter (Latin-1)."""


class XInput:
    """A connection to a display, on which input is made up."""

    def __init__(self, display: str) -> None:
        """Raises OSError where a library is missing or the display does not answer."""
        self._x11, self._xtst = (CDLL(name) for name in LIBRARIES)
        self._x11.XOpenDisplay.argtypes = [c_char_p]
        self._x11.XOpenDisplay.restype = c_void_p
        self._x11.XCloseDisplay.argtypes = [c_void_p]
        self._x11.XSync.argtypes = [c_void_p, c_int]
        self._x11.XKeysymToKeycode.argtypes = [c_void_p, c_ulong]
        self._x11.XKeysymToKeycode.restype = c_ubyte
        self._x11.XkbKeycodeToKeysym.argtypes = [c_void_p, c_ubyte, c_int, c_int]
        self._x11.XkbKeycodeToKeysym.restype = c_ulong
        self._xtst.XTestFakeKeyEvent.argtypes = [c_void_p, c_uint, c_int, c_ulong]
        self._xtst.XTestFakeButtonEvent.argtypes = [c_void_p, c_uint, c_int, c_ulong]
        self._xtst.XTestFakeMotionEvent.argtypes = [c_void_p, c_int, c_int, c_int, c_ulong]
        self._display = self._x11.XOpenDisplay(display.encode())
        if not self._display:
            raise OSError(f"the X display {display} does not answer")

    def close(self) -> None:
        self._x11.XCloseDisplay(self._display)

    def key(self, keys: str) -> None:
        """Press and release a key, with others held down: ``Ctrl+o``, ``Return``, ``/``."""
        *held, last = keys.split("+") if len(keys) > 1 else [keys]
        sym = KEYSYMS.get(last) or ord(last)
        code = self._code(sym)
        if self._x11.XkbKeycodeToKeysym(self._display, code, 0, 0) != sym:
            held = [*held, "Shift"]
        with self._holding(held):
            self._xtst.XTestFakeKeyEvent(self._display, code, 1, 0)
            self._xtst.XTestFakeKeyEvent(self._display, code, 0, 0)
        self._x11.XSync(self._display, 0)

    def move(self, x: int, y: int) -> None:
        """Put the mouse's pointer somewhere on the screen, in pixels."""
        self._xtst.XTestFakeMotionEvent(self._display, -1, x, y, 0)
        self._x11.XSync(self._display, 0)

    def button(self, number: int, *, down: bool) -> None:
        self._xtst.XTestFakeButtonEvent(self._display, number, down, 0)
        self._x11.XSync(self._display, 0)

    def click(self, number: int = LEFT, held: str = "") -> None:
        """Press and release a button of the mouse, with a key held down if one is named."""
        with self._holding([held] if held else []):
            self._xtst.XTestFakeButtonEvent(self._display, number, 1, 0)
            self._xtst.XTestFakeButtonEvent(self._display, number, 0, 0)
        self._x11.XSync(self._display, 0)

    @contextmanager
    def _holding(self, names: list[str]) -> Iterator[None]:
        codes = [self._code(KEYSYMS[name]) for name in names]
        for code in codes:
            self._xtst.XTestFakeKeyEvent(self._display, code, 1, 0)
        yield
        for code in reversed(codes):
            self._xtst.XTestFakeKeyEvent(self._display, code, 0, 0)

    def _code(self, keysym: int) -> int:
        code: int = self._x11.XKeysymToKeycode(self._display, keysym)
        if not code:
            raise OSError(f"no key of the X server's keyboard has the symbol {keysym:#x}")
        return code
