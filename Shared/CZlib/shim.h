#ifndef SAFELIGHT_CZLIB_H
#define SAFELIGHT_CZLIB_H
#include <zlib.h>

/* inflateInit and deflateInit are macros and therefore not imported by Swift. */
static inline int safelight_inflate_start(z_stream *stream) { return inflateInit(stream); }
#endif
