"""What the search of the site finds: its index, ranked as the script in the browser ranks it.

Source: lunr 2.3 (`builder.js`, `index.js`) and mkdocs-material 9 (`integrations/search`): prefixes of words without
stemming, no norm by length (`b` is 0), and boosts of fields and pages.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

_SATURATION = 1.2  # lunr's k1
_TAGS = re.compile(r"<[^>]*>")


class Search:
    """The index of a site that was built.

    Parameters
    ----------
    site
        Its folder.
    """

    def __init__(self, site: Path) -> None:
        index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
        self._separator = re.compile(index["config"]["separator"])
        self._fields = {name: field["boost"] for name, field in index["config"]["fields"].items()}
        self._pages: dict[str, dict[str, Any]] = {page["location"]: page for page in index["docs"]}
        # How often a word is in a field of a page, by the word.
        self._words: dict[str, dict[tuple[str, str], int]] = defaultdict(dict)
        for place, page in self._pages.items():
            for field in self._fields:
                for word, times in Counter(self._split(page.get(field, ""))).items():
                    self._words[word][(place, field)] = times

    def _split(self, text: str | list[str]) -> list[str]:
        texts = text if isinstance(text, list) else [text]
        return [
            word.lower()
            for one in texts
            for section in _TAGS.split(one)
            for word in self._separator.split(section)
            if word
        ]

    def pages(self, query: str) -> list[str]:
        """The pages that are found, best first, each once whichever of its sections is.

        Parameters
        ----------
        query
            What a user types.
        """
        typed = self._split(query)
        vectors: dict[str, Counter[str]] = {field: Counter() for field in self._fields}
        found: dict[str, set[str]] = defaultdict(set)  # of a section, the words that were typed
        for begin in typed:
            for word, places in self._words.items():
                if word.startswith(begin):
                    for field in self._fields:
                        vectors[field][word] += 1
                    for place, _ in places:
                        found[place].add(begin)
        scores = {place: self._score(place, vectors) for place in found}
        for place, words in found.items():
            whole = 1.0 if "#" not in place else 0.0
            scores[place] *= 1 + (whole + len(words) / len(set(typed))) ** 2
        ranked = sorted(scores, key=lambda place: -scores[place])
        return list(dict.fromkeys(place.partition("#")[0] for place in ranked))

    def _score(self, place: str, vectors: dict[str, Counter[str]]) -> float:
        total = 0.0
        for field, vector in vectors.items():
            dot = sum(
                times * self._weight(word, place, field)
                for word, times in vector.items()
                if (place, field) in self._words[word]
            )
            total += dot / math.sqrt(sum(times * times for times in vector.values()))
        return total

    def _weight(self, word: str, place: str, field: str) -> float:
        places = self._words[word]
        rest = (len(self._pages) - len(places) + 0.5) / (len(places) + 0.5)
        times = places[(place, field)]
        frequency = (_SATURATION + 1) * times / (_SATURATION + times)
        boost = self._fields[field] * self._pages[place].get("boost", 1.0)
        return float(math.log(1 + abs(rest)) * frequency * boost)
