#ifndef SAFELIGHT_CMETADATA_H
#define SAFELIGHT_CMETADATA_H
/* The little of gexiv2 that is needed, without glib's types. gexiv2 catches the C++ exceptions of exiv2; nothing is
   printed. Pointers that are returned are the caller's, to be given to safelight_metadata_free. */
#include <stddef.h>
#include <stdint.h>

typedef struct safelight_metadata safelight_metadata;

/* The version of gexiv2: 1400 is 0.14.0. */
int safelight_metadata_version(void);

/* Reads the metadata of a picture in memory; null where it cannot be read. */
safelight_metadata *safelight_metadata_open(const uint8_t *bytes, size_t count);
void safelight_metadata_close(safelight_metadata *metadata);

/* The raw value of a field such as "Exif.Photo.DateTimeOriginal", or null. */
char *safelight_metadata_text(safelight_metadata *metadata, const char *tag);
/* The value number index of a repeated field, or null. */
char *safelight_metadata_element(safelight_metadata *metadata, const char *tag, size_t index);
void safelight_metadata_free(void *pointer);

/* The names of all fields of "Exif" (0) or "Xmp" (1), a line each. */
char *safelight_metadata_names(safelight_metadata *metadata, int is_xmp);
/* Takes a field out. */
void safelight_metadata_remove(safelight_metadata *metadata, const char *tag);
/* Sets a field to a text; 1 when it worked. */
int safelight_metadata_set(safelight_metadata *metadata, const char *tag, const char *value);
void safelight_metadata_remove_thumbnail(safelight_metadata *metadata);

/* The Exif fields as a TIFF structure, or null where there is none. */
uint8_t *safelight_metadata_exif(safelight_metadata *metadata, size_t *count);
/* The XMP fields as a packet, or null where there is none. */
char *safelight_metadata_xmp(safelight_metadata *metadata);
#endif
