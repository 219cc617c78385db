"""Read a page into its elements, and what its policy allows."""

import base64
import hashlib
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "wbr", "hr", "path", "circle", "rect", "use"}


class Elements(HTMLParser):
    """Read a page into (tag, attributes) and see to it that every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attributes for found, attributes in self.found if found == tag]


def policy(text):
    (found,) = (
        attributes["content"]
        for attributes in Elements(text).all("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    return dict(part.strip().split(" ", 1) for part in found.split(";"))


def hash_of(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
