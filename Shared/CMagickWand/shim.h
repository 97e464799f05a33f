#ifndef SAFELIGHT_CMAGICKWAND_H
#define SAFELIGHT_CMAGICKWAND_H
/* ImageMagick's configuration defines _GNU_SOURCE before glibc's headers are read, which changes fd_set compared
   with the glibc module of Swift: including sys/types.h first keeps the two definitions equal. */
#include <sys/types.h>
#define MAGICKCORE_HDRI_ENABLE 0
#define MAGICKCORE_QUANTUM_DEPTH 16
#include <wand/MagickWand.h>
#endif
