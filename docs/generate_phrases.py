"""Writes `ui/messages/en/phrases.json`, the English templates of explanations and schedules, from `model/sentences.py`.

python docs/generate_phrases.py

Then translate the new messages: the check of the web page (`make lint-ui`) names what is missing in the other languages.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from tradewind.model.sentences import TEMPLATES

MESSAGES = Path(__file__).parent.parent / "ui" / "messages" / "en" / "phrases.json"


def icu(template: str) -> str:
    """Return a template as an ICU message: with plurals, without other formats, and with doubled apostrophes."""
    plurals = re.sub(r"\{(\w+):([^|{}]+)\|([^{}]+)\}", r"{\1, plural, one {\2} other {\3}}", template.replace("'", "''"))
    return re.sub(r"\{(\w+):\w+\}", r"{\1}", plurals)


def text() -> str:
    """Return the content of the file."""
    return json.dumps({code: icu(template) for code, template in TEMPLATES.items()}, ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    MESSAGES.write_text(text(), encoding="utf-8")
