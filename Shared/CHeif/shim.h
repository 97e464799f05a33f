#ifndef SAFELIGHT_CHEIF_H
#define SAFELIGHT_CHEIF_H
#include <libheif/heif.h>
#endif
