#include "CMetadata.h"
#include <gexiv2/gexiv2.h>
#include <string.h>

struct safelight_metadata {
    GExiv2Metadata *inner;
};

static void start(void) {
    static gsize is_started = 0;
    if (g_once_init_enter(&is_started)) {
        gexiv2_initialize();
        gexiv2_log_set_level(GEXIV2_LOG_LEVEL_MUTE);
        g_once_init_leave(&is_started, 1);
    }
}

int safelight_metadata_version(void) {
    return gexiv2_get_version();
}

safelight_metadata *safelight_metadata_open(const uint8_t *bytes, size_t count) {
    start();
    if (!bytes || count == 0 || count > G_MAXLONG) return NULL;
    GExiv2Metadata *inner = gexiv2_metadata_new();
    GError *error = NULL;
    gboolean is_open = gexiv2_metadata_open_buf(inner, bytes, (glong)count, &error);
    g_clear_error(&error);
    if (!is_open) {
        g_object_unref(inner);
        return NULL;
    }
    safelight_metadata *metadata = g_new0(safelight_metadata, 1);
    metadata->inner = inner;
    return metadata;
}

void safelight_metadata_close(safelight_metadata *metadata) {
    if (!metadata) return;
    g_object_unref(metadata->inner);
    g_free(metadata);
}

char *safelight_metadata_text(safelight_metadata *metadata, const char *tag) {
    GError *error = NULL;
    char *text = gexiv2_metadata_try_get_tag_string(metadata->inner, tag, &error);
    g_clear_error(&error);
    return text;
}

char *safelight_metadata_element(safelight_metadata *metadata, const char *tag, size_t index) {
    GError *error = NULL;
    char **values = gexiv2_metadata_try_get_tag_multiple(metadata->inner, tag, &error);
    g_clear_error(&error);
    char *value = values && index < g_strv_length(values) ? g_strdup(values[index]) : NULL;
    g_strfreev(values);
    return value;
}

void safelight_metadata_free(void *pointer) { g_free(pointer); }

char *safelight_metadata_interpretation(safelight_metadata *metadata, const char *tag) {
    GError *error = NULL;
    char *text = gexiv2_metadata_try_get_tag_interpreted_string(metadata->inner, tag, &error);
    g_clear_error(&error);
    return text;
}

char *safelight_metadata_names(safelight_metadata *metadata, safelight_metadata_standard standard) {
    char **names = NULL;
    switch (standard) {
    case SAFELIGHT_METADATA_EXIF: names = gexiv2_metadata_get_exif_tags(metadata->inner); break;
    case SAFELIGHT_METADATA_XMP: names = gexiv2_metadata_get_xmp_tags(metadata->inner); break;
    case SAFELIGHT_METADATA_IPTC: names = gexiv2_metadata_get_iptc_tags(metadata->inner); break;
    }
    char *joined = names ? g_strjoinv("\n", names) : NULL;
    g_strfreev(names);
    return joined;
}

void safelight_metadata_remove(safelight_metadata *metadata, const char *tag) {
    GError *error = NULL;
    gexiv2_metadata_try_clear_tag(metadata->inner, tag, &error);
    g_clear_error(&error);
}

int safelight_metadata_set(safelight_metadata *metadata, const char *tag, const char *value) {
    GError *error = NULL;
    gboolean is_set = gexiv2_metadata_try_set_tag_string(metadata->inner, tag, value, &error);
    g_clear_error(&error);
    return is_set ? 1 : 0;
}

int safelight_metadata_set_list(safelight_metadata *metadata, const char *tag, const char *const *values) {
    GError *error = NULL;
    gboolean is_set = gexiv2_metadata_try_set_tag_multiple(metadata->inner, tag, (const char **)values, &error);
    g_clear_error(&error);
    return is_set ? 1 : 0;
}

void safelight_metadata_remove_thumbnail(safelight_metadata *metadata) {
    GError *error = NULL;
    gexiv2_metadata_try_erase_exif_thumbnail(metadata->inner, &error);
    g_clear_error(&error);
}

uint8_t *safelight_metadata_exif(safelight_metadata *metadata, size_t *count) {
    GError *error = NULL;
    *count = 0;
    GBytes *bytes = gexiv2_metadata_get_exif_data(metadata->inner, GEXIV2_BYTE_ORDER_LITTLE, &error);
    g_clear_error(&error);
    if (!bytes) return NULL;
    gsize size = 0;
    gconstpointer data = g_bytes_get_data(bytes, &size);
    uint8_t *copy = data && size > 0 ? g_memdup2(data, size) : NULL;
    *count = copy ? size : 0;
    g_bytes_unref(bytes);
    return copy;
}

char *safelight_metadata_xmp(safelight_metadata *metadata) {
    GError *error = NULL;
    char *packet = gexiv2_metadata_try_generate_xmp_packet(metadata->inner, GEXIV2_OMIT_PACKET_WRAPPER, 0, &error);
    g_clear_error(&error);
    return packet;
}
