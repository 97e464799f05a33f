#include "CText.h"

#include <raqm.h>
#include FT_GLYPH_H
#include FT_OUTLINE_H
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { most_fonts = 8, most_side = 32767 };

struct safelight_fonts {
    FT_Library library;
    FT_Face faces[most_fonts];
    size_t count;
};

safelight_fonts *safelight_fonts_open(const char *const *paths, size_t count) {
    safelight_fonts *fonts = calloc(1, sizeof *fonts);
    if (!fonts || FT_Init_FreeType(&fonts->library)) {
        free(fonts);
        return NULL;
    }
    for (size_t at = 0; at < count && fonts->count < most_fonts; at++)
        if (!FT_New_Face(fonts->library, paths[at], 0, &fonts->faces[fonts->count])) fonts->count++;
    if (fonts->count) return fonts;
    safelight_fonts_close(fonts);
    return NULL;
}

void safelight_fonts_close(safelight_fonts *fonts) {
    for (size_t at = 0; at < fonts->count; at++) FT_Done_Face(fonts->faces[at]);
    FT_Done_FreeType(fonts->library);
    free(fonts);
}

/* Characters that only change their neighbours: they belong to the font of the character before them. */
static int is_part(uint32_t character) {
    return (character >= 0x300 && character <= 0x36F) || (character >= 0x200B && character <= 0x200F)
        || (character >= 0x202A && character <= 0x202E) || (character >= 0x2060 && character <= 0x2069)
        || (character >= 0xFE00 && character <= 0xFE0F) || (character >= 0xE0100 && character <= 0xE01EF);
}

/* Parts with a shape of their own: they are drawn, with another font than the character before them if necessary. */
static int is_mark(uint32_t character) {
    return character >= 0x300 && character <= 0x36F;
}

/* The index of the first font with a character; the number of fonts if there is none. */
static size_t font_of(const safelight_fonts *fonts, uint32_t character) {
    for (size_t at = 0; at < fonts->count; at++)
        if (FT_Get_Char_Index(fonts->faces[at], character)) return at;
    return fonts->count;
}

int safelight_fonts_have(const safelight_fonts *fonts, uint32_t character) {
    return (is_part(character) && !is_mark(character)) || font_of(fonts, character) < fonts->count;
}

/* Gives each run of the text its font. */
static int set_fonts(safelight_fonts *fonts, raqm_t *line, const uint32_t *text, size_t count) {
    size_t start = 0, font = 0;
    for (size_t at = 0; at <= count; at++) {
        size_t next = font;
        int is_foreign = at < count && is_mark(text[at]) && !FT_Get_Char_Index(fonts->faces[font], text[at]);
        if (at < count && (is_foreign || !is_part(text[at]))) {
            next = font_of(fonts, text[at]);
            if (next == fonts->count) next = 0;
        }
        if (at < count && (next == font || at == start)) {
            font = next;
            continue;
        }
        if (!raqm_set_freetype_face_range(line, fonts->faces[font], start, at - start)) return 0;
        start = at;
        font = next;
    }
    return 1;
}

typedef struct {
    long left, bottom, right, top;
} box;

/* Loads a glyph's outline at its place on the line, in 64ths of a pixel. */
static FT_Error load(const raqm_glyph_t *glyph, FT_Pos x, FT_Pos y) {
    FT_Error error = FT_Load_Glyph(glyph->ftface, glyph->index, FT_LOAD_NO_HINTING | FT_LOAD_NO_BITMAP);
    if (error) return error;
    if (glyph->ftface->glyph->format != FT_GLYPH_FORMAT_OUTLINE) return FT_Err_Unimplemented_Feature;
    FT_Outline_Translate(&glyph->ftface->glyph->outline, x, y);
    return 0;
}

static safelight_text_status measure(const raqm_glyph_t *glyphs, size_t count, box *all) {
    FT_Pos x = 0;
    *all = (box){ 0, 0, 0, 0 };
    int is_empty = 1;
    for (size_t at = 0; at < count; at++) {
        if (load(&glyphs[at], x + glyphs[at].x_offset, glyphs[at].y_offset)) return SAFELIGHT_TEXT_FAILED;
        FT_BBox one;
        FT_Outline_Get_CBox(&glyphs[at].ftface->glyph->outline, &one);
        x += glyphs[at].x_advance;
        if (one.xMin >= one.xMax || one.yMin >= one.yMax) continue;
        box pixels = { one.xMin >> 6, one.yMin >> 6, (one.xMax + 63) >> 6, (one.yMax + 63) >> 6 };
        if (is_empty || pixels.left < all->left) all->left = pixels.left;
        if (is_empty || pixels.bottom < all->bottom) all->bottom = pixels.bottom;
        if (is_empty || pixels.right > all->right) all->right = pixels.right;
        if (is_empty || pixels.top > all->top) all->top = pixels.top;
        is_empty = 0;
    }
    int fits = all->right - all->left <= most_side && all->top - all->bottom <= most_side;
    return fits ? SAFELIGHT_TEXT_OK : SAFELIGHT_TEXT_TOO_LARGE;
}

/* Draws the glyphs over each other; where two overlap, the larger coverage counts. */
static safelight_text_status draw(
    const raqm_glyph_t *glyphs, size_t count, const box *all, safelight_coverage *result) {
    FT_Pos x = -all->left * 64;
    for (size_t at = 0; at < count; at++) {
        const raqm_glyph_t *glyph = &glyphs[at];
        if (load(glyph, x + glyph->x_offset, glyph->y_offset - all->bottom * 64)) return SAFELIGHT_TEXT_FAILED;
        x += glyph->x_advance;
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
                int place = slot->bitmap_left + column;
                if (place >= 0 && place < result->width && target[place] < source[column]) target[place] = source[column];
            }
        }
    }
    return SAFELIGHT_TEXT_OK;
}

safelight_text_status safelight_text_draw(
    safelight_fonts *fonts, const uint32_t *text, size_t count, double size, safelight_coverage *result) {
    *result = (safelight_coverage){ 0 };
    if (!count) return SAFELIGHT_TEXT_OK;
    if (!(size >= 1 && size <= most_side)) return SAFELIGHT_TEXT_TOO_LARGE;
    for (size_t at = 0; at < fonts->count; at++)
        if (FT_Set_Char_Size(fonts->faces[at], 0, lround(size * 64), 72, 72)) return SAFELIGHT_TEXT_FAILED;
    raqm_t *line = raqm_create();
    if (!line) return SAFELIGHT_TEXT_MEMORY;
    safelight_text_status status = SAFELIGHT_TEXT_MEMORY;
    size_t shown = 0;
    box all;
    if (raqm_set_text(line, text, count) && raqm_set_par_direction(line, RAQM_DIRECTION_DEFAULT)
        && raqm_set_freetype_load_flags(line, FT_LOAD_NO_HINTING | FT_LOAD_NO_BITMAP)
        && set_fonts(fonts, line, text, count) && raqm_layout(line)) {
        const raqm_glyph_t *glyphs = raqm_get_glyphs(line, &shown);
        status = measure(glyphs, shown, &all);
        if (status == SAFELIGHT_TEXT_OK && all.right > all.left) {
            *result = (safelight_coverage){
                .width = (int)(all.right - all.left),
                .height = (int)(all.top - all.bottom),
                .left = (int)all.left,
                .top = (int)all.top,
            };
            result->pixels = calloc((size_t)result->width, (size_t)result->height);
            status = result->pixels ? draw(glyphs, shown, &all, result) : SAFELIGHT_TEXT_MEMORY;
            if (status != SAFELIGHT_TEXT_OK) {
                free(result->pixels);
                *result = (safelight_coverage){ 0 };
            }
        }
    }
    raqm_destroy(line);
    return status;
}
