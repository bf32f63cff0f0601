// SPDX-License-Identifier: Apache-2.0
#include "report/drawing.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace plimsoll::report {
namespace {

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", pixels(x), pixels(y), anchor,
                     escaped_markup(text));
}

std::string line(double x1, double y1, double x2, double y2) {
  return fmt::format("<path class=\"grid\" d=\"M{} {}L{} {}\"/>\n", pixels(x1), pixels(y1), pixels(x2),
                     pixels(y2));
}

std::string list_of(const std::vector<Key>& legend) {
  if (legend.size() < 2) return {};
  std::string out = "<ul class=\"legend\">";
  for (const Key& key : legend)
    out += fmt::format("<li><span class=\"b{}\"></span>{}</li>", key.colour % kColours,
                       escaped_markup(key.name));
  return out + "</ul>\n";
}

/// XML 1.0 knows no other characters, not even as references.
bool may_stand_in_xml(char32_t c) {
  return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c != 0xFFFE && c != 0xFFFF);
}

}  // namespace

std::string escaped_markup(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const DecodedChar next = decode_utf8(text);
    const auto bytes = static_cast<std::size_t>(next.bytes);
    switch (next.code_point) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (next.valid && may_stand_in_xml(next.code_point))
          out += text.substr(0, bytes);
        else
          out += "\xEF\xBF\xBD";
    }
    text.remove_prefix(bytes);
  }
  return out;
}

std::string grid(const Frame& frame, const Scale& x, const Scale* y) {
  const double bottom = frame.height - kBottom;
  std::string out;
  for (const double tick : x.ticks()) {
    const double at = x.place(tick);
    out += line(at, kTop, at, bottom) + text_at(at, bottom + 15, "middle", tick_text(tick));
  }
  if (y)
    for (const double tick : y->ticks()) {
      const double at = y->place(tick);
      out += line(kLeft, at, kWidth - kRight, at) + text_at(kLeft - 6, at + 4, "end", tick_text(tick));
    }
  out += text_at((kLeft + kWidth - kRight) / 2, frame.height - 6, "middle", frame.x_label);
  if (!frame.y_label.empty())
    out += fmt::format("<text transform=\"translate(11 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                       pixels((kTop + bottom) / 2), escaped_markup(frame.y_label));
  return out;
}

std::string figure(const Frame& frame, const std::string& drawing, const std::vector<Key>& legend) {
  const std::string title = escaped_markup(frame.title);
  return fmt::format(
      "<figure><figcaption>{}</figcaption>\n{}<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} "
      "{}\" "
      "role=\"img\" aria-label=\"{}\">\n{}</svg></figure>\n",
      title, list_of(legend), pixels(kWidth), pixels(frame.height), title, drawing);
}

std::string empty_figure(const std::string& title) {
  return "<figure><figcaption>" + escaped_markup(title) + "</figcaption><p>No data.</p></figure>\n";
}

}  // namespace plimsoll::report
