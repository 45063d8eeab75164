"""A frozen program's window, looked at from inside: opens a sample, waits for all results, takes a picture."""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

DEADLINE_MS = 120_000


def main(sample: str, picture: str) -> int:
    """Print as JSON what the window holds once every variant has its result; exit status 1 where one has none."""
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    application = QApplication(sys.argv[:1])

    from app.explorer import Explorer  # as in app.gui: after the application
    from app.settings import Settings

    with TemporaryDirectory(prefix="lapstrake-trial-") as folder:
        explorer = Explorer(Settings(Path(folder) / "window.ini"))
        explorer.show()
        explorer.documents.open(sample)

        def look() -> None:
            session = explorer.store.state
            if session.problem or (session.entries and not any(entry.pending for entry in session.entries)):
                QTimer.singleShot(200, application.quit)  # one more frame, with the last result in it

        timer = QTimer()
        timer.timeout.connect(look)
        timer.start(50)
        QTimer.singleShot(DEADLINE_MS, application.quit)
        application.exec()
        session = explorer.store.state
        explorer.window.grab().save(picture)
        explorer.leave()
    done = {entry.title: entry.error or entry.variant is not None for entry in session.entries}
    print(json.dumps({"problem": session.problem, "variants": done}), flush=True)
    return 0 if done and all(result is True for result in done.values()) else 1
