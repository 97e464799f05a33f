#include "CText.h"

#include <raqm.h>
#include FT_GLYPH_H
#include FT_OUTLINE_H
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { max_fonts = 8, max_side = 32767 };

struct safelight_fonts {
    FT_Library library;
    FT_Face faces[max_fonts];
    size_t count;
};

safelight_fonts *safelight_fonts_open(const char *const *paths, size_t count) {
    safelight_fonts *fonts = calloc(1, sizeof *fonts);
    if (!fonts || FT_Init_FreeType(&fonts->library)) {
        free(fonts);
        return NULL;
    }
    for (size_t i = 0; i < count && fonts->count < max_fonts; i++)
        if (!FT_New_Face(fonts->library, paths[i], 0, &fonts->faces[fonts->count])) fonts->count++;
    if (fonts->count) return fonts;
    safelight_fonts_close(fonts);
    return NULL;
}

void safelight_fonts_close(safelight_fonts *fonts) {
    for (size_t i = 0; i < fonts->count; i++) FT_Done_Face(fonts->faces[i]);
    FT_Done_FreeType(fonts->library);
    free(fonts);
}

/* Returns true for a character that only modifies its neighbours. It uses the font of the character before it. */
static int is_modifier(uint32_t character) {
    return (character >= 0x300 && character <= 0x36F) || (character >= 0x200B && character <= 0x200F)
        || (character >= 0x202A && character <= 0x202E) || (character >= 0x2060 && character <= 0x2069)
        || (character >= 0xFE00 && character <= 0xFE0F) || (character >= 0xE0100 && character <= 0xE01EF);
}

/* Returns true for a modifier with a glyph of its own. If the font of the character before it has no such glyph, it
   uses another font. */
static int is_mark(uint32_t character) {
    return character >= 0x300 && character <= 0x36F;
}

/* Returns the index of the first font with a character; the number of fonts if there is none. */
static size_t font_of(const safelight_fonts *fonts, uint32_t character) {
    for (size_t i = 0; i < fonts->count; i++)
        if (FT_Get_Char_Index(fonts->faces[i], character)) return i;
    return fonts->count;
}

int safelight_fonts_have(const safelight_fonts *fonts, uint32_t character) {
    return (is_modifier(character) && !is_mark(character)) || font_of(fonts, character) < fonts->count;
}

/* Sets the font of each run of the text. */
static int set_fonts(safelight_fonts *fonts, raqm_t *line, const uint32_t *text, size_t count) {
    size_t start = 0, font = 0;
    for (size_t i = 0; i <= count; i++) {
        size_t next = font;
        int needs_other_font = i < count && is_mark(text[i]) && !FT_Get_Char_Index(fonts->faces[font], text[i]);
        if (i < count && (needs_other_font || !is_modifier(text[i]))) {
            next = font_of(fonts, text[i]);
            if (next == fonts->count) next = 0;
        }
        if (i < count && (next == font || i == start)) {
            font = next;
            continue;
        }
        if (!raqm_set_freetype_face_range(line, fonts->faces[font], start, i - start)) return 0;
        start = i;
        font = next;
    }
    return 1;
}

typedef struct {
    long left, bottom, right, top;
} box;

/* Loads the outline of a glyph at its position on the line, in 64ths of a pixel. */
static FT_Error load_outline(const raqm_glyph_t *glyph, FT_Pos x, FT_Pos y) {
    FT_Error error = FT_Load_Glyph(glyph->ftface, glyph->index, FT_LOAD_NO_HINTING | FT_LOAD_NO_BITMAP);
    if (error) return error;
    if (glyph->ftface->glyph->format != FT_GLYPH_FORMAT_OUTLINE) return FT_Err_Unimplemented_Feature;
    FT_Outline_Translate(&glyph->ftface->glyph->outline, x, y);
    return 0;
}

/* Sets the bounds of the glyphs in pixels. */
static safelight_text_status measure(const raqm_glyph_t *glyphs, size_t count, box *bounds) {
    FT_Pos pen = 0;
    *bounds = (box){ 0, 0, 0, 0 };
    int is_empty = 1;
    for (size_t i = 0; i < count; i++) {
        if (load_outline(&glyphs[i], pen + glyphs[i].x_offset, glyphs[i].y_offset)) return SAFELIGHT_TEXT_FAILED;
        FT_BBox cbox;
        FT_Outline_Get_CBox(&glyphs[i].ftface->glyph->outline, &cbox);
        pen += glyphs[i].x_advance;
        if (cbox.xMin >= cbox.xMax || cbox.yMin >= cbox.yMax) continue;
        box pixels = { cbox.xMin >> 6, cbox.yMin >> 6, (cbox.xMax + 63) >> 6, (cbox.yMax + 63) >> 6 };
        if (is_empty || pixels.left < bounds->left) bounds->left = pixels.left;
        if (is_empty || pixels.bottom < bounds->bottom) bounds->bottom = pixels.bottom;
        if (is_empty || pixels.right > bounds->right) bounds->right = pixels.right;
        if (is_empty || pixels.top > bounds->top) bounds->top = pixels.top;
        is_empty = 0;
    }
    int fits = bounds->right - bounds->left <= max_side && bounds->top - bounds->bottom <= max_side;
    return fits ? SAFELIGHT_TEXT_OK : SAFELIGHT_TEXT_TOO_LARGE;
}

/* Draws the glyphs. Where two overlap, the larger coverage is used. */
static safelight_text_status draw(
    const raqm_glyph_t *glyphs, size_t count, const box *bounds, safelight_coverage *result) {
    FT_Pos pen = -bounds->left * 64;
    for (size_t i = 0; i < count; i++) {
        const raqm_glyph_t *glyph = &glyphs[i];
        FT_Error error = load_outline(glyph, pen + glyph->x_offset, glyph->y_offset - bounds->bottom * 64);
        if (error) return SAFELIGHT_TEXT_FAILED;
        pen += glyph->x_advance;
        FT_GlyphSlot slot = glyph->ftface->glyph;
        if (!slot->outline.n_points) continue;
        if (FT_Render_Glyph(slot, FT_RENDER_MODE_NORMAL)) return SAFELIGHT_TEXT_FAILED;
        const FT_Bitmap *bitmap = &slot->bitmap;
        for (int row = 0; row < (int)bitmap->rows; row++) {
            int y = result->height - slot->bitmap_top + row;
            if (y < 0 || y >= result->height) continue;
            const uint8_t *source = bitmap->buffer + (ptrdiff_t)row * bitmap->pitch;
            uint8_t *target = result->pixels + (size_t)y * (size_t)result->width;
            for (int column = 0; column < (int)bitmap->width; column++) {
                int x = slot->bitmap_left + column;
                if (x >= 0 && x < result->width && target[x] < source[column]) target[x] = source[column];
            }
        }
    }
    return SAFELIGHT_TEXT_OK;
}

safelight_text_status safelight_text_draw(
    safelight_fonts *fonts, const uint32_t *text, size_t count, double size, safelight_coverage *result) {
    *result = (safelight_coverage){ 0 };
    if (!count) return SAFELIGHT_TEXT_OK;
    if (!(size >= 1 && size <= max_side)) return SAFELIGHT_TEXT_TOO_LARGE;
    for (size_t i = 0; i < fonts->count; i++)
        if (FT_Set_Char_Size(fonts->faces[i], 0, lround(size * 64), 72, 72)) return SAFELIGHT_TEXT_FAILED;
    raqm_t *line = raqm_create();
    if (!line) return SAFELIGHT_TEXT_MEMORY;
    safelight_text_status status = SAFELIGHT_TEXT_MEMORY;
    size_t glyph_count = 0;
    box bounds;
    if (raqm_set_text(line, text, count) && raqm_set_par_direction(line, RAQM_DIRECTION_DEFAULT)
        && raqm_set_freetype_load_flags(line, FT_LOAD_NO_HINTING | FT_LOAD_NO_BITMAP)
        && set_fonts(fonts, line, text, count) && raqm_layout(line)) {
        const raqm_glyph_t *glyphs = raqm_get_glyphs(line, &glyph_count);
        status = measure(glyphs, glyph_count, &bounds);
        if (status == SAFELIGHT_TEXT_OK && bounds.right > bounds.left) {
            *result = (safelight_coverage){
                .width = (int)(bounds.right - bounds.left),
                .height = (int)(bounds.top - bounds.bottom),
                .left = (int)bounds.left,
                .top = (int)bounds.top,
            };
            result->pixels = calloc((size_t)result->width, (size_t)result->height);
            status = result->pixels ? draw(glyphs, glyph_count, &bounds, result) : SAFELIGHT_TEXT_MEMORY;
            if (status != SAFELIGHT_TEXT_OK) {
                free(result->pixels);
                *result = (safelight_coverage){ 0 };
            }
        }
    }
    raqm_destroy(line);
    return status;
}
