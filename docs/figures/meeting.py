"""Take the pictures of the app on the how-to page; they need Chromium.

python docs/figures/meeting.py
"""

import base64
import io
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
# A sheet's worth of shades is enough, and keeps the pictures small.
SHADES = 48
PICTURES = {
    "meeting": ("give=1%3A500", 1100, 640, "light"),
    "meeting-payments": ("plan=payments&view=payments", 1100, 640, "dark"),
    "meeting-phone": ("lock=0%3A500", 360, 720, "light"),
}


def main():
    sys.path.insert(0, str(HERE.parents[1] / "tests"))
    from browser.driving import Browser
    from explore.driving import App, Tab
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        browser, app = Browser(folder), App()
        try:
            for name, (query, width, height, theme) in PICTURES.items():
                Tab(browser, app).open(query, width=width, height=height, theme=theme)
                taken = base64.b64decode(browser.driver.get_screenshot_as_base64())
                picture = Image.open(io.BytesIO(taken)).convert("RGB").quantize(SHADES)
                picture.save(HERE / f"{name}.png", optimize=True)
        finally:
            app.close()
            browser.close()


if __name__ == "__main__":
    main()
