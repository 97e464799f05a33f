#ifndef SAFELIGHT_CTEXT_H
#define SAFELIGHT_CTEXT_H
/* Draws one line of text as coverage. raqm orders and shapes the text with FriBidi and HarfBuzz, FreeType draws it. Not
   thread-safe: calls must not overlap. Returned pixels belong to the caller and are freed with free. */
#include <stddef.h>
#include <stdint.h>

/* An ordered list of fonts. A character is drawn with the first font that has it. */
typedef struct safelight_fonts safelight_fonts;

/* Coverage of 0 to 255 for each pixel, row by row. `left` and `top` are the position of the first pixel relative to
   the origin of the text on its baseline; `top` counts upwards. */
typedef struct {
    uint8_t *pixels;
    int width, height;
    int left, top;
} safelight_coverage;

typedef enum {
    SAFELIGHT_TEXT_OK,
    SAFELIGHT_TEXT_MEMORY,
    /* The text would be wider or higher than 32,767 pixels. */
    SAFELIGHT_TEXT_TOO_LARGE,
    SAFELIGHT_TEXT_FAILED,
} safelight_text_status;

/* Opens the font files that exist, at most eight. Returns null if none can be opened. The files are mapped into memory
   and not opened again. */
safelight_fonts *safelight_fonts_open(const char *const *paths, size_t count);
void safelight_fonts_close(safelight_fonts *fonts);

/* Returns 1 if a font has the character, or if it has no glyph (joiners, variation selectors). */
int safelight_fonts_have(const safelight_fonts *fonts, uint32_t character);

/* Draws a line at `size` pixels per em, without hinting, so that its proportions are the same at each size. For a text
   without visible glyphs, width and height are 0 and pixels is null. */
safelight_text_status safelight_text_draw(
    safelight_fonts *fonts, const uint32_t *text, size_t count, double size, safelight_coverage *result);
#endif
