#ifndef SAFELIGHT_CMETADATA_H
#define SAFELIGHT_CMETADATA_H
/* C functions for the subset of exiv2 that is used. The exceptions of exiv2 are caught, and nothing is printed.
   Returned pointers belong to the caller and are freed with safelight_metadata_free. */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct safelight_metadata safelight_metadata;

/* Returns the version of exiv2: three numbers, a byte each. */
int safelight_metadata_version(void);

/* Reads the metadata of an image in memory. Returns null if it cannot be read. */
safelight_metadata *safelight_metadata_open(const uint8_t *bytes, size_t count);
/* Reads the fields of an XMP packet in UTF-8. Returns null if it cannot be parsed. */
safelight_metadata *safelight_metadata_open_xmp(const uint8_t *bytes, size_t count);
/* Adds the fields of an XMP packet and of IPTC records. A damaged packet or damaged records are skipped. */
void safelight_metadata_add(safelight_metadata *metadata, const uint8_t *xmp, size_t xmp_count, const uint8_t *iptc,
                            size_t iptc_count);
/* Adds the fields of an XMP packet that are in a null-terminated list of tags and have no value yet. */
void safelight_metadata_extend(safelight_metadata *metadata, const uint8_t *xmp, size_t count,
                               const char *const *tags);
void safelight_metadata_close(safelight_metadata *metadata);

/* Returns 1 if an XMP field exists, even if it is empty. */
int safelight_metadata_has_field(safelight_metadata *metadata, const char *tag);

/* Returns the raw value of a field such as "Exif.Photo.DateTimeOriginal", or null. */
char *safelight_metadata_text(safelight_metadata *metadata, const char *tag);
/* Returns the bytes of an Exif field, or null. */
uint8_t *safelight_metadata_bytes(safelight_metadata *metadata, const char *tag, size_t *count);
/* Returns the value of a repeated field at an index, or null. */
char *safelight_metadata_element(safelight_metadata *metadata, const char *tag, size_t index);
/* Returns a readable value of a field, such as the name of a lens instead of its number, or null. */
char *safelight_metadata_interpretation(safelight_metadata *metadata, const char *tag);
void safelight_metadata_free(void *pointer);

typedef enum { SAFELIGHT_METADATA_EXIF, SAFELIGHT_METADATA_XMP, SAFELIGHT_METADATA_IPTC } safelight_metadata_standard;

/* Returns the names of all fields of a standard that have a value, separated by newlines. */
char *safelight_metadata_names(safelight_metadata *metadata, safelight_metadata_standard standard);
/* Removes a field. */
void safelight_metadata_remove(safelight_metadata *metadata, const char *tag);
/* Sets a field to a text; returns 1 on success. */
int safelight_metadata_set(safelight_metadata *metadata, const char *tag, const char *value);
/* Sets a repeated field to the texts of a null-terminated list; returns 1 on success. */
int safelight_metadata_set_list(safelight_metadata *metadata, const char *tag, const char *const *values);
void safelight_metadata_remove_thumbnail(safelight_metadata *metadata);

/* Returns the Exif fields as a TIFF structure, or null if there are none. */
uint8_t *safelight_metadata_exif(safelight_metadata *metadata, size_t *count);
/* Returns the XMP fields as a packet, or null if there are none. */
char *safelight_metadata_xmp(safelight_metadata *metadata);

#ifdef __cplusplus
}
#endif
#endif
