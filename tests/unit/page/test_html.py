"""Text of a page is text, whatever it holds."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from loader.page.html import join, lines, tag, text
from tests.unit.page.reading import read_page

ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
EVIL = "</td><script>alert('1')</script>\" onload='x' &amp;\x1b[2J\r\n\x9b\u202eexe\u2066\ud800"
TEXT = st.text(st.characters() | st.sampled_from(list(EVIL)))


def test_elements_and_attributes() -> None:
    assert tag("a", "1 < 2", href="x?a=1&b=2", aria_label='"', hidden=True, id=None, class_="k") == (
        '<a href="x?a=1&amp;b=2" aria-label="&quot;" hidden class="k">1 &lt; 2</a>'
    )
    assert tag("meta", charset="utf-8", name="x") == '<meta charset="utf-8" name="x">'
    assert tag("td", 0, x=0) == '<td x="0">0</td>'
    assert tag("p", tag("b", "x"), "<b>") == "<p><b>x</b>&lt;b&gt;</p>"
    assert join(["<", tag("i")]) == "&lt;<i></i>"


def test_hostile_text_stays_text() -> None:
    assert text(EVIL) == (
        "&lt;/td&gt;&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;&quot; onload=&#x27;x&#x27; &amp;amp;"
        "\\x1b[2J\\r\\n\\x9b\\u202eexe\\u2066\\ud800"
    )
    assert lines("a\n<b>\r") == "a\n&lt;b&gt;\\r"


@given(TEXT, TEXT)
def test_no_text_leaves_its_place(content: str, value: str) -> None:
    page = tag("p", content, title=value)
    assert not ACTING.search(page)
    (found,) = read_page(page).children
    assert not isinstance(found, str)
    assert (found.name, set(found.attributes)) == ("p", {"title"})
    assert all(isinstance(child, str) for child in found.children)
