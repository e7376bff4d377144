"""Reads the pictures of heedc --emit=mask: of each mask its tiles and elements as arrays of letters."""
import re
from dataclasses import dataclass

import numpy as np

PANEL = re.compile(r'<g class="mask" data-queries="(\d+)" data-keys="(\d+)" data-tile="(\d+) (\d+)"[^>]*>\n(.*?)</g>', re.S)
KINDS = {"partial": "p", "full": "f", "data": "d", "live": "l", "open": "o"}


@dataclass
class Mask:
    title: list
    tile: tuple
    tiles: np.ndarray     # of each element its tile: ' ' empty, p, f, d
    elements: np.ndarray  # ' ', l(ive), o(pen)


def read(svg):
    masks = []
    for group in svg.split('<g class="panel"')[1:]:
        queries, keys, *tile, body = PANEL.search(group).groups()
        planes = [np.full((int(queries), int(keys)), " ") for _ in range(2)]
        for kind, d in re.findall(r'<path class="(\w+)" d="([^"]*)"/>', body):
            if kind == "grid":
                continue
            rectangles = re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)h-(\d+)z", d)
            assert "".join("M{} {}h{}v{}h-{}z".format(*r) for r in rectangles) == d, d
            for x, y, width, height, back in (map(int, r) for r in rectangles):
                assert width == back and x + width <= int(keys) and y + height <= int(queries)
                place = planes[kind in ("live", "open")][y:y + height, x:x + width]
                assert (place == " ").all(), "two kinds at one place"
                place[:] = KINDS[kind]
        title = re.findall(r"<text[^>]*>([^<]*)</text>", group.split('<g class="mask"')[0])
        masks.append(Mask([line for line in title if line not in ("keys", "queries")], tuple(map(int, tile)), *planes))
    return masks


def differences(mask, live, tight):
    """What is wrong with a picture of the mask `live`, queries by keys, whose data is all known."""
    if mask.tiles.shape != live.shape:
        return f"{mask.tiles.shape} in the picture, {live.shape} in the mask"
    high, wide = mask.tile
    for i in range(0, live.shape[0], high):
        for j in range(0, live.shape[1], wide):
            place = np.s_[i:i + high, j:j + wide]
            kinds, seen = set(mask.tiles[place].flat), live[place]
            if len(kinds) != 1:
                return f"two kinds in the tile at {i}, {j}: {kinds}"
            (kind,) = kinds
            right = " " if not seen.any() else "f" if seen.all() else "p"
            if kind != right and (tight or kind != "p"):
                return f"the tile at {i}, {j} is {kind!r}, expected {right!r}"
            if kind == "p" and max(live.shape) <= 256 and ((mask.elements[place] == "l") != seen).any():
                return f"elements of the tile at {i}, {j} are wrong"
            if kind != "p" and (mask.elements[place] != " ").any():
                return f"elements in the tile at {i}, {j}, which is {kind!r}"
    return None
