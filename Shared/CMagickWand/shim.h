#ifndef SAFELIGHT_CMAGICKWAND_H
#define SAFELIGHT_CMAGICKWAND_H
/* ImageMagick's configuration defines _GNU_SOURCE before glibc is read, which changes fd_set under
   Swift's own view of glibc: reading sys/types.h first keeps the two views equal. */
#include <sys/types.h>
#define MAGICKCORE_HDRI_ENABLE 0
#define MAGICKCORE_QUANTUM_DEPTH 16
#include <wand/MagickWand.h>
#endif
