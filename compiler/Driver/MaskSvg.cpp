//===- MaskSvg.cpp - a picture of masks as SVG ----------------------------===//
// Tiles and elements of one kind that meet are one rectangle. Colours are read
// on white and on black; the text follows the reader's scheme.
#include "compiler/Driver/MaskPicture.h"
#include "support/Format.h"

using namespace heed;

namespace {

/// In pixels: the longer side of a mask, what lies around it, a line of text.
constexpr double kSide = 256;
constexpr int64_t kLeft = 34, kTop = 56, kGap = 26, kLine = 15, kColumns = 3;

struct Rectangle {
  int64_t x, y, width, height;
};

/// The places of \p kind in rows of \p columns, as few rectangles: runs of a
/// row, and those that go on below.
std::vector<Rectangle> cover(const std::vector<TileKind> &places,
                             int64_t columns, TileKind kind) {
  std::vector<Rectangle> rectangles;
  std::map<std::pair<int64_t, int64_t>, size_t> above, here;
  int64_t rows = columns ? int64_t(places.size()) / columns : 0;
  for (int64_t y = 0; y < rows; ++y, above = std::move(here), here.clear())
    for (int64_t x = 0, end; x < columns; x = end + 1) {
      end = x;
      while (end < columns && places[y * columns + end] == kind)
        ++end;
      if (end == x)
        continue;
      auto grown = above.find({x, end});
      size_t which = grown == above.end() ? rectangles.size() : grown->second;
      if (grown == above.end())
        rectangles.push_back({x, y, end - x, 0});
      ++rectangles[which].height;
      here[{x, end}] = which;
    }
  return rectangles;
}

std::string path(llvm::StringRef kind, const std::vector<Rectangle> &rectangles,
                 int64_t stepX, int64_t stepY, const MaskTiles &tiles) {
  std::string text;
  for (Rectangle r : rectangles) {
    int64_t x = r.x * stepX, y = r.y * stepY,
            width = std::min(r.width * stepX, tiles.keys - x),
            height = std::min(r.height * stepY, tiles.queries - y);
    text += format("M{} {}h{}v{}h-{}z", x, y, width, height, width);
  }
  return text.empty() ? text
                      : format("<path class=\"{}\" d=\"{}\"/>\n", kind, text);
}

std::string escaped(llvm::StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '<'   ? std::string("&lt;")
              : c == '>' ? std::string("&gt;")
              : c == '&' ? std::string("&amp;")
                         : std::string(1, c);
  return result;
}

std::string textAt(double x, double y, llvm::StringRef text,
                   llvm::StringRef attributes = "") {
  return format("<text x=\"{:g}\" y=\"{:g}\"{}{}>{}</text>\n", x, y,
                attributes.empty() ? "" : " ", attributes, escaped(text));
}

/// Lines between tiles.
std::string grid(const MaskTiles &tiles) {
  std::string text;
  for (int64_t x = 0; x <= tiles.columns(); ++x)
    text += format("M{} 0v{}", std::min(x * tiles.tileKeys, tiles.keys),
                   tiles.queries);
  for (int64_t y = 0; y <= tiles.rows(); ++y)
    text += format("M0 {}h{}", std::min(y * tiles.tileQueries, tiles.queries),
                   tiles.keys);
  return format("<path class=\"grid\" d=\"{}\"/>\n", text);
}

double scaleOf(const MaskTiles &tiles) {
  return kSide / double(std::max(tiles.queries, tiles.keys));
}

int64_t heightOf(const MaskPanel &panel) {
  return kTop + int64_t(panel.title.size()) * kLine +
         int64_t(scaleOf(panel.tiles) * double(panel.tiles.queries));
}

std::string panelAt(const MaskPanel &panel, int64_t left, int64_t top) {
  const MaskTiles &tiles = panel.tiles;
  double scale = scaleOf(tiles);
  std::string text =
      format("<g class=\"panel\" transform=\"translate({} {})\">\n", left, top);
  double y = 0;
  for (size_t k = 0; k < panel.title.size(); ++k)
    text += textAt(0, y += kLine, panel.title[k], k ? "" : "class=\"title\"");
  y += kTop - 12;
  double width = scale * double(tiles.keys),
         height = scale * double(tiles.queries);
  text += textAt(kLeft + width / 2, y - 18, "keys", "text-anchor=\"middle\"");
  text += textAt(kLeft, y - 4, "0");
  text += textAt(kLeft + width, y - 4, format("{}", tiles.keys),
                 "text-anchor=\"end\"");
  text += format("<text transform=\"translate(12 {:g}) rotate(-90)\" "
                 "text-anchor=\"middle\">queries</text>\n",
                 y + height / 2);
  text += textAt(kLeft - 4, y + 10, "0", "text-anchor=\"end\"");
  text += textAt(kLeft - 4, y + height, format("{}", tiles.queries),
                 "text-anchor=\"end\"");
  text += format("<g class=\"mask\" data-queries=\"{}\" data-keys=\"{}\" "
                 "data-tile=\"{} {}\" transform=\"translate({} {:g}) "
                 "scale({:g})\">\n",
                 tiles.queries, tiles.keys, tiles.tileQueries, tiles.tileKeys,
                 kLeft, y, scale);
  for (auto [name, kind] :
       {std::pair("partial", TileKind::Partial),
        std::pair("data", TileKind::ByData), std::pair("full", TileKind::Full)})
    text += path(name, cover(tiles.tiles, tiles.columns(), kind),
                 tiles.tileKeys, tiles.tileQueries, tiles);
  if (!tiles.elements.empty())
    for (auto [name, kind] : {std::pair("live", TileKind::Full),
                              std::pair("open", TileKind::ByData)})
      text += path(name, cover(tiles.elements, tiles.keys, kind), 1, 1, tiles);
  return text + grid(tiles) + "</g>\n</g>\n";
}

constexpr llvm::StringLiteral kStyle = R"(<style>
text { font: 11px sans-serif; fill: #57606a }
.title { font-weight: bold; font-size: 12px }
.full { fill: #1f6feb }
.partial { fill: #1f6feb; fill-opacity: .22 }
.data { fill: #d29922; fill-opacity: .28 }
.live { fill: #2f9e77 }
.open { fill: #d29922 }
.grid { fill: none; stroke: #8b949e; stroke-opacity: .45; stroke-width: 1; vector-effect: non-scaling-stroke }
@media (prefers-color-scheme: dark) { text { fill: #adbac7 } }
</style>
)";

/// What each colour means that occurs.
std::string legend(const MaskPicture &picture, double x, double y) {
  std::string text;
  auto entry = [&](llvm::StringRef kind, llvm::StringRef words) {
    text += format("<rect class=\"{}\" x=\"{:g}\" y=\"{:g}\" width=\"11\" "
                   "height=\"11\"{}/>\n",
                   kind, x, y,
                   kind == "empty" ? " fill=\"none\" stroke=\"#8b949e\"" : "");
    text += textAt(x + 16, y + 10, words);
    y += kLine + 1;
  };
  auto some = [&](std::vector<TileKind> MaskTiles::*places, TileKind kind) {
    return llvm::any_of(picture.panels, [&](const MaskPanel &panel) {
      return llvm::is_contained(panel.tiles.*places, kind);
    });
  };
  entry("empty", "empty: left out");
  entry("partial", "partial: the mask is evaluated per element");
  entry("full", "full: computed without the mask");
  if (some(&MaskTiles::tiles, TileKind::ByData))
    entry("data", "empty, partial or full: as the data says");
  if (some(&MaskTiles::elements, TileKind::Full))
    entry("live", "in these: a query sees this key");
  if (some(&MaskTiles::elements, TileKind::ByData))
    entry("open", "in these: as the data says");
  return text;
}

} // namespace

std::string heed::svgOf(const MaskPicture &picture) {
  const int64_t step = kLeft + int64_t(kSide) + kGap;
  const int64_t columns =
      std::min<int64_t>(kColumns, int64_t(picture.panels.size()));
  int64_t top = 0;
  std::string body;
  for (size_t first = 0; first < picture.panels.size(); first += kColumns) {
    int64_t tallest = 0;
    for (size_t k = first;
         k < std::min(first + kColumns, picture.panels.size()); ++k) {
      body += panelAt(picture.panels[k], 8 + int64_t(k - first) * step, top);
      tallest = std::max(tallest, heightOf(picture.panels[k]));
    }
    top += tallest;
  }
  std::string below = legend(picture, 8, double(top) + 8);
  double y = double(top) + 8 + 6 * (kLine + 1);
  size_t longest = 44;
  for (const std::string &note : picture.notes) {
    below += textAt(8, y += kLine, note);
    longest = std::max(longest, note.size());
  }
  for (const MaskPanel &panel : picture.panels)
    if (columns == 1)
      for (const std::string &line : panel.title)
        longest = std::max(longest, line.size());
  int64_t width = std::max(8 + columns * step, int64_t(longest) * 6 + 16),
          height = int64_t(y) + 10;
  return format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" "
                "height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\">\n"
                "<title>Masks of {2}</title>\n",
                width, height, escaped(picture.model)) +
         kStyle.str() + body + below + "</svg>\n";
}
